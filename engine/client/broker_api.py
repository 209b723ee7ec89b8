"""Requests of clients to brokers, one function a request (docs/protocol/broker.md; pop: docs/protocol/pop.md,
#consumer).

Each raises :class:`BrokerRefused`, :class:`NoRoute`, :class:`AnswerNotUnderstood`, ``OSError`` or
``TimeoutError``. Brokers of 5.x only answer the requests of a client that pops: messages, acknowledgements, longer
invisible times, assignments of queues. Java: ``MQClientAPIImpl``, ``MQAdminImpl``,
``MQClientInstance.queryAssignment``.
"""

from __future__ import annotations

import json
import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.callbacks import system_clock
from engine.client.errors import AnswerNotUnderstood, BrokerRefused, ClientError, NoRoute, WrongMessage
from engine.client.instance import FAILURES, ClientInstance, fields_as_text
from engine.client.messages import MAX_OFFSET, MIN_OFFSET, ReceivedMessage, read_messages
from engine.client.repeated_warnings import warn
from engine.client.routes import MASTER, MessageQueue
from engine.codec import message as codec
from engine.codec import pop as pop_codec
from engine.codec import properties as props
from engine.remoting.answers import json_object, member_object, member_objects, reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
from engine.remoting.subscriptions import SQL92, TAG, Subscription
from engine.sentences import sentence

COMMIT_OFFSET, SUSPEND, SUBSCRIPTION, LITE_PULL = 1, 2, 4, 16
"""Bits of a pull's sysFlag (docs/protocol/broker.md#pull)."""
FIRST_WITH_LITE_PULL = 413
"""Ordinal of 5.0.0."""
FIRST_WITH_SQL = 233
"""Ordinal of 4.1.0."""
OFFSET_TIMEOUT_S, PULL_TIMEOUT_S, LOCK_TIMEOUT_S = 5.0, 30.0, 1.0
"""Seconds to wait for an answer."""
_log = logging.getLogger(__name__)
OFFSET_DELTA = "offsetDelta"
"""Field of a pull's answer: what is added to the queue offsets of the messages of a static topic."""
STATUSES = {
    ResponseCode.SUCCESS: "FOUND",
    ResponseCode.PULL_NOT_FOUND: "NO_NEW_MSG",
    ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MSG",
    ResponseCode.PULL_OFFSET_MOVED: "OFFSET_ILLEGAL",
}


@dataclass(frozen=True, slots=True)
class PullResult:
    """The answer to a pull. ``status`` is FOUND, NO_NEW_MSG, NO_MATCHED_MSG or OFFSET_ILLEGAL; ``from_broker`` is the
    id of the broker that the next pull should ask.
    """

    status: str
    messages: list[ReceivedMessage]
    next_offset: int
    min_offset: int
    max_offset: int
    from_broker: int = MASTER


async def pull(
    instance: ClientInstance,
    group: str,
    queue: MessageQueue,
    subscription: Subscription,
    offset: int,
    *,
    max_messages: int = 32,
    sys_flag: int = SUBSCRIPTION,
    commit: int = 0,
    hold: float = 0.0,
    timeout_s: float = PULL_TIMEOUT_S,
    broker_id: int = MASTER,
) -> PullResult:
    """Pull messages of a queue from ``offset`` on, at most ``max_messages``; the broker may hold the request
    ``hold`` seconds.

    ``commit`` is the group's offset where ``sys_flag`` says so. Tags are compared here once more; SQL92 is not.
    """
    address = instance.queue_address(queue, broker_id)
    if subscription.kind == SQL92 and instance.versions.get(address, FIRST_WITH_SQL) < FIRST_WITH_SQL:
        raise ClientError(f"The broker[{instance.broker_of(queue)}] is too old to filter by SQL92 (4.1.0 does)")
    if broker_id != MASTER:
        sys_flag &= ~COMMIT_OFFSET
    answer = await pull_answer(
        instance,
        address,
        group,
        queue,
        subscription,
        offset,
        max_messages=max_messages,
        sys_flag=sys_flag,
        commit=commit,
        hold=hold,
        timeout_s=timeout_s,
    )
    status = STATUSES[ResponseCode(answer.code)]
    response_fields = answer.fields
    with reading(RequestCode.PULL_MESSAGE, address, AnswerNotUnderstood):
        min_offset, max_offset = int(response_fields.get("minOffset", 0)), int(response_fields.get("maxOffset", 0))
        next_offset = int(response_fields.get("nextBeginOffset", offset))
        from_broker = int(response_fields.get("suggestWhichBrokerId", MASTER))
        messages = read_messages(answer.body, queue) if status == "FOUND" else []
        logical_delta = int(response_fields.get(OFFSET_DELTA, 0))
    for message in messages if logical_delta else ():
        message.queue_offset += logical_delta
    if subscription.tags and subscription.kind == TAG:
        messages = [message for message in messages if message.tags in subscription.tags]
    ends = {MIN_OFFSET: str(min_offset), MAX_OFFSET: str(max_offset)}
    for message in messages:
        message.note(ends)
    return PullResult(status, messages, next_offset, min_offset, max_offset, from_broker)


