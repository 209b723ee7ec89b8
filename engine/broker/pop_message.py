"""POP_MESSAGE: hand out messages of all queues of a topic and of its retry topic, with checkpoints
(docs/protocol/pop.md#pop-message, #broker, #first-offset). A pop that finds nothing waits in
:class:`engine.broker.pop_holds.PopHolds`.

Everything runs in one event loop, so no queue is ever locked by another pop. RocketMQ answers a pop with nothing if
another pop reads its queue at that moment; here it gets its messages. Java: ``PopMessageProcessor``.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.broker.pop_checkpoints import add_pending_offset, put_check_point
from engine.broker.pop_holds import HeldPop, PopKey, refusal_to_hold
from engine.broker.pull_message import Queue
from engine.broker.stats import ms_since
from engine.broker.topics import READ
from engine.codec import pop as codec
from engine.codec.encode import HEAD_FORMATS, HOST_BITS, TopicField, encode_properties, host_raw
from engine.codec.message import decode
from engine.codec.unit_flavours import MAX_PROPERTIES_BYTES
from engine.errors import BadFilter, CorruptUnit
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest, see
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.get_message import GetMessageResult, GetMessageStatus, Limits
from engine.store.message_filter import MessageFilter, SqlFilter, TagFilter
from engine.system_names import RETRY_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


FROM_MIN, FROM_MAX = 0, 1
"""``initMode``: where a group without an offset begins."""
TOO_LATE_MS = 500
ZEROS = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0", "restNum": "0"}
"""Header fields of an answer that refuses."""
FOUND, NOTHING = GetMessageStatus.FOUND.value, GetMessageStatus.NO_MESSAGE_IN_QUEUE.value
_Status = GetMessageStatus
_WRONG_OFFSET = {_Status.OFFSET_TOO_SMALL, _Status.OFFSET_OVERFLOW_BADLY, _Status.OFFSET_FOUND_NULL}
_SKIPPED_STATUSES = {
    _Status.NO_MATCHED_MESSAGE,
    _Status.OFFSET_FOUND_NULL,
    _Status.MESSAGE_WAS_REMOVING,
    _Status.NO_MATCHED_LOGIC_QUEUE,
}


@dataclass(frozen=True, slots=True)
class Pop:
    """A pop request. Times are ms; ``queue_id`` −1 is every queue."""

    request: Command
    connection: Connection
    topic: str
    group: str
    queue_id: int
    max_messages: int
    invisible_time: int
    until: int
    may_wait: bool
    init_mode: int
    order: bool
    attempt_id: str | None
    message_filter: MessageFilter | None

    @property
    def key(self) -> PopKey:
        return PopKey(self.topic, self.group, self.queue_id)


@dataclass(slots=True)
class CollectedMessages:
    """Messages that a pop has collected so far. ``remaining`` is how many messages remain, ``moved`` is True if any
    offset advanced.
    """

    pop_time: int
    revive_queue: int
    bodies: list[bytes] = field(default_factory=list)
    remaining: int = 0
    moved: bool = False
    check_points: list[tuple[codec.CheckPoint, int]] = field(default_factory=list)
    starts: list[tuple[str, object, object]] = field(default_factory=list)
    offsets: list[tuple[str, object, object]] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)


def pop_message(broker: Broker, request: Command, header: Header, connection: Connection) -> Command | None:
    """POP_MESSAGE: return messages, at once or when there are some. Raises :class:`Refused` in RocketMQ's order."""
    try:
        pop = _parse(broker, request, header, connection)
    except WrongRequest:
        raise
    except Refused as error:
        error.fields = error.fields or ZEROS
        raise
    broker.store.services.dispatch_now()  # messages whose senders have their answers are there
    return _answer(broker, pop)


