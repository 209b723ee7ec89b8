"""What a client that pops asks brokers: messages, their acknowledgement, more time for them, which queues are whose.

Brokers of 5.x only (docs/protocol/pop.md, #consumer). Java: ``MQClientAPIImpl.popMessageAsync`` and what stands around
it, ``MQClientInstance.queryAssignment``. The consumer that asks all this by itself is :mod:`engine.client.popping`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.client.errors import AnswerNotUnderstood, BrokerRefused, NoRoute, WrongMessage
from engine.client.events import now_ms
from engine.client.instance import FAILURES, ClientInstance, spelled
from engine.client.messages import ReceivedMessage, read_messages
from engine.client.routes import MASTER, MessageQueue
from engine.codec import pop as codec
from engine.codec import properties as props
from engine.remoting.answers import json_object, member_object, member_objects, reading
from engine.remoting.codes import Answer
from engine.remoting.frame import Command
from engine.remoting.subscriptions import Subscription

POP_MESSAGE, ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME = 200_050, 200_051, 200_053
QUERY_ASSIGNMENT, SET_MESSAGE_REQUEST_MODE = 400, 401
POP, PULL = "POP", "PULL"
"""How a group gets a topic's messages (Java: ``MessageRequestMode``)."""
POP_CK = "POP_CK"
"""The property that a popped message is acknowledged with."""
EVERY_QUEUE = -1
"""``queueId`` of a pop that takes from all queues of a broker."""


@dataclass(frozen=True, slots=True)
class PopResult:
    """The answer to a pop; each message has its handle as the property POP_CK. ``rest`` messages are left."""

    status: str
    messages: list[ReceivedMessage]
    pop_time: int
    rest: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """A queue that a broker gives a client, and whether that is to pop or to pull it. A queue id of −1 stands for every
    queue of the topic on that broker.
    """

    queue: MessageQueue
    mode: str


async def query_assignment(
    instance: ClientInstance, group: str, topic: str, *, strategy: str = "AVG"
) -> list[Assignment] | None:
    """400: which queues of ``topic``, on whatever brokers, are this client's, as one broker of the topic reckons it
    from the heartbeats that it got; None where it says nothing (the group or the topic is not known there yet).
    ``strategy`` is AVG or AVG_BY_CIRCLE.

    Raises :class:`BrokerRefused`, :class:`NoRoute`, :class:`AnswerNotUnderstood`, ``OSError``,
    ``TimeoutError``: the last of
    them where no broker answers.
    """
    told = {
        "clientId": instance.client_id,
        "consumerGroup": group,
        "messageModel": "CLUSTERING",
        "strategyName": strategy,
        "topic": topic,
    }
    body = json.dumps(told, separators=(",", ":")).encode()
    masters = await _addresses(instance, topic)
    random.shuffle(masters)
    last: Exception = NoRoute(f"No route info of this topic: {topic}")
    for address in masters:
        try:
            answer = await instance.call(address, QUERY_ASSIGNMENT, {}, body)
            with reading(QUERY_ASSIGNMENT, address, AnswerNotUnderstood):
                return _assignments(bytes(answer.body))
        except FAILURES as error:
            last = error
    raise last


def _assignments(body: bytes) -> list[Assignment] | None:
    table = json_object(body) if body else {}
    if table.get("messageQueueAssignments") is None:
        return None
    found = []
    for row in member_objects(table, "messageQueueAssignments"):
        queue = member_object(row, "messageQueue")
        named = MessageQueue(str(queue["topic"]), str(queue["brokerName"]), int(queue.get("queueId", -1)))
        found.append(Assignment(named, str(row.get("mode") or PULL)))
    return found


async def set_request_mode(
    instance: ClientInstance, group: str, topic: str, mode: str, *, share_queues: int = 0
) -> None:
    """401, to each master of the topic: the group pops (``POP``) or pulls (``PULL``) it from now on, as far as its
    members ask brokers. With ``share_queues`` below the number of members each pops its own queues and those of so many
    members behind it; 0: all queues (Java: ``popShareQueueNum``).

    Raises :class:`BrokerRefused` (16 for a retry topic, 17 and 26 for what is not known), :class:`NoRoute`,
    ``OSError``, ``TimeoutError``.
    """
    if mode not in (POP, PULL):
        raise WrongMessage(f"mode is {mode!r}, expected {POP} or {PULL}")
    told = {"consumerGroup": group, "mode": mode, "popShareQueueNum": share_queues, "topic": topic}
    body = json.dumps(told, separators=(",", ":")).encode()
    for address in await _addresses(instance, topic):
        await instance.call(address, SET_MESSAGE_REQUEST_MODE, {}, body)


async def _addresses(instance: ClientInstance, topic: str) -> list[str]:
    """The topic's masters. Raises :class:`NoRoute`."""
    route = await instance.fresh_route(topic)
    found = [route.brokers[name][MASTER] for name in masters(route.brokers)] if route is not None else []
    if not found:
        raise NoRoute(f"No route info of this topic: {topic}")
    return found


