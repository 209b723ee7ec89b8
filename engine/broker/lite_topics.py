"""Lite topics of 5.5: subscriptions of clients to light queues, and pops from them (docs/protocol/broker.md#lite).

A light queue is popped in order, by one client of a group at a time. Subscriptions are in memory only. RocketMQ assigns
queues to clients by events; here a pop reads the queues of its client one after the other. Java:
``PopLiteMessageProcessor``, ``LiteSubscriptionCtlProcessor``, ``LiteSubscriptionRegistryImpl``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import as_objects, read_object
from engine.broker.pop_holds import HeldPop, PopKey, refusal_to_hold
from engine.broker.pop_message import FOUND, FROM_MAX, NOTHING, TOO_LATE_MS, first_offset
from engine.broker.pop_orders import PopOrders
from engine.broker.topics import READ
from engine.codec import pop as codec
from engine.codec.config_tables import TopicConfig
from engine.codec.lite_topics import lite_queue_name, split_lite_queue
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, WrongRequest, see
from engine.remoting.connection import Connection
from engine.remoting.frame import ONE_WAY, Command, answer_to
from engine.store.get_message import GetMessageStatus

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


BIND_TOPIC, SUB_MODEL, RESET_IN_EXCLUSIVE, RESET_ON_LEAVING = (
    "lite.bind.topic",
    "lite.sub.model",
    "lite.sub.reset.offset.exclusive",
    "lite.sub.reset.offset.unsubscribe",
)
"""Attributes of groups."""
_NO_POP_FIELDS = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0"}
_FROM_FIRST, _FROM_LAST = 1, 2
"""Values of an offset option of the type POLICY."""
_UNUSED_MS = 180_000
"""A client that did not pop and did not report its subscription for this time loses it."""
_CLIENT_PREFIX = "%LITE%"
"""Prefix of the names under which pops of clients wait, in the place of a topic."""
_WRONG_OFFSET = {
    GetMessageStatus.OFFSET_TOO_SMALL,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY,
    GetMessageStatus.OFFSET_FOUND_NULL,
}


@dataclass(slots=True)
class LiteSubscription:
    """A client's light queues, in the order in which it is served next."""

    group: str
    topic: str
    connection: Connection
    queues: dict[str, None] = field(default_factory=dict)
    last_pop_ms: int = -1
    last_used_ms: int = 0


class LiteTopics:
    """Subscriptions by client id, and the open pops of light queues (``orders``); neither is stored."""

    def __init__(self, orders: PopOrders) -> None:
        self.clients: dict[str, LiteSubscription] = {}
        self.orders = orders

    def subscribers(self, queue: str, group: str | None = None) -> Iterator[tuple[str, LiteSubscription]]:
        """Yield the clients of a light queue, of one group or of all."""
        for client_id, subscription in self.clients.items():
            if queue in subscription.queues and group in (None, subscription.group):
                yield client_id, subscription

    def forget_unused(self, now: int) -> None:
        """Forget subscriptions that were not used for a while."""
        for client_id, subscription in list(self.clients.items()):
            if now - subscription.last_used_ms > _UNUSED_MS:
                del self.clients[client_id]

    def waiting_keys(self, queue: str, group: str) -> list[PopKey]:
        """Return the keys at which pops of the queue's clients wait."""
        return [waiting_key(client_id, group) for client_id, _ in self.subscribers(queue, group)]


def waiting_key(client_id: str, group: str) -> PopKey:
    """Return the key at which the pops of a client wait."""
    return PopKey(_CLIENT_PREFIX + client_id, group, 0)


# -- subscriptions


