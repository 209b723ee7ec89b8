"""HEART_BEAT, UNREGISTER_CLIENT, CHECK_CLIENT_CONFIG, list of consumers: the requests about clients
(docs/protocol/broker.md#clients).

Java: ``ClientManageProcessor``, ``ConsumerManageProcessor``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.broker.clients import ConsumerGroup, Member
from engine.broker.json_bodies import as_text, read_object, read_object_or_none, write
from engine.broker.topics import READ, WRITE
from engine.errors import BadFilter
from engine.releases import JsonParser
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.subscriptions import TAG, Subscription
from engine.store.message_filter import SqlFilter
from engine.system_names import RETRY_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


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
    """Return the rows of a list of objects. Raises :class:`Refused` where it is something else."""
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


ANSWERS: dict[int, Processor] = {
    RequestCode.HEART_BEAT: heart_beat,
    RequestCode.UNREGISTER_CLIENT: unregister,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: consumer_list,
    RequestCode.CHECK_CLIENT_CONFIG: check_config,
}
