"""Lite topics of 5.5: which client subscribes to which light queues of a topic, pops from them, and figures about them
(docs/protocol/broker.md#lite).

A light queue is popped in order, by one client of a group at a time; what it holds is in memory only. RocketMQ hands
out queues to clients by events; here a pop looks at the queues of its client. Java: ``PopLiteMessageProcessor``,
``LiteSubscriptionCtlProcessor``, ``LiteSubscriptionRegistryImpl``, ``LiteManagerProcessor``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import as_objects, read_object, write
from engine.broker.pop_holds import HeldPop, PopKey, refusal_to_hold
from engine.broker.pop_message import (
    FOUND,
    FROM_MAX,
    NOTHING,
    TOO_LATE_MS,
    first_offset,
)
from engine.broker.pop_orders import PopOrders
from engine.broker.query_message import store_time_at
from engine.broker.topics import READ
from engine.codec import pop as codec
from engine.codec.config_tables import SubscriptionGroup, TopicConfig
from engine.codec.lite_topics import lite_queue_name, split_lite_queue
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, WrongRequest, see
from engine.remoting.connection import Connection
from engine.remoting.frame import ONE_WAY, Command, answer_to
from engine.store.get_message import GetMessageStatus
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


BIND_TOPIC, SUB_MODEL, RESET_IN_EXCLUSIVE, RESET_ON_LEAVING, EXPIRATION = (
    "lite.bind.topic",
    "lite.sub.model",
    "lite.sub.reset.offset.exclusive",
    "lite.sub.reset.offset.unsubscribe",
    "lite.topic.expiration",
)
"""Attributes of groups; the last one of topics."""
_ZEROS = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0"}
_FROM_FIRST, _FROM_LAST = 1, 2
"""Values of an offset option of the type POLICY."""
_MAX_LISTED = 10_000
_MAX_LIGHT_QUEUES = 20_000
"""Default of ``maxLmqConsumeQueueNum``."""
_UNUSED_MS = 180_000
"""A client that did not pop and did not report its subscription for this time loses it."""
_CLIENT = "%LITE%"
"""Prefix of the keys at which pops of clients wait."""
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
    """Subscriptions of clients by their ids, and what groups hold of light queues; nothing of it is stored."""

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
        return [key_of(client_id, group) for client_id, _ in self.subscribers(queue, group)]


def key_of(client_id: str, group: str) -> PopKey:
    """Return the key at which the pops of a client wait."""
    return PopKey(_CLIENT + client_id, group, 0)


# -- subscriptions


def control_subscriptions(broker: Broker, request: Command, _header: Header, connection: Connection) -> Command:
    """LITE_SUBSCRIPTION_CTL: a client adds or removes light queues, or names all that it wants. Raises
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
                _remove(broker, client_id, queues, resets=True)
            case "COMPLETE_ADD":
                subscription = broker.lite.clients.get(client_id)
                earlier_queues = subscription.queues if subscription is not None else ()
                _remove(broker, client_id, [name for name in earlier_queues if name not in set(queues)])
                _add(broker, client_id, group, topic, queues, connection, None, excludes=False)
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
    excludes: bool = True,
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
        if excludes and declared.attributes.get(SUB_MODEL) == "Exclusive":
            _exclude_others(broker, client_id, group, queue)
        subscription.queues[queue] = None
        if option is not None:
            _reset(broker, queue, subscription.group, option)
    _wake(broker, key_of(client_id, subscription.group))


def _remove(broker: Broker, client_id: str, queues: list[str], *, resets: bool = False) -> None:
    subscription = broker.lite.clients.get(client_id)
    if subscription is None:
        return
    resets = resets and _attributes(broker, subscription.group).get(RESET_ON_LEAVING) == "true"
    for queue in queues:
        if subscription.queues.pop(queue, 0) is None and resets:
            _reset(broker, queue, subscription.group, {"type": "POLICY", "value": _FROM_FIRST})


def _exclude_others(broker: Broker, client_id: str, group: str, queue: str) -> None:
    """In an exclusive group the newest client of a light queue has it alone; the others are notified."""
    parts = split_lite_queue(queue)
    for other, subscription in list(broker.lite.subscribers(queue, group)):
        if other == client_id:
            continue
        del subscription.queues[queue]
        fields = {"clientId": other, "consumerGroup": group, "liteTopic": parts[1] if parts else ""}
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
        until = _check_pop(broker, request, header)
    except WrongRequest:
        raise
    except Refused as error:
        error.fields = _ZEROS
        raise
    subscription = broker.lite.clients.get(str(header["clientId"]))
    if subscription is not None:
        subscription.connection = connection
    return _answer(broker, request, header, connection, until)


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
    if not _is_lite(declared):
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


def _is_lite(topic: TopicConfig) -> bool:
    return topic.attributes.get("message.type") == "LITE"