def control_subscriptions(broker: Broker, request: Command, _header: Header, connection: Connection) -> Command:
    """LITE_SUBSCRIPTION_CTL: a client adds light queues, removes some, or names all that it subscribes to. Raises
    :class:`Refused`.
    """
    if not request.body:
        raise Refused(ResponseCode.ILLEGAL_OPERATION, "Request body is null.")
    rows = read_object(request.body).get("subscriptionSet")
    if not rows:
        raise Refused(ResponseCode.ILLEGAL_OPERATION, "LiteSubscriptionCtlRequestBody is empty.")
    broker.lite.forget_unused(broker.now())
    for row in as_objects(rows, "subscriptionSet"):
        client_id, group, topic = (str(row.get(name) or "") for name in ("clientId", "group", "topic"))
        if not client_id.strip() or not group.strip() or not topic.strip():
            continue
        lite_topics = row.get("liteTopicSet")
        names = lite_topics if isinstance(lite_topics, list | tuple) else ()
        queues = [lite_queue_name(topic, str(name)) for name in names]
        match row.get("action"):
            case "PARTIAL_ADD":
                _add(broker, client_id, group, topic, queues, connection, row.get("offsetOption"))
            case "PARTIAL_REMOVE":
                _remove(broker, client_id, queues, may_reset=True)
            case "COMPLETE_ADD":
                subscription = broker.lite.clients.get(client_id)
                earlier_queues = subscription.queues if subscription is not None else ()
                _remove(broker, client_id, [name for name in earlier_queues if name not in set(queues)])
                _add(broker, client_id, group, topic, queues, connection, None, takes_over=False)
            case "COMPLETE_REMOVE":
                broker.lite.clients.pop(client_id, None)
    return answer_to(request)


def _attributes(broker: Broker, group: str) -> Mapping[str, str]:
    declared = broker.topics.group(group)
    return declared.attributes if declared is not None else {}


def _add(
    broker: Broker,
    client_id: str,
    group: str,
    topic: str,
    queues: list[str],
    connection: Connection,
    option: Any,
    *,
    takes_over: bool = True,
) -> None:
    declared = broker.topics.group(group)
    if declared is None or not declared.consume_enable:
        raise Refused(
            ResponseCode.ILLEGAL_OPERATION,
            "java.lang.IllegalStateException: Consumer group is not allowed to consume.",
        )
    subscription = broker.lite.clients.setdefault(client_id, LiteSubscription(group, topic, connection))
    subscription.connection, subscription.last_used_ms = connection, broker.now()
    for queue in queues:
        if takes_over and declared.attributes.get(SUB_MODEL) == "Exclusive":
            _exclude_others(broker, client_id, group, queue)
        subscription.queues[queue] = None
        if option is not None:
            _reset(broker, queue, subscription.group, option)
    wake_pop(broker, waiting_key(client_id, subscription.group))


def _remove(broker: Broker, client_id: str, queues: list[str], *, may_reset: bool = False) -> None:
    subscription = broker.lite.clients.get(client_id)
    if subscription is None:
        return
    resets = may_reset and _attributes(broker, subscription.group).get(RESET_ON_LEAVING) == "true"
    for queue in queues:
        if subscription.queues.pop(queue, 0) is None and resets:
            _reset(broker, queue, subscription.group, {"type": "POLICY", "value": _FROM_FIRST})


def _exclude_others(broker: Broker, client_id: str, group: str, queue: str) -> None:
    """In an exclusive group the newest client of a light queue has it alone; the others are notified."""
    parts = split_lite_queue(queue)
    for subscriber_id, subscription in list(broker.lite.subscribers(queue, group)):
        if subscriber_id == client_id:
            continue
        del subscription.queues[queue]
        fields = {"clientId": subscriber_id, "consumerGroup": group, "liteTopic": parts[1] if parts else ""}
        subscription.connection.send(Command(RequestCode.NOTIFY_UNSUBSCRIBE_LITE, fields, flag=ONE_WAY))
        if _attributes(broker, group).get(RESET_IN_EXCLUSIVE) == "true":
            _reset(broker, queue, group, {"type": "POLICY", "value": _FROM_FIRST})


