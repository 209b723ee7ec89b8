"""Connected clients: producers and consumers by group, their heartbeats, and calls to consumers through the broker
(docs/protocol/broker.md#clients, #calls-to-consumers, #admin; docs/protocol/behaviour.md#notices).

The tables are passive: the caller that changes them notifies the members. Java: ``ProducerManager``,
``ConsumerManager``, ``ConsumerGroupInfo``; the requests: ``ClientManageProcessor``, ``ConsumerManageProcessor``,
``AdminBrokerProcessor.callConsumer``, ``consumeMessageDirectly``, ``Broker2Client``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import as_text, read_object, read_object_or_none, write
from engine.broker.topics import READ, WRITE
from engine.codec.json_dialect import parse
from engine.codec.message import parse_offset_message_id
from engine.errors import BadFilter
from engine.releases import JsonParser
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.subscriptions import TAG, Subscription
from engine.store.message_filter import SqlFilter
from engine.store.query_message import lend_message_by_offset
from engine.system_names import RETRY_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


CLUSTERING, BROADCASTING = "CLUSTERING", "BROADCASTING"


@dataclass(slots=True)
class Member:
    """A client of a group behind one connection. ``heartbeat_ms``: its last heartbeat (ms since the epoch)."""

    client_id: str
    language: str
    version: int
    heartbeat_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """A consumer group that has members now."""

    name: str
    kind: str = "CONSUME_PASSIVELY"
    model: str = CLUSTERING
    start: str = "CONSUME_FROM_LAST_OFFSET"
    members: dict[Connection, Member] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)

    @property
    def client_ids(self) -> list[str]:
        """Return each client id once, in the order of arrival."""
        return list(dict.fromkeys(member.client_id for member in self.members.values()))


class Clients:
    """Tables of the connected clients. Nothing is sent from here."""

    def __init__(self) -> None:
        self.consumers: dict[str, ConsumerGroup] = {}
        self.producers: dict[str, dict[Connection, Member]] = {}
        self.emptied: Callable[[str], None] = lambda _: None
        """Called with a group that has no member any more."""

    def subscription(self, group: str, topic: str) -> Subscription | None:
        """Return a group's subscription to a topic, from its heartbeats."""
        consumer_group = self.consumers.get(group)
        return None if consumer_group is None else consumer_group.subscriptions.get(topic)

    def producer_of(self, group: str) -> Connection | None:
        """Return a connection to a producer of the group that reads what it is sent; None if there is none."""
        return next((connection for connection in self.producers.get(group, ()) if not connection.is_congested), None)

    def producer(self, client_id: str) -> Connection | None:
        """Return the connection of a producer by its client id."""
        for members in self.producers.values():
            for connection, member in members.items():
                if member.client_id == client_id:
                    return connection
        return None

    def add_producer(self, group: str, connection: Connection, member: Member) -> None:
        """Record a producer, or its next heartbeat."""
        self.producers.setdefault(group, {})[connection] = member

    def add_consumer(self, reported: ConsumerGroup, connection: Connection, member: Member) -> bool:
        """Record a consumer and the subscriptions of its group. Return True if the members must be notified."""
        group = self.consumers.setdefault(reported.name, ConsumerGroup(reported.name))
        group.kind, group.model, group.start = reported.kind, reported.model, reported.start
        known_member = group.members.get(connection)
        new = known_member is None or known_member.client_id != member.client_id
        group.members[connection] = member
        old_topics = set(group.subscriptions)
        for topic, subscription in reported.subscriptions.items():
            old = group.subscriptions.get(topic)
            if old is None or subscription.version > old.version:
                group.subscriptions[topic] = subscription
        for topic in old_topics - reported.subscriptions.keys():
            del group.subscriptions[topic]
        return new or old_topics != set(group.subscriptions)

    def remove_producer(self, group: str, connection: Connection) -> None:
        """Remove a producer from a group."""
        members = self.producers.get(group, {})
        members.pop(connection, None)
        if not members:
            self.producers.pop(group, None)

    def remove_consumer(self, group: str, connection: Connection) -> ConsumerGroup | None:
        """Remove a consumer from a group. Return the group if its remaining members must be notified, else None."""
        consumer_group = self.consumers.get(group)
        if consumer_group is None or consumer_group.members.pop(connection, None) is None:
            return None
        if not consumer_group.members:
            del self.consumers[group]
            self.emptied(group)
            return None
        return consumer_group

    def disconnected(self, connection: Connection) -> list[ConsumerGroup]:
        """Forget a closed connection. Return its groups that still have members, which must be notified."""
        for group in [name for name, members in self.producers.items() if connection in members]:
            self.remove_producer(group, connection)
        groups = [name for name, group in self.consumers.items() if connection in group.members]
        return [remaining for name in groups if (remaining := self.remove_consumer(name, connection)) is not None]

    def silent(self, cutoff_ms: int) -> list[Connection]:
        """Return the connections all of whose clients were last heard before ``cutoff_ms``."""
        last_heartbeats: dict[Connection, int] = {}
        tables: list[Mapping[Connection, Member]] = [*self.producers.values()]
        tables += [group.members for group in self.consumers.values()]
        for members in tables:
            for connection, member in members.items():
                last_heartbeats[connection] = max(last_heartbeats.get(connection, 0), member.heartbeat_ms)
        return [connection for connection, heartbeat_ms in last_heartbeats.items() if heartbeat_ms < cutoff_ms]