async def pull_answer(
    instance: ClientInstance,
    address: str,
    group: str,
    queue: MessageQueue,
    subscription: Subscription,
    offset: int,
    *,
    max_messages: int,
    sys_flag: int = SUBSCRIPTION,
    commit: int = 0,
    hold: float = 0.0,
    timeout_s: float = PULL_TIMEOUT_S,
) -> Command:
    """Return the broker's answer to a pull as it is, of one of the codes in :data:`STATUSES`."""
    lite = sys_flag & LITE_PULL and instance.versions.get(address, 0) >= FIRST_WITH_LITE_PULL
    fields = {
        "consumerGroup": group,
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "queueOffset": offset,
        "maxMsgNums": max_messages,
        "sysFlag": sys_flag,
        "commitOffset": commit,
        "suspendTimeoutMillis": int(hold * 1000),
        "subVersion": subscription.version,
        "expressionType": subscription.kind,
        "bname": instance.broker_of(queue),
    }
    if sys_flag & SUBSCRIPTION:
        fields["subscription"] = subscription.expression
    request = Command(RequestCode.LITE_PULL_MESSAGE if lite else RequestCode.PULL_MESSAGE, fields_as_text(fields))
    answer = await instance.ask(address, request, timeout_s)
    if answer.code not in STATUSES:
        raise BrokerRefused(answer.code, answer.remark, address)
    return answer


async def _number(
    instance: ClientInstance, code: int, queue: MessageQueue, name: str = "offset", **extra_fields: object
) -> int:
    fields = {"topic": queue.topic, "queueId": queue.queue_id, "bname": instance.broker_of(queue), **extra_fields}
    address = instance.queue_address(queue)
    answer = await instance.call(address, code, fields, timeout_s=OFFSET_TIMEOUT_S)
    with reading(code, address, AnswerNotUnderstood):
        return int(answer.fields[name])


async def max_offset(instance: ClientInstance, queue: MessageQueue) -> int:
    """GET_MAX_OFFSET: the offset behind the last message."""
    return await _number(instance, RequestCode.GET_MAX_OFFSET, queue)


async def min_offset(instance: ClientInstance, queue: MessageQueue) -> int:
    """GET_MIN_OFFSET: the offset of the first message that is still there."""
    return await _number(instance, RequestCode.GET_MIN_OFFSET, queue)


async def search_offset(instance: ClientInstance, queue: MessageQueue, timestamp: int) -> int:
    """SEARCH_OFFSET_BY_TIMESTAMP: the offset of the first message stored at ``timestamp`` (ms) or later."""
    return await _number(instance, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue, timestamp=timestamp)


async def query_offset(instance: ClientInstance, group: str, queue: MessageQueue) -> int | None:
    """QUERY_CONSUMER_OFFSET: the offset that a group reads next; None if it never committed."""
    try:
        return await _number(instance, RequestCode.QUERY_CONSUMER_OFFSET, queue, consumerGroup=group)
    except BrokerRefused as error:
        if error.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        raise