def _parse(broker: Broker, request: Command, header: Header, connection: Connection) -> Pop:
    config, now = broker.config, broker.now()
    hold = int(header["pollTime"] or 0)
    born = now if request.fields.get("bornTime", "0") == "0" else int(header["bornTime"] or 0)
    if now - born - hold > TOO_LATE_MS:
        raise Refused(ResponseCode.POLLING_TIMEOUT, f"the broker[{config.broker_ip}] pop message is timeout too much")
    if not config.permission & READ or broker.is_slave:  # a slave stores no checkpoint
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip}] pop message is forbidden")
    max_messages = max_messages_of(header)
    if max_messages > codec.MAX_POP_MESSAGES:
        raise Refused(
            ResponseCode.INVALID_PARAMETER, f"the broker[{config.broker_ip}] pop message's num is greater than 32"
        )
    if broker.timers is None:
        words = f"the broker[{config.broker_ip}] pop message is forbidden because timerWheelEnable is false"
        raise Refused(ResponseCode.SYSTEM_ERROR, words)
    check_readable(broker, header, connection)
    topic, group = str(header["topic"]), str(header["consumerGroup"])
    return Pop(
        request,
        connection,
        topic,
        group,
        int(header["queueId"] or 0),
        max_messages,
        int(header["invisibleTime"] or 0),
        born + hold,
        hold > 0,
        int(header["initMode"] or 0),
        bool(header["order"]),
        None if header["attemptId"] is None else str(header["attemptId"]),
        _filter(header["expType"], header["exp"]),
    )


def max_messages_of(header: Header) -> int:
    """Return the number of messages that a request asks for. Raises :class:`WrongRequest` below 0."""
    max_messages = int(header["maxMsgNums"] or 0)
    if max_messages < 0:
        raise WrongRequest(f"maxMsgNums: expected a number from 0 on, found {max_messages}")
    return max_messages


def check_readable(broker: Broker, header: Header, connection: Connection) -> None:
    """Check that the group may read the topic and queue that a request names. Raises :class:`Refused`."""
    name, group_name, queue_id = str(header["topic"]), str(header["consumerGroup"]), int(header["queueId"] or 0)
    topic = broker.topics.get(name)
    if topic is None:
        words = f"topic[{name}] not exist, apply first please! {see(broker.store.release)}"
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, words)
    if not topic.perm & READ:
        raise Refused(ResponseCode.NO_PERMISSION, f"the topic[{name}] peeking message is forbidden")
    if queue_id >= topic.read_queue_nums:
        raise Refused(ResponseCode.INVALID_PARAMETER, wrong_queue(name, queue_id, topic.read_queue_nums, connection))
    group = broker.topics.group(group_name)
    if group is None:
        words = f"subscription group [{group_name}] does not exist, {see(broker.store.release)}"
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, words)
    if not group.consume_enable:
        raise Refused(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group_name}")


def wrong_queue(topic: str, queue_id: int, queues: int, connection: Connection) -> str:
    """Return the error text for a client that names a queue which does not exist."""
    return (
        f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{queues}] "
        f"consumer:[/{connection.peer}]"
    )


def _filter(kind: object, expression: object) -> MessageFilter | None:
    text = str(expression or "")
    if not text:
        return None
    if kind in {None, "", "TAG"}:
        tag_filter = TagFilter(text)
        return None if tag_filter.passes_all else tag_filter
    try:
        return SqlFilter(text)
    except BadFilter:
        raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed") from None


def _answer(broker: Broker, pop: Pop) -> Command | None:
    """Look for messages. Return the answer, None if it comes later."""
    start_ns = time.perf_counter_ns()
    collected = _collect(broker, pop)
    if collected.bodies:
        broker.stats.got_ms[pop.group, pop.topic, pop.queue_id].add(len(collected.bodies), ms_since(start_ns))
        if collected.remaining > 0:
            _wake_next(broker, pop)
        return _answer_with_messages(broker, pop, collected)
    code = refusal_to_hold(broker.pops, pop.key, pop.until, may_wait=pop.may_wait)
    if code is None:
        held_pop = HeldPop(
            pop.request, pop.connection, pop.key, pop.until, lambda: _answer(broker, pop), pop.message_filter
        )
        broker.pops.hold(held_pop, queues_of(broker, pop.key))
        if collected.remaining > 0 and collected.moved:
            _wake_next(broker, pop)
        return None
    return answer_to(pop.request, code, fields=_fields(pop, collected), remark=NOTHING)