def _answer(broker: Broker, request: Command, header: Header, connection: Connection, until: int) -> Command | None:
    """Return the answer to a pop; None if it waits."""
    client_id, group, now = str(header["clientId"]), str(header["consumerGroup"]), broker.now()
    bodies, counts = _collect(broker, client_id, group, header, now)
    code, remark = (ResponseCode.SUCCESS, FOUND) if bodies else (ResponseCode.POLLING_TIMEOUT, NOTHING)
    if not bodies:
        key = key_of(client_id, group)
        refusal = refusal_to_hold(broker.pops, key, until, may_wait=int(header["pollTime"] or 0) > 0)
        if refusal is None:
            held = HeldPop(request, connection, key, until, lambda: _answer(broker, request, header, connection, until))
            broker.pops.hold(held, ends_of(broker, client_id))
            return None
        code = ResponseCode(refusal)
    fields = {
        "popTime": str(now),
        "invisibleTime": str(int(header["invisibleTime"] or 0)),
        "reviveQid": str(codec.ORDERLY),
        "orderCountInfo": ";".join(counts),
    }
    return answer_to(request, code, fields=fields, body=b"".join(bodies), remark=remark)


def ends_of(broker: Broker, client_id: str) -> dict[tuple[str, int], int]:
    """Return the ends of a client's light queues: new messages there wake its requests."""
    subscription = broker.lite.clients.get(client_id)
    queues = subscription.queues if subscription else ()
    return {(name, 0): broker.store.max_offset_in_queue(name, 0) for name in queues}


def _collect(broker: Broker, client_id: str, group: str, header: Header, now: int) -> tuple[list[bytes], list[str]]:
    """Collect messages of a client's light queues, and how often each one was popped before. A queue that gave some is
    the last one next time.
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
        _wake(broker, key)


def _wake(broker: Broker, key: PopKey) -> None:
    broker.pops.wake_first(key)
    broker.notices.wake_first(key)


# -- ends of popped messages


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
    following = broker.lite.orders.acked(queue, group, 0, offset, handle.pop_time)
    if following == -1:
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, "ack offset illegal.")
    if following >= 0:
        if broker.resets.offset(group, queue, 0) is None:
            broker.store.tables.commit_consumer_offset(group, queue, 0, following)
        if not broker.lite.orders.is_blocked(queue, group, 0, None):
            wake_lite(broker, queue, group)
    return answer_to(request)


def postpone_lite(broker: Broker, request: Command, header: Header) -> Command:
    """Keep a message of a light queue invisible: CHANGE_MESSAGE_INVISIBLETIME with a ``liteTopic``."""
    group, offset = str(header["consumerGroup"]), int(header["offset"])
    queue = lite_queue_name(str(header["topic"]), str(header["liteTopic"]))
    if offset > broker.store.max_offset_in_queue(queue, 0):
        return answer_to(request, ResponseCode.NO_MESSAGE, fields=_ZEROS, remark=NOT_SET)
    handle = _handle(header)
    if offset < broker.store.tables.consumer_offset(group, queue, 0):
        return answer_to(request, fields=_ZEROS, remark=NOT_SET)
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


# -- figures


def _lite_queues(broker: Broker) -> list[str]:
    return [name for name in broker.store.parts.queues.topics() if split_lite_queue(name) is not None]


def _lite_topic(broker: Broker, name: str) -> TopicConfig:
    declared = broker.topics.get(name)
    if declared is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic [{name}] not exist.")
    if not _is_lite(declared):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"Topic [{name}] type not match.")
    return declared


def _expiration(topic: TopicConfig) -> int:
    return int(topic.attributes.get(EXPIRATION, "-1"))


def _groups_by_topic(broker: Broker) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, group in sorted(broker.store.tables.groups().items()):
        if (topic := group.attributes.get(BIND_TOPIC)) is not None:
            groups.setdefault(topic, []).append(name)
    return groups


def broker_info(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_LITE_INFO: figures about all lite topics."""
    tables, queues = broker.store.tables, broker.store.parts.queues.topics()
    body = {
        "cqTableSize": len(broker.store.parts.queues),
        "currentLmqNum": sum(name.startswith(LMQ_PREFIX) for name in queues),
        "eventMapSize": len(broker.lite.clients),
        "groupMeta": _groups_by_topic(broker),
        "liteSubscriptionCount": sum(len(subscription.queues) for subscription in broker.lite.clients.values()),
        "maxLmqNum": _MAX_LIGHT_QUEUES,
        "offsetTableSize": sum(len(tables.topics_of(group)) for group in tables.groups_with_offsets()),
        "orderInfoCount": len(broker.lite.orders),
        "storeType": "default",
        "topicMeta": {topic.name: _expiration(topic) for topic in tables.topics().values() if _is_lite(topic)},
    }
    return answer_to(request, body=write(body))