async def commit_offset(
    instance: ClientInstance, group: str, queue: MessageQueue, offset: int, *, one_way: bool = True
) -> None:
    """UPDATE_CONSUMER_OFFSET: commit the offset that a group reads next; without ``one_way`` wait for the broker's
    answer.
    """
    fields = {
        "consumerGroup": group,
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "commitOffset": offset,
        "bname": instance.broker_of(queue),
    }
    address = instance.queue_address(queue)
    if one_way:
        await instance.tell(address, RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    else:
        await instance.call(address, RequestCode.UPDATE_CONSUMER_OFFSET, fields, timeout_s=OFFSET_TIMEOUT_S)


async def consumer_ids(instance: ClientInstance, group: str, topic: str) -> list[str]:
    """GET_CONSUMER_LIST_BY_GROUP: client ids of a group's consumers, as a broker of the topic knows them; empty where
    it knows none.
    """
    route = await instance.route(topic)
    addresses = [
        address
        for broker_addresses in (route.brokers if route else {}).values()
        for address in broker_addresses.values()
    ]
    if not addresses:
        raise NoRoute(sentence("no broker serves the topic {topic}", topic=topic))
    fields = {"consumerGroup": group}
    address = random.choice(addresses)
    answer = await instance.ask(address, Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields))
    if answer.code != ResponseCode.SUCCESS:
        return []
    with reading(RequestCode.GET_CONSUMER_LIST_BY_GROUP, address, AnswerNotUnderstood):
        client_ids = json_object(answer.body).get("consumerIdList") or []
        if not isinstance(client_ids, list):
            raise TypeError("consumerIdList is no list")
        return [str(client_id) for client_id in client_ids]


async def send_back(
    instance: ClientInstance, group: str, message: ReceivedMessage, delay_level: int, max_reconsume: int
) -> None:
    """CONSUMER_SEND_MSG_BACK: send back a message that was not consumed; it comes again, or becomes a dead letter."""
    fields = {
        "offset": message.physical_offset,
        "group": group,
        "delayLevel": delay_level,
        "originMsgId": message.msg_id,
        "originTopic": message.topic,
        "unitMode": False,
        "maxReconsumeTimes": max_reconsume,
        "bname": instance.broker_of(message.queue),
    }
    await instance.call(
        instance.queue_address(message.queue), RequestCode.CONSUMER_SEND_MSG_BACK, fields, timeout_s=OFFSET_TIMEOUT_S
    )


async def view_message(instance: ClientInstance, queue: MessageQueue, offset_msg_id: str) -> ReceivedMessage:
    """VIEW_MESSAGE_BY_ID: one message by its offset id."""
    parts = codec.parse_offset_message_id(offset_msg_id)
    if parts is None:
        raise ClientError(f"{offset_msg_id!r} is not an offset message id")
    fields = {"offset": parts[1], "topic": queue.topic}
    address = instance.queue_address(queue)
    answer = await instance.call(address, RequestCode.VIEW_MESSAGE_BY_ID, fields, timeout_s=OFFSET_TIMEOUT_S)
    with reading(RequestCode.VIEW_MESSAGE_BY_ID, address, AnswerNotUnderstood):
        (message,) = read_messages(answer.body, queue)
    return message