def _reset(broker: Broker, queue: str, group: str, option: Any) -> None:
    """Set the offset from which a group reads a light queue, as a subscription asks for."""
    kind, value = (option.get("type"), option.get("value")) if isinstance(option, Mapping) else (None, None)
    current, offset = broker.store.tables.consumer_offset(group, queue, 0), None
    if kind == "POLICY" and value == _FROM_FIRST:
        offset = 0
    elif kind == "POLICY" and value == _FROM_LAST:
        offset = broker.store.max_offset_in_queue(queue, 0)
    elif kind == "OFFSET" and isinstance(value, int):
        offset = value
    elif kind == "TAIL_N" and isinstance(value, int) and current >= 0:
        offset = max(0, current - value)
    if offset is not None and offset != current:
        broker.resets.set(group, queue, 0, offset)
        broker.lite.orders.clear(queue, group, 0)


# -- pops


def pop_lite_message(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """POP_LITE_MESSAGE: return messages of the light queues of a client, at once or when there are some. Raises
    :class:`Refused` in RocketMQ's order.
    """
    try:
        until_ms = _check_pop(broker, request, header)
    except WrongRequest:
        raise
    except Refused as error:
        error.fields = _NO_POP_FIELDS
        raise
    subscription = broker.lite.clients.get(str(header["clientId"]))
    if subscription is not None:
        subscription.connection = connection
    return _answer(broker, request, header, connection, until_ms)


def _check_pop(broker: Broker, request: Command, header: Header) -> int:
    """Check a pop. Return the time until which it may wait (ms)."""
    config, now, topic, group = broker.config, broker.now(), str(header["topic"]), str(header["consumerGroup"])
    born = now if request.fields.get("bornTime", "0") == "0" else int(header["bornTime"] or 0)
    hold, max_messages = int(header["pollTime"] or 0), int(header["maxMsgNum"] or 0)
    if now - born - hold > TOO_LATE_MS:
        raise Refused(ResponseCode.POLLING_TIMEOUT, f"the broker[{config.broker_ip}] pop message is timeout too much")
    if not config.permission & READ or broker.is_slave:
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip}] pop message is forbidden")
    if max_messages > codec.MAX_POP_MESSAGES:
        words = f"the broker[{config.broker_ip}] pop message's num is greater than 32"
        raise Refused(ResponseCode.INVALID_PARAMETER, words)
    declared = broker.topics.get(topic)
    if declared is None:
        words = f"topic [{topic}] not exist, apply first please! {see(broker.store.release)}"
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, words)
    if not declared.perm & READ:
        raise Refused(ResponseCode.NO_PERMISSION, f"the topic [{topic}] peeking message is forbidden")
    if not is_lite(declared):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"the topic [{topic}] message type not match")
    declared_group = broker.topics.group(group)
    if declared_group is None:
        words = f"subscription group [{group}] not exist, {see(broker.store.release)}"
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, words)
    if not declared_group.consume_enable:
        raise Refused(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}")
    if declared_group.attributes.get(BIND_TOPIC) != topic:
        raise Refused(ResponseCode.INVALID_PARAMETER, f"subscription bind topic not match, {group}")
    return born + hold


def is_lite(topic: TopicConfig) -> bool:
    """Return True if a topic is declared as the parent of lite topics."""
    return topic.attributes.get("message.type") == "LITE"


def _answer(broker: Broker, request: Command, header: Header, connection: Connection, until_ms: int) -> Command | None:
    """Return the answer to a pop; None if it waits."""
    client_id, group, now = str(header["clientId"]), str(header["consumerGroup"]), broker.now()
    bodies, counts = _collect(broker, client_id, group, header, now)
    code, remark = (ResponseCode.SUCCESS, FOUND) if bodies else (ResponseCode.POLLING_TIMEOUT, NOTHING)
    if not bodies:
        key = waiting_key(client_id, group)
        refusal = refusal_to_hold(broker.pops, key, until_ms, may_wait=int(header["pollTime"] or 0) > 0)
        if refusal is None:
            held_pop = HeldPop(
                request, connection, key, until_ms, lambda: _answer(broker, request, header, connection, until_ms)
            )
            broker.pops.hold(held_pop, light_queue_ends(broker, client_id))
            return None
        code = ResponseCode(refusal)
    fields = {
        "popTime": str(now),
        "invisibleTime": str(int(header["invisibleTime"] or 0)),
        "reviveQid": str(codec.ORDERLY),
        "orderCountInfo": ";".join(counts),
    }
    return answer_to(request, code, fields=fields, body=b"".join(bodies), remark=remark)