_TYPES = ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")
_MODELS = ("BROADCASTING", "CLUSTERING", "LITE_SELECTIVE")
_STARTS = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)


def heart_beat(broker: Broker, request: Command, _header: Header, connection: Connection) -> Command:
    """HEART_BEAT: register a client, and the subscriptions of its groups."""
    body = read_object(request.body)
    client_id = str(body.get("clientID") or "")
    for row in _objects(body, "producerDataSet"):
        if name := str(row.get("groupName") or ""):
            broker.clients.add_producer(name, connection, _member(broker, request, client_id))
    for row in _objects(body, "consumerDataSet"):
        if row.get("groupName") is None:
            continue
        group = _group(row, broker.store.rules.json_parser)
        declared = broker.topics.group(group.name)
        if declared is not None:
            broker.topics.create_plain(RETRY_PREFIX + group.name, max(declared.retry_queue_nums, 1), READ | WRITE)
        if broker.clients.add_consumer(group, connection, _member(broker, request, client_id)):
            broker.tell_members(broker.clients.consumers[group.name])
        broker.filters.register(group.name, group.subscriptions.values())
    return answer_to(request)


def _objects(record: Mapping[Any, Any], name: str) -> list[Mapping[Any, Any]]:
    """Return the rows of a list of objects. Raises :class:`Refused` if it is something else."""
    rows = record.get(name) or []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{name}: expected a list of objects")
    return rows


def _member(broker: Broker, request: Command, client_id: str) -> Member:
    return Member(client_id, request.language, request.version, broker.now())


def _group(record: Mapping[Any, Any], parser: JsonParser) -> ConsumerGroup:
    """Parse a consumer's group, which may have an empty name."""
    group = ConsumerGroup(
        as_text(record.get("groupName"), parser) or "",
        _word(record.get("consumeType"), _TYPES, 1),
        _word(record.get("messageModel"), _MODELS, 1),
        _word(record.get("consumeFromWhere"), _STARTS, 0),
    )
    for row in _objects(record, "subscriptionDataSet"):
        subscription = subscription_of(row)
        group.subscriptions[subscription.topic] = subscription
    return group


def _word(value: Any, words: tuple[str, ...], default: int) -> str:
    """Parse an enum: its name or, from C++ clients, its ordinal."""
    if isinstance(value, int) and 0 <= value < len(words):
        return words[value]
    return str(value) if isinstance(value, str) else words[default]


def subscription_of(record: Mapping[Any, Any]) -> Subscription:
    """Parse a ``SubscriptionData`` in any client's spelling; tags and their hashes are taken as the client sends
    them.
    """
    version = record.get("subVersion")
    text = str(version or 0)
    number = int(text) if text.lstrip("-").isdecimal() else 0
    return Subscription(
        str(record.get("topic") or ""),
        str(record.get("subString") or ""),
        number,
        record.get("expressionType") or TAG,
        tuple(str(tag) for tag in _list(record, "tagsSet")),
        tuple(_codes(_list(record, "codeSet"))),
        class_filter=record.get("classFilterMode") is True,
    )


def _list(record: Mapping[Any, Any], name: str) -> list[Any]:
    value = record.get(name)
    return value if isinstance(value, list) else []


def _codes(codes: list[Any]) -> Iterator[int]:
    """Yield hashes as numbers; C++ clients send them as text."""
    for code in codes:
        text = str(code)
        if text.lstrip("-").isdecimal():
            yield int(text)