async def lock(instance: ClientInstance, group: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
    """LOCK_BATCH_MQ: lock queues for a group's orderly consumption. Return those that this client holds now. Brokers
    that do not answer, or not as RocketMQ does, give none.
    """
    locked_queues: set[MessageQueue] = set()
    for broker, broker_queues in _by_broker(instance, queues).items():
        try:
            body = _lock_body(instance, group, broker_queues)
            address = instance.address(broker)
            answer = await instance.call(address, RequestCode.LOCK_BATCH_MQ, {}, body, LOCK_TIMEOUT_S)
            with reading(RequestCode.LOCK_BATCH_MQ, address, AnswerNotUnderstood):
                rows = member_objects(json_object(answer.body), "lockOKMQSet")
                locked_queues |= {
                    MessageQueue(str(row["topic"]), str(row["brokerName"]), int(row["queueId"])) for row in rows
                }
        except (BrokerRefused, NoRoute, OSError, TimeoutError):
            continue
        except AnswerNotUnderstood as error:
            warn(_log, str(error), "%s", error)
    return locked_queues


async def unlock(instance: ClientInstance, group: str, queues: Iterable[MessageQueue]) -> None:
    """UNLOCK_BATCH_MQ: release the locks of queues; one-way."""
    for broker, broker_queues in _by_broker(instance, queues).items():
        await instance.tell(
            instance.address(broker), RequestCode.UNLOCK_BATCH_MQ, {}, _lock_body(instance, group, broker_queues)
        )


def _by_broker(instance: ClientInstance, queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        by_broker[instance.broker_of(queue)].append(queue)
    return by_broker


def _lock_body(instance: ClientInstance, group: str, queues: Iterable[MessageQueue]) -> bytes:
    fields = {
        "clientId": instance.client_id,
        "consumerGroup": group,
        "mqSet": [queue.record() for queue in queues],
        "onlyThisBroker": False,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


async def check_subscription(instance: ClientInstance, group: str, subscription: Subscription) -> None:
    """CHECK_CLIENT_CONFIG: check that a broker accepts a subscription that is no list of tags."""
    route = await instance.route(subscription.topic)
    addresses = [
        address
        for broker_addresses in (route.brokers if route else {}).values()
        for address in broker_addresses.values()
    ]
    if addresses:
        fields = {
            "clientId": instance.client_id,
            "group": group,
            "namespace": None,
            "subscriptionData": subscription.record(),
        }
        await instance.call(random.choice(addresses), RequestCode.CHECK_CLIENT_CONFIG, {}, json.dumps(fields).encode())


POP, PULL = "POP", "PULL"
"""How a group gets a topic's messages (Java: ``MessageRequestMode``)."""
POP_CK = "POP_CK"
"""The property that a popped message is acknowledged with."""
EVERY_QUEUE = -1
"""``queueId`` of a pop that takes from all queues of a broker."""


@dataclass(frozen=True, slots=True)
class PopResult:
    """The answer to a pop; each message has its handle as the property POP_CK. ``rest`` is how many messages remain."""

    status: str
    messages: list[ReceivedMessage]
    pop_time: int
    rest: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """A queue that a broker assigns to a client, to pop or to pull. A queue id of −1 stands for every queue of the
    topic on that broker.
    """

    queue: MessageQueue
    mode: str


async def query_assignment(
    instance: ClientInstance, group: str, topic: str, *, strategy: str = "AVG"
) -> list[Assignment] | None:
    """QUERY_ASSIGNMENT: the queues of ``topic``, on all brokers, that are assigned to this client, as a broker of the
    topic computes it from its heartbeats; None if it does not know the group or the topic yet. ``strategy`` is AVG
    or AVG_BY_CIRCLE.

    Raises :class:`BrokerRefused`, :class:`NoRoute`, :class:`AnswerNotUnderstood`, ``OSError``,
    ``TimeoutError``: the last of
    them where no broker answers.
    """
    fields = {
        "clientId": instance.client_id,
        "consumerGroup": group,
        "messageModel": "CLUSTERING",
        "strategyName": strategy,
        "topic": topic,
    }
    body = json.dumps(fields, separators=(",", ":")).encode()
    masters = await _addresses(instance, topic)
    random.shuffle(masters)
    last_error: Exception = NoRoute(f"No route info of this topic: {topic}")
    for address in masters:
        try:
            answer = await instance.call(address, RequestCode.QUERY_ASSIGNMENT, {}, body)
            with reading(RequestCode.QUERY_ASSIGNMENT, address, AnswerNotUnderstood):
                return _assignments(bytes(answer.body))
        except FAILURES as error:
            last_error = error
    raise last_error


def _assignments(body: bytes) -> list[Assignment] | None:
    table = json_object(body) if body else {}
    if table.get("messageQueueAssignments") is None:
        return None
    assignments = []
    for row in member_objects(table, "messageQueueAssignments"):
        queue = member_object(row, "messageQueue")
        queue_name = MessageQueue(str(queue["topic"]), str(queue["brokerName"]), int(queue.get("queueId", -1)))
        assignments.append(Assignment(queue_name, str(row.get("mode") or PULL)))
    return assignments


async def set_request_mode(
    instance: ClientInstance, group: str, topic: str, mode: str, *, share_queues: int = 0
) -> None:
    """401, to each master of the topic: the group pops (``POP``) or pulls (``PULL``) it from now on, if its members
    ask brokers. With ``share_queues`` below the number of members each pops its own queues and those of that many
    members behind it; 0: all queues (Java: ``popShareQueueNum``).

    Raises :class:`BrokerRefused` (16 for a retry topic, 17 and 26 for what is not known), :class:`NoRoute`,
    ``OSError``, ``TimeoutError``.
    """
    if mode not in (POP, PULL):
        raise WrongMessage(f"mode is {mode!r}, expected {POP} or {PULL}")
    fields = {"consumerGroup": group, "mode": mode, "popShareQueueNum": share_queues, "topic": topic}
    body = json.dumps(fields, separators=(",", ":")).encode()
    for address in await _addresses(instance, topic):
        await instance.call(address, RequestCode.SET_MESSAGE_REQUEST_MODE, {}, body)


async def _addresses(instance: ClientInstance, topic: str) -> list[str]:
    """Return the topic's masters. Raises :class:`NoRoute`."""
    route = await instance.fresh_route(topic)
    addresses = [route.brokers[name][MASTER] for name in masters(route.brokers)] if route is not None else []
    if not addresses:
        raise NoRoute(sentence("No route info of this topic: {topic}", topic=topic))
    return addresses


async def pop(
    instance: ClientInstance,
    group: str,
    broker: str,
    subscription: Subscription,
    *,
    queue_id: int = EVERY_QUEUE,
    max_messages: int = 32,
    invisible: float = 60.0,
    hold: float = 0.0,
    from_first: bool = False,
    orderly: bool = False,
    attempt: str | None = None,
) -> PopResult:
    """Pop messages of a topic on one broker, invisible to others for ``invisible`` seconds; the broker may hold the
    request ``hold`` seconds. ``from_first``: where a group begins that has no offset. ``orderly``: no queue of
    which the group still holds messages; a request that is repeated with the same ``attempt`` (any text) gets
    what the first one should have got.

    Raises :class:`BrokerRefused`, :class:`NoRoute`, ``OSError``, ``TimeoutError``.
    """
    address = instance.address(broker)
    fields = {
        "consumerGroup": group,
        "topic": subscription.topic,
        "queueId": queue_id,
        "maxMsgNums": max_messages,
        "invisibleTime": int(invisible * 1000),
        "pollTime": int(hold * 1000),
        "bornTime": system_clock(),
        "initMode": 0 if from_first else 1,
        "expType": subscription.kind,
        "exp": subscription.expression,
        "order": orderly,
        "attemptId": attempt,
        "bname": broker,
    }
    answer = await instance.ask(address, Command(RequestCode.POP_MESSAGE, fields_as_text(fields)), hold + 10.0)
    if answer.code in (ResponseCode.POLLING_TIMEOUT, ResponseCode.POLLING_FULL, ResponseCode.PULL_NOT_FOUND):
        return PopResult("NO_NEW_MSG" if answer.code != ResponseCode.POLLING_FULL else "POLLING_FULL", [], 0, 0)
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerRefused(answer.code, answer.remark, address)
    response_fields = answer.fields
    with reading(RequestCode.POP_MESSAGE, address, AnswerNotUnderstood):
        messages = read_messages(answer.body, MessageQueue(subscription.topic, broker, queue_id))
        starts = _by_queue(response_fields.get("startOffsetInfo", ""))
        pop_time, invisible_ms = int(response_fields.get("popTime", 0)), int(response_fields.get("invisibleTime", 0))
        revive_queue, remaining = int(response_fields.get("reviveQid", 0)), int(response_fields.get("restNum", 0))
        counts = _counts(response_fields.get("orderCountInfo", "")) if orderly else {}
        for message in messages:
            if orderly:
                key = message.queue_id, message.queue_offset
                message.reconsume_times = counts.get(key, counts.get((message.queue_id, -1), 0))
            _give_handle(message, group, broker, starts, pop_time, invisible_ms, revive_queue)
    return PopResult("FOUND", messages, pop_time, remaining)


def _by_queue(text: str) -> dict[tuple[str, int], str]:
    """Return the third word of each entry of a response text (docs/protocol/pop.md#response-texts), by retry mark
    and queue.
    """
    third_words = {}
    for entry in text.split(";"):
        words = entry.split(" ")
        if len(words) == 3 and words[1].isdecimal():
            third_words[words[0], int(words[1])] = words[2]
    return third_words


def _counts(text: str) -> dict[tuple[int, int], int]:
    """``orderCountInfo``: how often messages were popped before, by queue and offset, −1 for all others of the
    queue.
    """
    counts = {}
    for entry in text.split(";"):
        words = entry.split(" ")
        if len(words) == 3 and words[2].isdecimal():
            queue, _, offset = words[1].removeprefix("qo").partition("%")
            if queue.isdecimal() and (offset.isdecimal() or not offset):
                counts[int(queue), int(offset) if offset else -1] = int(words[2])
    return counts


def _give_handle(
    message: ReceivedMessage,
    group: str,
    broker: str,
    starts: Mapping[tuple[str, int], str],
    popped: int,
    invisible: int,
    revive_queue: int,
) -> None:
    """Set the handle of a message: those of a retry topic bring it, all others get it from the answer
    (docs/protocol/pop.md#handle).
    """
    message.queue = MessageQueue(pop_codec.normal_topic(message.topic, group), broker, message.queue_id)
    if POP_CK not in message.properties:
        mark = pop_codec.mark_of(message.topic)
        start = int(starts.get((mark, message.queue_id), message.queue_offset))
        handle = pop_codec.Handle(start, popped, invisible, revive_queue, mark, broker)
        message.properties[POP_CK] = handle.of_message(message.queue_id, message.queue_offset)
    message.topic = message.queue.topic
    message.properties.setdefault(props.FIRST_POP_TIME, str(popped))


async def _with_handle(
    instance: ClientInstance, code: int, group: str, message: ReceivedMessage, **extra_fields: object
) -> tuple[pop_codec.Handle, Command]:
    text = message.properties.get(POP_CK)
    if text is None:
        raise WrongMessage("the message was not popped: it has no property POP_CK")
    handle = pop_codec.Handle.parse(text)
    topic = pop_codec.real_topic(message.queue.topic, group, handle.mark)
    fields = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": message.queue_id,
        "offset": message.queue_offset,
        "extraInfo": text,
        "bname": handle.broker_name,
        **extra_fields,
    }
    return handle, await instance.call(instance.address(handle.broker_name), code, fields)


async def acknowledge(instance: ClientInstance, group: str, message: ReceivedMessage) -> None:
    """ACK_MESSAGE: acknowledge a popped message. Too late, or twice, is no error.

    Raises :class:`BrokerRefused`, :class:`WrongMessage`, ``OSError``, ``TimeoutError``.
    """
    await _with_handle(instance, RequestCode.ACK_MESSAGE, group, message)


async def change_invisible(instance: ClientInstance, group: str, message: ReceivedMessage, invisible: float) -> None:
    """CHANGE_MESSAGE_INVISIBLETIME: make a popped message come again in ``invisible`` seconds from now; it gets a new
    handle. An acknowledged message does not change.
    """
    handle, answer = await _with_handle(
        instance, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, group, message, invisibleTime=int(invisible * 1000)
    )
    response_fields = answer.fields
    with reading(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, instance.address(handle.broker_name), AnswerNotUnderstood):
        pop_time = int(response_fields.get("popTime", 0))
        invisible_ms = int(response_fields.get("invisibleTime", 0))
        revive_queue = int(response_fields.get("reviveQid", 0))
    if not pop_time:
        return  # acknowledged already: there is nothing to change (docs/protocol/pop.md#orderly)
    new = pop_codec.Handle(message.queue_offset, pop_time, invisible_ms, revive_queue, handle.mark, handle.broker_name)
    message.properties[POP_CK] = new.of_message(message.queue_id, message.queue_offset)


def masters(brokers: Mapping[str, Mapping[int, str]]) -> Iterable[str]:
    """Return the names of a route's brokers that have a master."""
    return sorted(name for name, addresses in brokers.items() if MASTER in addresses)