def topic_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_PARENT_TOPIC_INFO: expiry, groups and number of lite topics of a topic."""
    topic = _lite_topic(broker, str(header["topic"]))
    light_queues = [name for name in _lite_queues(broker) if (split_lite_queue(name) or ("",))[0] == topic.name]
    body: dict[str, object] = {"liteTopicCount": len(light_queues), "topic": topic.name, "ttl": _expiration(topic)}
    body["lmqNum"] = sum(name.startswith(LMQ_PREFIX) for name in broker.store.parts.queues.topics())
    if topic.name in (groups := _groups_by_topic(broker)):
        body["groups"] = groups[topic.name]
    return answer_to(request, body=write(body))


def lite_topic_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_LITE_TOPIC_INFO: bounds and subscribers of a lite topic."""
    topic, lite_topic = _lite_topic(broker, str(header["parentTopic"])), str(header["liteTopic"])
    queue = lite_queue_name(topic.name, lite_topic)
    end = max(broker.store.max_offset_in_queue(queue, 0), 0)
    body = {
        "liteTopic": lite_topic,
        "parentTopic": topic.name,
        "shardingToBroker": True,
        "subscriber": [
            {"clientId": client_id, "group": subscription.group}
            for client_id, subscription in broker.lite.subscribers(queue)
        ],
        "topicOffset": {
            "lastUpdateTimestamp": store_time_at(broker, queue, 0, end - 1) if end else 0,
            "maxOffset": end,
            "minOffset": max(broker.store.min_offset_in_queue(queue, 0), 0) if end else 0,
        },
    }
    return answer_to(request, body=write(body))


def _lite_group(broker: Broker, name: str) -> SubscriptionGroup:
    declared = broker.topics.group(name)
    if declared is None:
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group [{name}] not exist.")
    return declared


def client_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_LITE_CLIENT_INFO: the light queues of a client."""
    topic = _lite_topic(broker, str(header["parentTopic"]))
    group, client_id = _lite_group(broker, str(header["group"])), str(header["clientId"])
    if group.attributes.get(BIND_TOPIC) != topic.name:
        words = f"Subscription [{group.name}]-[{topic.name}] not match."
        raise Refused(ResponseCode.INVALID_PARAMETER, words)
    subscription = broker.lite.clients.get(client_id)
    body: dict[str, object] = {
        "clientId": client_id,
        "group": group.name,
        "lastAccessTime": subscription.last_pop_ms if subscription else -1,
        "lastConsumeTime": 0,
        "liteTopicCount": len(subscription.queues) if subscription else -1,
        "parentTopic": topic.name,
    }
    if subscription:
        most = min(int(header["maxCount"] or 0), _MAX_LISTED)
        body["liteTopicSet"] = list(subscription.queues)[:most]
    return answer_to(request, body=write(body))


def group_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_LITE_GROUP_INFO: how far a group is in a lite topic, or in all of its topic."""
    group, lite_topic = _lite_group(broker, str(header["group"])), str(header["liteTopic"] or "")
    if not (topic := group.attributes.get(BIND_TOPIC)):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"Group [{group.name}] is not a LITE group.")
    body: dict[str, object] = {"group": group.name, "parentTopic": topic}
    body |= {"totalLagCount": -1, "earliestUnconsumedTimestamp": -1}
    if lite_topic:
        body["liteTopic"] = lite_topic
    queue = lite_queue_name(topic, lite_topic)
    end = broker.store.max_offset_in_queue(queue, 0)
    committed = broker.store.tables.consumer_offset(group.name, queue, 0)
    if end > 0:
        body |= {"totalLagCount": 0, "earliestUnconsumedTimestamp": 0}
    if end > 0 and committed >= 0:
        last = store_time_at(broker, queue, 0, committed - 1) if committed else 0
        body |= {
            "totalLagCount": end - committed,
            "earliestUnconsumedTimestamp": store_time_at(broker, queue, 0, committed),
            "liteTopicOffsetWrapper": {
                "brokerOffset": end,
                "consumerOffset": committed,
                "lastTimestamp": last,
                "pullOffset": 0,
            },
        }
    return answer_to(request, body=write(body), remark=NOT_SET)


def trigger_dispatch(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """TRIGGER_LITE_DISPATCH: retry the pops of a client, or of a group, that wait."""
    group = _lite_group(broker, str(header["group"]))
    if not group.attributes.get(BIND_TOPIC):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"Group [{group.name}] is not a LITE group.")
    for client_id, subscription in list(broker.lite.clients.items()):
        if subscription.group == group.name and str(header["clientId"] or client_id) == client_id:
            _wake(broker, key_of(client_id, group.name))
    return answer_to(request, remark=NOT_SET)


HANDLERS: dict[int, Processor] = {
    RequestCode.POP_LITE_MESSAGE: pop_lite_message,
    RequestCode.LITE_SUBSCRIPTION_CTL: control_subscriptions,
    RequestCode.GET_BROKER_LITE_INFO: broker_info,
    RequestCode.GET_PARENT_TOPIC_INFO: topic_info,
    RequestCode.GET_LITE_TOPIC_INFO: lite_topic_info,
    RequestCode.GET_LITE_CLIENT_INFO: client_info,
    RequestCode.GET_LITE_GROUP_INFO: group_info,
    RequestCode.TRIGGER_LITE_DISPATCH: trigger_dispatch,
}