def light_queue_ends(broker: Broker, client_id: str) -> dict[tuple[str, int], int]:
    """Return the ends of a client's light queues: new messages there wake its requests."""
    subscription = broker.lite.clients.get(client_id)
    queues = subscription.queues if subscription else ()
    return {(name, 0): broker.store.max_offset_in_queue(name, 0) for name in queues}


def _collect(broker: Broker, client_id: str, group: str, header: Header, now: int) -> tuple[list[bytes], list[str]]:
    """Collect messages of a client's light queues, and how often each message was popped before. A queue that had
    messages comes last in the next pop.
    """
    bodies: list[bytes] = []
    counts: list[str] = []
    subscription = broker.lite.clients.get(client_id)
    if subscription is None:
        return bodies, counts
    subscription.last_pop_ms = subscription.last_used_ms = now
    for queue in list(subscription.queues):
        max_messages = int(header["maxMsgNum"] or 0) - len(bodies)
        if max_messages <= 0:
            break
        messages, info = _pop_queue(broker, queue, group, max_messages, header, now)
        if messages:
            bodies += messages
            counts += _message_counts(info, len(messages))
            del subscription.queues[queue]
            subscription.queues[queue] = None
    return bodies, counts


def _pop_queue(
    broker: Broker, queue: str, group: str, max_messages: int, header: Header, now: int
) -> tuple[list[bytes], str]:
    attempt = None if header["attemptId"] is None else str(header["attemptId"])
    if broker.resets.offset(group, queue, 0) is None and broker.lite.orders.is_blocked(queue, group, 0, attempt):
        return [], ""
    offset = _next_offset(broker, queue, group)
    result = broker.store.get_message(group, queue, 0, offset, max_messages)
    if result is not None and result.status in _WRONG_OFFSET:
        broker.store.tables.commit_consumer_offset(group, queue, 0, result.next_begin_offset)
        result = broker.store.get_message(group, queue, 0, result.next_begin_offset, max_messages)
    if result is None:
        return [], ""
    with result:
        if not result.messages:
            return [], ""
        invisible, offsets = int(header["invisibleTime"] or 0), result.queue_offsets
        info = broker.lite.orders.popped(queue, group, 0, offsets, attempt, now, invisible)
        broker.stats.got[group, str(header["topic"]), False].add(len(offsets), sum(map(len, result.messages)))
        return [bytes(message) for message in result.messages], info


def _next_offset(broker: Broker, queue: str, group: str) -> int:
    tables = broker.store.tables
    offset = broker.resets.take(group, queue, 0)
    if offset is not None:
        broker.lite.orders.clear(queue, group, 0)
    else:
        stored = tables.consumer_offset(group, queue, 0)
        if stored >= 0:
            return stored
        offset = first_offset(broker, queue, 0, FROM_MAX)
    tables.commit_consumer_offset(group, queue, 0, offset)
    return offset


def _message_counts(info: str, count: int) -> list[str]:
    """Return the text for each message; Java: ``transformOrderCountInfo``."""
    infos = info.split(";")
    if len(infos) > 1:
        return infos[:-1]
    words = infos[0].split(" ")
    return [words[2] if len(words) == 3 else "0"] * count


def has_lite_message(broker: Broker, client_id: str) -> bool:
    """Return True if a pop of the client would get a message now."""
    subscription = broker.lite.clients.get(client_id)
    if subscription is None:
        return False
    group = subscription.group
    return any(
        broker.store.max_offset_in_queue(queue, 0) > max(broker.store.tables.consumer_offset(group, queue, 0), 0)
        and not broker.lite.orders.is_blocked(queue, group, 0, None)
        for queue in subscription.queues
    )