def unregister(broker: Broker, request: Command, header: Header, connection: Connection) -> Command:
    """UNREGISTER_CLIENT: remove a client from a producer group, a consumer group, or both; an empty name is none."""
    if header["producerGroup"]:
        broker.clients.remove_producer(header["producerGroup"], connection)
    if header["consumerGroup"]:
        group = broker.clients.remove_consumer(header["consumerGroup"], connection)
        if group is not None:
            broker.tell_members(group)
    return answer_to(request)


def check_config(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """CHECK_CLIENT_CONFIG: check that this broker accepts a subscription that is no list of tags."""
    record = read_object_or_none(request.body).get("subscriptionData")
    if record in (None, "", []):
        return answer_to(request)
    if not isinstance(record, Mapping):
        raise WrongRequest("subscriptionData: expected an object")
    subscription = subscription_of(record)
    if subscription.kind == TAG:
        return answer_to(request)
    if not broker.config.property_filter:
        words = f"The broker does not support consumer to filter message by {subscription.kind}"
        raise Refused(ResponseCode.SYSTEM_ERROR, words)
    try:
        SqlFilter(subscription.expression)
    except BadFilter as error:
        raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from error
    return answer_to(request)


def consumer_list(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_CONSUMER_LIST_BY_GROUP: the client ids of a group; its members use them to share the queues."""
    group = broker.clients.consumers.get(header["consumerGroup"])
    if group is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {header['consumerGroup']}")
    return answer_to(request, body=write({"consumerIdList": group.client_ids}))


TIMEOUT_S, STATUS_TIMEOUT_S = 10.0, 5.0
"""Seconds to wait for a consumer; and for each consumer of request 223."""
_FIRST_CALLED, _FIRST_WITH_STATUS = 63, 61
"""First client versions that answer such calls (3.1.8, 3.0.7)."""


def running_info(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """GET_CONSUMER_RUNNING_INFO: a consumer's own report: settings, queues that it owns, rates."""
    _pass_on(broker, request, header, connection, dict(request.fields), bytes(request.body))
    return None


def consume_directly(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """CONSUME_MESSAGE_DIRECTLY: have a consumer consume one message, named by its offset id, and pass on the result."""
    host_and_offset = parse_offset_message_id(str(header["msgId"] or ""))
    if host_and_offset is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"no message id: {header['msgId']}")
    with lend_message_by_offset(broker.store.parts.log, host_and_offset[1]) as result:
        body = bytes(result.messages[0]) if result.messages else b""
    fields = {**request.fields, "brokerName": broker.config.broker_name}
    _pass_on(broker, request, header, connection, fields, body)
    return None


def consumer_status(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS: the queue offsets at which a group's members read a topic, by client."""
    name = str(header["group"])
    group = broker.clients.consumers.get(name)
    if group is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{name}]")
    _answer_later(broker, request, connection, _statuses(request, header, group))
    return None


def _pass_on(
    broker: Broker, request: Command, header: Header, connection: Connection, fields: dict[str, Any], body: bytes
) -> None:
    """Pass the request to the consumer that the header names. Raises :class:`Refused` if it is not connected, or
    too old.
    """
    name, client_id = str(header["consumerGroup"]), "null" if header["clientId"] is None else str(header["clientId"])
    group = broker.clients.consumers.get(name)
    members = [] if group is None else list(group.members.items())
    match = next(
        ((member_connection, member) for member_connection, member in members if member.client_id == client_id), None
    )
    if match is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"The Consumer <{name}> <{client_id}> not online")
    consumer_connection, member = match
    if member.version < _FIRST_CALLED:
        words = f"The Consumer <{client_id}> Version <{member.version}> too low to finish"
        raise Refused(ResponseCode.SYSTEM_ERROR, f"{words}, please upgrade it to V3_1_8_SNAPSHOT")
    call = _call(request, Command(request.code, fields, body=body), consumer_connection, f"<{name}> <{client_id}>")
    _answer_later(broker, request, connection, call)


async def _call(request: Command, call: Command, consumer_connection: Connection, consumer_name: str) -> Command:
    try:
        response = await consumer_connection.ask(call, TIMEOUT_S)
    except TimeoutError:
        return answer_to(
            request, ResponseCode.CONSUME_MSG_TIMEOUT, remark=f"consumer {consumer_name} Timeout: {TIMEOUT_S:.0f} s"
        )
    except ConnectionError as error:
        return answer_to(
            request, ResponseCode.SYSTEM_ERROR, remark=f"invoke consumer {consumer_name} Exception: {error}"
        )
    return answer_to(
        request, response.code, fields=dict(response.fields), body=bytes(response.body), remark=response.remark
    )


async def _statuses(request: Command, header: Header, group: ConsumerGroup) -> Command:
    """Ask every member. Members that do not answer are left out, as in RocketMQ."""
    only_client_id, offset_tables = str(header["clientAddr"] or ""), {}
    fields = {"topic": str(header["topic"]), "group": group.name}
    for connection, member in list(group.members.items()):
        if member.version < _FIRST_WITH_STATUS:
            words = f"the client does not support this feature. version={member.version}"
            return answer_to(request, ResponseCode.SYSTEM_ERROR, remark=words)
        if only_client_id and only_client_id != member.client_id:
            continue
        try:
            response = await connection.ask(
                Command(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, fields), STATUS_TIMEOUT_S
            )
        except (TimeoutError, ConnectionError):
            continue
        if response.code == ResponseCode.SUCCESS and response.body:
            body = parse(bytes(response.body)).value
            offset_tables[member.client_id] = body.get("messageQueueTable", {}) if isinstance(body, dict) else {}
    return answer_to(request, body=write({"consumerTable": offset_tables, "messageQueueTable": {}}))


def _answer_later(
    broker: Broker, request: Command, connection: Connection, answer_task: Coroutine[Any, Any, Command]
) -> None:
    """Send the answer when it arrives."""

    async def answered() -> None:
        answer = await answer_task
        if not request.is_one_way:
            connection.send(answer)

    task = asyncio.ensure_future(answered())
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)