def queues_of(broker: Broker, key: PopKey) -> dict[Queue, int]:
    """Return the queues whose new messages wake requests that wait at ``key``, with their ends. Before 5.4 messages in
    a retry topic of the first form wake nobody, as with RocketMQ: the next pop finds them.
    """
    topic = broker.topics.get(key.topic)
    count = topic.read_queue_nums if topic else 0
    queues = [(key.topic, queue_id) for queue_id in (range(count) if key.queue_id < 0 else [key.queue_id])]
    for v2 in (True, False) if broker.store.rules.marks_popping_group else (True,):
        retry = codec.retry_topic(key.topic, key.group, v2=v2)
        declared = broker.topics.get(retry)
        retry_queues = range(max(declared.read_queue_nums if declared else 1, 1))
        queues += [(retry, queue_id) for queue_id in retry_queues if key.queue_id in (-1, queue_id)]
    return {queue: broker.store.max_offset_in_queue(*queue) for queue in queues}


def _wake_next(broker: Broker, pop: Pop) -> None:
    """Retry the next waiting pop in the next turn of the loop, because there are further messages."""
    asyncio.get_running_loop().call_soon(broker.pops.wake_first, pop.key)


def _fields(pop: Pop, collected: CollectedMessages) -> dict[str, str]:
    fields = {
        "popTime": str(collected.pop_time),
        "invisibleTime": str(pop.invisible_time),
        "reviveQid": str(collected.revive_queue),
        "restNum": str(collected.remaining),
        "startOffsetInfo": codec.entries(collected.starts),
        "msgOffsetInfo": codec.entries(collected.offsets),
    }
    if pop.order:
        fields["orderCountInfo"] = ";".join(collected.counts)
    return fields


def _answer_with_messages(broker: Broker, pop: Pop, collected: CollectedMessages) -> Command | None:
    """Return the answer with messages, once all checkpoints are stored."""
    answer = answer_to(pop.request, fields=_fields(pop, collected), body=b"".join(collected.bodies), remark=FOUND)
    remaining = len(collected.check_points)

    def done() -> Command | None:
        nonlocal remaining
        remaining -= 1
        return answer if remaining == 0 else None

    for check_point, following in collected.check_points:
        broker.stats.checkpoints[pop.group, pop.topic].add(1, 0)
        put_check_point(broker, check_point, collected.revive_queue, following, done, pop.request, pop.connection)
    return None if collected.check_points else answer


# -- reading


def _collect(broker: Broker, pop: Pop) -> CollectedMessages:
    """Collect messages from the queues and the retry topic."""
    config, chance = broker.config, random.randrange(100)
    broker.popped.popping_groups.add((pop.group, pop.topic))
    revive_queue = codec.ORDERLY
    if not pop.order:
        revive_queue = broker.popped.count % config.revive_queues
        broker.popped.count += 1
    collected = CollectedMessages(broker.now(), revive_queue)
    by_priority = _reads_by_priority(broker, pop, chance)
    reads_retry_first = chance < (config.pop_from_retry_for_priority if by_priority else config.pop_from_retry)
    v2 = config.retry_topic_v2 and not (config.pop_from_retry_v1 and chance % 2 == 0)
    retry = codec.retry_topic(pop.topic, pop.group, v2=v2)
    chance = 0 if by_priority else chance
    if reads_retry_first and not pop.order:
        _collect_topic(broker, pop, retry, collected, chance)
    if pop.queue_id < 0:
        _collect_topic(broker, pop, pop.topic, collected, chance)
    else:
        _collect_queue(broker, pop, pop.topic, pop.queue_id, collected)
    if not reads_retry_first and not pop.order and len(collected.bodies) < pop.max_messages:
        _collect_topic(broker, pop, retry, collected, chance)
    return collected


def _collect_topic(broker: Broker, pop: Pop, name: str, collected: CollectedMessages, first_queue: int) -> None:
    topic = broker.topics.get(name)
    count = topic.read_queue_nums if topic else 0
    queues = range(count)
    if broker.store.rules.priorities and broker.config.priority_ascending:
        queues = queues[::-1]
    for queue_id in queues:
        _collect_queue(broker, pop, name, (first_queue + queue_id) % count, collected)


def _reads_by_priority(broker: Broker, pop: Pop, chance: int) -> bool:
    """Return True if this pop reads the queues of a PRIORITY topic in the order of priority: so many of a hundred pops
    as the group's ``priority.factor`` says, all by default.
    """
    topic, group = broker.topics.get(pop.topic), broker.topics.group(pop.group)
    if not broker.store.rules.priorities or pop.order or topic is None:
        return False
    factor = group.attributes.get("priority.factor", "100") if group is not None else "100"
    return topic.attributes.get("message.type") == "PRIORITY" and chance < int(factor)