async def pop(
    instance: ClientInstance,
    group: str,
    broker: str,
    subscription: Subscription,
    *,
    queue_id: int = EVERY_QUEUE,
    most: int = 32,
    invisible: float = 60.0,
    hold: float = 0.0,
    from_first: bool = False,
    orderly: bool = False,
    attempt: str | None = None,
) -> PopResult:
    """Messages of a topic on one broker, invisible to others for ``invisible`` seconds; the broker may hold the
    question ``hold`` seconds. ``from_first``: where a group begins that has no offset. ``orderly``: of no queue of
    which the group has something in its hands; a question that is repeated with the same ``attempt``, whatever text,
    gets what it should have got the first time.

    Raises :class:`BrokerRefused`, :class:`NoRoute`, ``OSError``, ``TimeoutError``.
    """
    address = instance.address(broker)
    fields = {
        "consumerGroup": group,
        "topic": subscription.topic,
        "queueId": queue_id,
        "maxMsgNums": most,
        "invisibleTime": int(invisible * 1000),
        "pollTime": int(hold * 1000),
        "bornTime": now_ms(),
        "initMode": 0 if from_first else 1,
        "expType": subscription.kind,
        "exp": subscription.expression,
        "order": orderly,
        "attemptId": attempt,
        "bname": broker,
    }
    answer = await instance.ask(address, Command(POP_MESSAGE, spelled(fields)), hold + 10.0)
    if answer.code in (Answer.POLLING_TIMEOUT, Answer.POLLING_FULL, Answer.PULL_NOT_FOUND):
        return PopResult("NO_NEW_MSG" if answer.code != Answer.POLLING_FULL else "POLLING_FULL", [], 0, 0)
    if answer.code != Answer.SUCCESS:
        raise BrokerRefused(answer.code, answer.remark, address)
    response_fields = answer.fields
    with reading(POP_MESSAGE, address, AnswerNotUnderstood):
        messages = read_messages(answer.body, MessageQueue(subscription.topic, broker, queue_id))
        starts = _by_queue(response_fields.get("startOffsetInfo", ""))
        pop_time, invisible_ms = int(response_fields.get("popTime", 0)), int(response_fields.get("invisibleTime", 0))
        revive_queue, rest = int(response_fields.get("reviveQid", 0)), int(response_fields.get("restNum", 0))
        counts = _counts(response_fields.get("orderCountInfo", "")) if orderly else {}
        for message in messages:
            if orderly:
                key = message.queue_id, message.queue_offset
                message.reconsume_times = counts.get(key, counts.get((message.queue_id, -1), 0))
            _give_handle(message, group, broker, starts, pop_time, invisible_ms, revive_queue)
    return PopResult("FOUND", messages, pop_time, rest)


def _by_queue(text: str) -> dict[tuple[str, int], str]:
    """Of one of the three texts (docs/protocol/pop.md#response-texts), the third word by retry mark and queue."""
    found = {}
    for entry in text.split(";"):
        words = entry.split(" ")
        if len(words) == 3 and words[1].isdecimal():
            found[words[0], int(words[1])] = words[2]
    return found


def _counts(text: str) -> dict[tuple[int, int], int]:
    """``orderCountInfo``: how often messages came before, by queue and offset, −1 for all others of the queue."""
    found = {}
    for entry in text.split(";"):
        words = entry.split(" ")
        if len(words) == 3 and words[2].isdecimal():
            queue, _, offset = words[1].removeprefix("qo").partition("%")
            if queue.isdecimal() and (offset.isdecimal() or not offset):
                found[int(queue), int(offset) if offset else -1] = int(words[2])
    return found


def _give_handle(
    one: ReceivedMessage,
    group: str,
    broker: str,
    starts: Mapping[tuple[str, int], str],
    popped: int,
    invisible: int,
    revive_queue: int,
) -> None:
    """A message of a retry topic brings its handle, all others get theirs from the answer
    (docs/protocol/pop.md#handle).
    """
    one.queue = MessageQueue(codec.normal_topic(one.topic, group), broker, one.queue_id)
    if POP_CK not in one.properties:
        mark = codec.mark_of(one.topic)
        start = int(starts.get((mark, one.queue_id), one.queue_offset))
        handle = codec.Handle(start, popped, invisible, revive_queue, mark, broker)
        one.properties[POP_CK] = handle.of_message(one.queue_id, one.queue_offset)
    one.topic = one.queue.topic
    one.properties.setdefault(props.FIRST_POP_TIME, str(popped))


async def _with_handle(
    instance: ClientInstance, code: int, group: str, message: ReceivedMessage, **more: object
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
        **more,
    }
    return handle, await instance.call(instance.address(handle.broker_name), code, fields)


async def acknowledge(instance: ClientInstance, group: str, message: ReceivedMessage) -> None:
    """200051: a popped message is done with. Too late, or twice, is no error.

    Raises :class:`BrokerRefused`, :class:`WrongMessage`, ``OSError``, ``TimeoutError``.
    """
    await _with_handle(instance, ACK_MESSAGE, group, message)


async def change_invisible(instance: ClientInstance, group: str, message: ReceivedMessage, invisible: float) -> None:
    """200053: a popped message comes again in ``invisible`` seconds from now; it has a new handle then. Where it is
    done with nothing changes. Raises as :func:`acknowledge`.
    """
    handle, answer = await _with_handle(
        instance, CHANGE_MESSAGE_INVISIBLETIME, group, message, invisibleTime=int(invisible * 1000)
    )
    response_fields = answer.fields
    with reading(CHANGE_MESSAGE_INVISIBLETIME, instance.address(handle.broker_name), AnswerNotUnderstood):
        pop_time = int(response_fields.get("popTime", 0))
        invisible_ms = int(response_fields.get("invisibleTime", 0))
        revive_queue = int(response_fields.get("reviveQid", 0))
    if not pop_time:
        return  # it is done with: there is nothing to change (docs/protocol/pop.md#orderly)
    new = codec.Handle(message.queue_offset, pop_time, invisible_ms, revive_queue, handle.mark, handle.broker_name)
    message.properties[POP_CK] = new.of_message(message.queue_id, message.queue_offset)


def masters(brokers: Mapping[str, Mapping[int, str]]) -> Iterable[str]:
    """Names of the brokers of a route that have a master."""
    return sorted(name for name, addresses in brokers.items() if MASTER in addresses)