def consumer_connections(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_CONSUMER_CONNECTION_LIST: the clients of a group, and its subscriptions."""
    name = str(header["consumerGroup"])
    group = broker.clients.consumers.get(name)
    if group is None:
        raise Refused(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
    body = {
        "connectionSet": _connections(group.members),
        "consumeFromWhere": group.start,
        "consumeType": group.kind,
        "messageModel": group.model,
        "subscriptionTable": {topic: subscription.record() for topic, subscription in group.subscriptions.items()},
    }
    return answer_to(request, body=write(body))


def producer_connections(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_PRODUCER_CONNECTION_LIST: the clients of a producer group."""
    name = str(header["producerGroup"])
    members = broker.clients.producers.get(name)
    if not members:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
    return answer_to(request, body=write({"connectionSet": _connections(members)}))


def all_producers(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_ALL_PRODUCER_INFO: connected producers by group."""
    producers = {
        group: [
            {
                "clientId": member.client_id,
                "language": member.language,
                "lastUpdateTimestamp": member.heartbeat_ms,
                "remoteIP": connection.peer,
                "version": member.version,
            }
            for connection, member in members.items()
        ]
        for group, members in broker.clients.producers.items()
    }
    return answer_to(request, body=write({"data": producers}))


def _connections(members: Mapping[Connection, Member]) -> list[dict[str, Any]]:
    return [
        {
            "clientAddr": connection.peer,
            "clientId": member.client_id,
            "language": member.language,
            "version": member.version,
        }
        for connection, member in members.items()
    ]


def groups_of_topic(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_TOPIC_CONSUME_BY_WHO: groups that subscribe to a topic now, or have offsets in it."""
    topic, tables = str(header["topic"]), broker.store.tables
    online = [name for name, group in broker.clients.consumers.items() if topic in group.subscriptions]
    groups_with_offsets = [name for name in tables.groups_with_offsets() if topic in tables.topics_of(name)]
    return answer_to(request, body=write({"groupList": list(dict.fromkeys(online + groups_with_offsets))}))


def topics_of_group(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_TOPICS_BY_CONSUMER: topics that a group has offsets in."""
    topics = broker.store.tables.topics_of(str(header["group"]))
    return answer_to(request, body=write({"brokerAddr": broker.address, "topicList": topics}))


HANDLERS: dict[int, Processor] = {
    RequestCode.HEART_BEAT: heart_beat,
    RequestCode.UNREGISTER_CLIENT: unregister,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: consumer_list,
    RequestCode.CHECK_CLIENT_CONFIG: check_config,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: consumer_status,
    RequestCode.GET_CONSUMER_RUNNING_INFO: running_info,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: consume_directly,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: consumer_connections,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: producer_connections,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: groups_of_topic,
    RequestCode.GET_ALL_PRODUCER_INFO: all_producers,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: topics_of_group,
}