def _collect_queue(broker: Broker, pop: Pop, topic: str, queue_id: int, collected: CollectedMessages) -> None:
    store, tables, group = broker.store, broker.store.tables, pop.group
    offset = _next_offset(broker, pop, topic, queue_id)
    if pop.order and broker.orders.is_blocked(topic, group, queue_id, pop.attempt_id):
        return
    missing = pop.max_messages - len(collected.bodies)
    if missing <= 0:
        collected.remaining += store.max_offset_in_queue(topic, queue_id) - offset
        return
    result = store.get_message(group, topic, queue_id, offset, missing, pop.message_filter)
    if result is not None and result.status in _WRONG_OFFSET:
        offset = result.next_begin_offset
        tables.commit_consumer_offset(group, topic, queue_id, offset)
        collected.moved = True
        result = store.get_message(group, topic, queue_id, offset, missing, pop.message_filter)
    if result is None:
        collected.remaining += store.max_offset_in_queue(topic, queue_id) - offset
        return
    with result:
        if result.messages:
            _hand_out(broker, pop, topic, queue_id, offset, result, collected)
        elif result.status in _SKIPPED_STATUSES and result.next_begin_offset > -1:
            collected.moved |= result.next_begin_offset > offset
            if pop.order:
                tables.commit_consumer_offset(group, topic, queue_id, result.next_begin_offset)
            elif result.next_begin_offset > offset:
                add_pending_offset(broker, group, topic, queue_id, result.next_begin_offset, stored=True)
        collected.remaining += max(result.max_offset - result.next_begin_offset, 0)


def _hand_out(
    broker: Broker,
    pop: Pop,
    topic: str,
    queue_id: int,
    offset: int,
    result: GetMessageResult,
    collected: CollectedMessages,
) -> None:
    """Collect the messages of one queue, with their checkpoint or order information."""
    mark, collected.moved = codec.mark_of(topic), True
    if pop.order:
        counts = broker.orders.popped(
            topic, pop.group, queue_id, result.queue_offsets, pop.attempt_id, collected.pop_time, pop.invisible_time
        )
        collected.counts.append(counts)
        broker.store.tables.commit_consumer_offset(pop.group, topic, queue_id, offset)
    else:
        differences = tuple(queue_offset - offset for queue_offset in result.queue_offsets)
        check_point = codec.CheckPoint(
            topic,
            pop.group,
            queue_id,
            offset,
            collected.pop_time,
            pop.invisible_time,
            broker.config.broker_name,
            differences,
        )
        collected.check_points.append((check_point, result.next_begin_offset))
    broker.popped.in_flight[pop.group, topic, queue_id] += len(result.messages)
    broker.stats.got[pop.group, pop.topic, topic != pop.topic].add(len(result.messages), sum(map(len, result.messages)))
    collected.starts.append((mark, queue_id, offset))
    collected.offsets.append((mark, queue_id, ",".join(map(str, result.queue_offsets))))
    if not topic.startswith(RETRY_PREFIX) or broker.config.return_retry_topic:
        collected.bodies += map(bytes, result.messages)
        return
    handle = codec.Handle(
        offset, collected.pop_time, pop.invisible_time, collected.revive_queue, mark, broker.config.broker_name
    )
    for message, message_offset in zip(result.messages, result.queue_offsets, strict=True):
        collected.bodies.append(
            rename_retry_unit(bytes(message), pop.topic, handle.of_message(queue_id, message_offset))
        )


def rename_retry_unit(message: bytes, topic: str, handle: str) -> bytes:
    """Return a unit of a retry topic as clients get it: the normal topic's name, and the handle in its properties.
    Return it unchanged where that does not fit into a unit.
    """
    try:
        unit = decode(message, 0, 0, crc=False)
        unit_properties = unit.properties
        unit_properties.setdefault("POP_CK", handle)
        name, raw = TopicField(topic, auto_version=False), encode_properties(unit_properties)
        head = HEAD_FORMATS[unit.sys_flag & HOST_BITS]
        born, stored = host_raw(unit.born_host), host_raw(unit.store_host)
    except (CorruptUnit, ValueError):
        return message
    if len(raw) > MAX_PROPERTIES_BYTES:
        return message
    body = unit.body
    return b"".join(
        (
            head.pack(
                name.fixed + len(born) + len(stored) - 16 + len(body) + len(raw),
                name.magic,
                unit.body_crc,
                unit.queue_id,
                unit.flag,
                unit.queue_offset,
                unit.physical_offset,
                unit.sys_flag,
                unit.born_timestamp,
                born,
                unit.store_timestamp,
                stored,
                unit.reconsume_times,
                unit.prepared_transaction_offset,
                len(body),
            ),
            body,
            name.raw,
            len(raw).to_bytes(2, "big"),
            raw,
        )
    )


