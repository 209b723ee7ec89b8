"""Requests of a client that pops: messages, acknowledgements, longer invisible times, assignments of queues.

Brokers of 5.x only (docs/protocol/pop.md, #consumer). Java: ``MQClientAPIImpl.popMessageAsync`` and its
neighbours, ``MQClientInstance.queryAssignment``. :mod:`engine.client.popping` has the consumer that sends these
requests.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.callbacks import system_clock
from engine.client.errors import AnswerNotUnderstood, BrokerRefused, NoRoute, WrongMessage
from engine.client.instance import FAILURES, ClientInstance, fields_as_text
from engine.client.messages import ReceivedMessage, read_messages
from engine.client.routes import MASTER, MessageQueue
from engine.codec import pop as codec
from engine.codec import properties as props
from engine.remoting.answers import json_object, member_object, member_objects, reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
from engine.remoting.subscriptions import Subscription

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
    topic computes it from its heartbeats; None where it does not know the group or the topic yet. ``strategy`` is AVG
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
        raise NoRoute(f"No route info of this topic: {topic}")
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
    message.queue = MessageQueue(codec.normal_topic(message.topic, group), broker, message.queue_id)
    if POP_CK not in message.properties:
        mark = codec.mark_of(message.topic)
        start = int(starts.get((mark, message.queue_id), message.queue_offset))
        handle = codec.Handle(start, popped, invisible, revive_queue, mark, broker)
        message.properties[POP_CK] = handle.of_message(message.queue_id, message.queue_offset)
    message.topic = message.queue.topic
    message.properties.setdefault(props.FIRST_POP_TIME, str(popped))


async def _with_handle(
    instance: ClientInstance, code: int, group: str, message: ReceivedMessage, **extra_fields: object
) -> tuple[codec.Handle, Command]:
    text = message.properties.get(POP_CK)
    if text is None:
        raise WrongMessage("the message was not popped: it has no property POP_CK")
    handle = codec.Handle.parse(text)
    topic = codec.real_topic(message.queue.topic, group, handle.mark)
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
    new = codec.Handle(message.queue_offset, pop_time, invisible_ms, revive_queue, handle.mark, handle.broker_name)
    message.properties[POP_CK] = new.of_message(message.queue_id, message.queue_offset)


def masters(brokers: Mapping[str, Mapping[int, str]]) -> Iterable[str]:
    """Return the names of a route's brokers that have a master."""
    return sorted(name for name, addresses in brokers.items() if MASTER in addresses)
