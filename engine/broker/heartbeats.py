"""HEART_BEAT, UNREGISTER_CLIENT, CHECK_CLIENT_CONFIG, who consumes: the requests about clients
(docs/protocol/broker.md#clients).

Java: ``ClientManageProcessor``, ``ConsumerManageProcessor``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.broker.broker import Broker, Header, Processor
from engine.broker.clients import ConsumerGroup, Member
from engine.broker.json_bodies import as_text, read_object, read_object_or_none, write
from engine.broker.topics import READ, RETRY, WRITE
from engine.errors import BadFilter
from engine.releases import JsonParser
from engine.remoting.codes import Answer, Refused, WrongRequest
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.remoting.subscriptions import TAG, Subscription
from engine.store.message_filter import SqlFilter

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
    """34: who is there, and what its groups subscribe to."""
    told = read_object(request.body)
    client_id = str(told.get("clientID") or "")
    for one in _objects(told, "producerDataSet"):
        if name := str(one.get("groupName") or ""):
            broker.clients.add_producer(name, connection, _member(broker, request, client_id))
    for one in _objects(told, "consumerDataSet"):
        if one.get("groupName") is None:
            continue
        wanted = _group(one, broker.store.rules.json_parser)
        declared = broker.topics.group(wanted.name)
        if declared is not None:
            broker.topics.create_plain(RETRY + wanted.name, max(declared.retry_queue_nums, 1), READ | WRITE)
        if broker.clients.add_consumer(wanted, connection, _member(broker, request, client_id)):
            broker.tell_members(broker.clients.consumers[wanted.name])
        broker.filters.register(wanted.name, wanted.subscriptions.values())
    return answer_to(request)


def _objects(told: Mapping[Any, Any], name: str) -> list[Mapping[Any, Any]]:
    """The rows of a list of objects. Raises :class:`Refused` where it is something else."""
    found = told.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise Refused(Answer.SYSTEM_ERROR, f"{name}: expected a list of objects")
    return found


def _member(broker: Broker, request: Command, client_id: str) -> Member:
    return Member(client_id, request.language, request.version, broker.now())


def _group(told: Mapping[Any, Any], parser: JsonParser) -> ConsumerGroup:
    """What a consumer says of its group, which may have an empty name."""
    found = ConsumerGroup(
        as_text(told.get("groupName"), parser) or "",
        _word(told.get("consumeType"), _TYPES, 1),
        _word(told.get("messageModel"), _MODELS, 1),
        _word(told.get("consumeFromWhere"), _STARTS, 0),
    )
    for one in _objects(told, "subscriptionDataSet"):
        subscription = subscription_of(one)
        found.subscriptions[subscription.topic] = subscription
    return found


def _word(value: Any, words: tuple[str, ...], usual: int) -> str:
    """An enum as its name or, as C++ clients send it, its ordinal."""
    if isinstance(value, int) and 0 <= value < len(words):
        return words[value]
    return str(value) if isinstance(value, str) else words[usual]


def subscription_of(told: Mapping[Any, Any]) -> Subscription:
    """A ``SubscriptionData`` in any client's spelling: tags and their hashes are the client's, whatever it says."""
    version = told.get("subVersion")
    text = str(version or 0)
    number = int(text) if text.lstrip("-").isdecimal() else 0
    return Subscription(
        str(told.get("topic") or ""),
        str(told.get("subString") or ""),
        number,
        told.get("expressionType") or TAG,
        tuple(str(tag) for tag in _list(told, "tagsSet")),
        tuple(_codes(_list(told, "codeSet"))),
        class_filter=told.get("classFilterMode") is True,
    )


def _list(told: Mapping[Any, Any], name: str) -> list[Any]:
    found = told.get(name)
    return found if isinstance(found, list) else []


def _codes(told: list[Any]) -> Iterator[int]:
    """Hashes as numbers, or as C++ clients send them, as text."""
    for one in told:
        text = str(one)
        if text.lstrip("-").isdecimal():
            yield int(text)


def unregister(broker: Broker, request: Command, header: Header, connection: Connection) -> Command:
    """35: a client leaves a producer group, a consumer group, or both; an empty name is none."""
    if header["producerGroup"]:
        broker.clients.remove_producer(header["producerGroup"], connection)
    if header["consumerGroup"]:
        left = broker.clients.remove_consumer(header["consumerGroup"], connection)
        if left is not None:
            broker.tell_members(left)
    return answer_to(request)


def check_config(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """46: whether this broker takes a subscription that is no list of tags."""
    told = read_object_or_none(request.body).get("subscriptionData")
    if told in (None, "", []):
        return answer_to(request)
    if not isinstance(told, Mapping):
        raise WrongRequest("subscriptionData: expected an object")
    wanted = subscription_of(told)
    if wanted.kind == TAG:
        return answer_to(request)
    if not broker.config.property_filter:
        words = f"The broker does not support consumer to filter message by {wanted.kind}"
        raise Refused(Answer.SYSTEM_ERROR, words)
    try:
        SqlFilter(wanted.expression)
    except BadFilter as error:
        raise Refused(Answer.SUBSCRIPTION_PARSE_FAILED, str(error)) from error
    return answer_to(request)


def consumer_list(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """38: the clients of a group, for its members to share the queues."""
    group = broker.clients.consumers.get(header["consumerGroup"])
    if group is None:
        raise Refused(Answer.SYSTEM_ERROR, f"no consumer for this group, {header['consumerGroup']}")
    return answer_to(request, body=write({"consumerIdList": group.client_ids}))


ANSWERS: dict[int, Processor] = {34: heart_beat, 35: unregister, 38: consumer_list, 46: check_config}