def _next_offset(broker: Broker, pop: Pop, topic: str, queue_id: int) -> int:
    """Return where this pop continues in a queue: behind the last pop, where an administrator reset it, or where
    groups begin.
    """
    group, tables = pop.group, broker.store.tables
    offset = tables.consumer_offset(group, topic, queue_id)
    if offset < 0:
        offset = first_offset(broker, topic, queue_id, pop.init_mode)
        tables.commit_consumer_offset(group, topic, queue_id, offset)
    reset = broker.resets.take(group, topic, queue_id)
    if reset is not None:
        broker.orders.clear(topic, group, queue_id)
        broker.popped.clear(group, topic, queue_id)
        tables.commit_consumer_offset(group, topic, queue_id, reset)
        return reset
    return max(offset, broker.popped.latest(group, topic, queue_id))


def first_offset(broker: Broker, topic: str, queue_id: int, init_mode: int) -> int:
    """Return where a group without an offset begins: with the queue's first message, or with its last. A young
    queue, whose first message is still in memory, is read from its first message.
    """
    store = broker.store
    min_offset = max(store.min_offset_in_queue(topic, queue_id), 0)
    if init_mode == FROM_MIN or topic.startswith(RETRY_PREFIX):
        return min_offset
    if broker.config.pop_young_queues_whole and min_offset == 0 and _is_in_memory(broker, topic, queue_id):
        return 0
    return max(store.max_offset_in_queue(topic, queue_id) - 1, 0)


def _is_in_memory(broker: Broker, topic: str, queue_id: int) -> bool:
    result = broker.store.get_message("", topic, queue_id, 0, 1)
    if result is None:
        return False
    with result:
        end, memory = broker.store.parts.log.max_offset, Limits.of(broker.store.config).memory
        return bool(result.offsets) and end - result.offsets[0] <= memory


# -- waking


def wake_pops(broker: Broker) -> None:
    """Retry one waiting pop for each queue that has grown (docs/protocol/pop.md#holding)."""
    store, interval = broker.store, broker.config.pop_notify_interval
    for pop, queue, old_end, end in broker.pops.grown(lambda queue: store.max_offset_in_queue(*queue)):
        forced = interval > 0 and (end - 1) // interval * interval >= old_end
        if forced or pop.message_filter is None or _has_match(broker, pop, queue, old_end, end):
            broker.pops.wake_first(pop.key)
    for held_notice, *_ in broker.notices.grown(lambda queue: store.max_offset_in_queue(*queue)):
        broker.notices.wake_first(held_notice.key)


def _has_match(broker: Broker, pop: HeldPop, queue: Queue, offset: int, end: int) -> bool:
    while offset < end:
        result = broker.store.get_message(pop.key.group, *queue, offset, 1, pop.message_filter)
        if result is None:
            return False
        with result:
            if result.messages:
                return True
        if result.next_begin_offset <= offset:
            return False
        offset = result.next_begin_offset
    return False


def wake_orderly(broker: Broker, topic: str, group: str, queue_id: int) -> None:
    """Retry a pop that waits for a queue of an orderly group, now that the queue is free, if it has messages."""
    read = max(
        broker.store.tables.consumer_offset(group, topic, queue_id), broker.popped.latest(group, topic, queue_id)
    )
    if broker.store.max_offset_in_queue(topic, queue_id) > read:
        if not broker.pops.wake_first(PopKey(topic, group, -1)):
            broker.pops.wake_first(PopKey(topic, group, queue_id))
        for waiting_queue_id in (-1, queue_id):
            broker.notices.wake_first(PopKey(topic, group, waiting_queue_id))
        for key in broker.lite.waiting_keys(topic, group):
            broker.pops.wake_first(key)
            broker.notices.wake_first(key)


HANDLERS: dict[int, Processor] = {
    RequestCode.POP_MESSAGE: pop_message,
}