def wake_lite(broker: Broker, queue: str, group: str) -> None:
    """Retry the pops that wait for a light queue, now that its group may pop again."""
    for key in broker.lite.waiting_keys(queue, group):
        wake_pop(broker, key)


def wake_pop(broker: Broker, key: PopKey) -> None:
    """Retry the first pop and the first notification request that wait at a key."""
    broker.pops.wake_first(key)
    broker.notices.wake_first(key)


# -- popped messages: acknowledged, or invisible for longer


def names_lite_topic(broker: Broker, header: Header) -> bool:
    """Return True if a request is about a message of a lite topic."""
    return broker.store.rules.lite_topics and str(header["liteTopic"] or "").strip() != ""


def acknowledge_lite(broker: Broker, request: Command, header: Header) -> Command:
    """Acknowledge a message of a light queue: ACK_MESSAGE with a ``liteTopic``. Raises :class:`Refused`."""
    topic, group, offset = str(header["topic"]), str(header["consumerGroup"]), int(header["offset"])
    if _attributes(broker, group).get(BIND_TOPIC) != topic:
        raise Refused(ResponseCode.INVALID_PARAMETER, "group type or bind topic not match.")
    queue = lite_queue_name(topic, str(header["liteTopic"]))
    if offset > broker.store.max_offset_in_queue(queue, 0):
        raise Refused(ResponseCode.NO_MESSAGE, "ack offset illegal.")
    handle = _handle(header)
    if int(header["queueId"]) != 0 or not handle.is_orderly:
        raise Refused(ResponseCode.INVALID_PARAMETER, "ack queue illegal.")
    if offset < broker.store.tables.consumer_offset(group, queue, 0):
        return answer_to(request)
    next_offset = broker.lite.orders.acked(queue, group, 0, offset, handle.pop_time)
    if next_offset == -1:
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, "ack offset illegal.")
    if next_offset >= 0:
        if broker.resets.offset(group, queue, 0) is None:
            broker.store.tables.commit_consumer_offset(group, queue, 0, next_offset)
        if not broker.lite.orders.is_blocked(queue, group, 0, None):
            wake_lite(broker, queue, group)
    return answer_to(request)


def postpone_lite(broker: Broker, request: Command, header: Header) -> Command:
    """Keep a message of a light queue invisible: CHANGE_MESSAGE_INVISIBLETIME with a ``liteTopic``."""
    group, offset = str(header["consumerGroup"]), int(header["offset"])
    queue = lite_queue_name(str(header["topic"]), str(header["liteTopic"]))
    if offset > broker.store.max_offset_in_queue(queue, 0):
        return answer_to(request, ResponseCode.NO_MESSAGE, fields=_NO_POP_FIELDS, remark=NOT_SET)
    handle = _handle(header)
    if offset < broker.store.tables.consumer_offset(group, queue, 0):
        return answer_to(request, fields=_NO_POP_FIELDS, remark=NOT_SET)
    visible_at = broker.now() + int(header["invisibleTime"])
    broker.lite.orders.postponed(queue, group, 0, offset, handle.pop_time, visible_at, suspends=bool(header["suspend"]))
    fields = {
        "popTime": str(handle.pop_time),
        "invisibleTime": str(visible_at - handle.pop_time),
        "reviveQid": str(handle.revive_queue),
    }
    return answer_to(request, fields=fields, remark=NOT_SET)


def _handle(header: Header) -> codec.Handle:
    try:
        return codec.Handle.parse(str(header["extraInfo"]))
    except ValueError as error:
        raise WrongRequest(f"java.lang.IllegalArgumentException: {error}") from None


HANDLERS: dict[int, Processor] = {
    RequestCode.POP_LITE_MESSAGE: pop_lite_message,
    RequestCode.LITE_SUBSCRIPTION_CTL: control_subscriptions,
}
