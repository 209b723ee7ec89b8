"""Checkpoints and acknowledgements of pops, and the revival of messages that nobody acknowledged
(docs/protocol/pop.md#checkpoints, #revive; docs/formats/transactions.md#pop).

Checkpoints and acknowledgements are stored in the revive topic, where they are matched. Messages that are not
acknowledged in time go to the retry topic. A group's offset is committed once the checkpoints before it are stored.

RocketMQ may keep checkpoints in memory for some seconds and merge acknowledgements into them (``enablePopBufferMerge``,
off by default). Here that key has no effect: each checkpoint is stored before its messages are handed out, each
acknowledgement before it is answered, as with RocketMQ's default. A store written with the key on holds fewer records
of the same kind, so both kinds of brokers can continue each other's stores. Java: ``PopReviveService``,
``PopBufferMergeService.addCkJustOffset``, ``PopMessageProcessor.buildCkMsg``, ``AckMessageProcessor.appendAck``.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.broker.send_message import STORED_CODES, Pending, put_later
from engine.broker.topics import plain_topic
from engine.codec import pop as codec
from engine.codec import properties
from engine.codec.encode import HOST_BITS, Message
from engine.codec.message import Unit
from engine.codec.pop import CheckPoint
from engine.errors import CorruptUnit
from engine.remoting.connection import Connection
from engine.remoting.frame import Command
from engine.store.put_message import PutMessageResult
from engine.system_names import RETRY_PREFIX, REVIVE_GROUP

if TYPE_CHECKING:
    from engine.broker.broker import Broker


@dataclass(slots=True)
class Step:
    """An offset that a group's pops have reached in a queue; it is committed once its checkpoint is ``stored``."""

    offset: int
    stored: bool = False


@dataclass(slots=True)
class UnstoredCheckpoint:
    """A checkpoint that could not be stored; the put is retried."""

    check_point: CheckPoint
    revive_queue: int
    step: Step


@dataclass(slots=True)
class ReviveQueue:
    """State of one revive queue.

    ``handled`` is the offset of the last finished checkpoint, −1 before the first; ``read`` is the next offset to read;
    everything that is due up to ``end`` (ms) has been read. Checkpoints and their acknowledged offsets are stored by
    merge key.
    """

    handled: int = -1
    read: int = 0
    end: int = 0
    points: dict[str, CheckPoint] = field(default_factory=dict)
    acked: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class PopState:
    """``steps`` are offsets by group, topic and queue, in the order in which pops reached them. They are committed
    from the front, so that a group's offset never passes a checkpoint that is not stored. ``count`` counts pops,
    so that revive queues are used in turn.
    """

    count: int = 0
    steps: dict[tuple[str, str, int], deque[Step]] = field(default_factory=dict)
    unstored: list[UnstoredCheckpoint] = field(default_factory=list)
    revive_queues: list[ReviveQueue] = field(default_factory=list)
    popping_groups: set[tuple[str, str]] = field(default_factory=set)
    """Groups that have popped, with their topics."""
    in_flight: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Messages handed out and neither acknowledged nor revived, by group, topic and queue."""

    def latest(self, group: str, topic: str, queue_id: int) -> int:
        """Return where the next pop continues; −1 if no offset is pending: then the committed offset counts."""
        waiting = self.steps.get((group, topic, queue_id))
        return waiting[-1].offset if waiting else -1

    def clear(self, group: str, topic: str, queue_id: int) -> None:
        """Drop the pending offsets, after an administrator has set the group's offset."""
        self.steps.pop((group, topic, queue_id), None)
        self.in_flight.pop((group, topic, queue_id), None)

    def done(self, group: str, topic: str, queue_id: int, count: int = 1) -> None:
        """Count messages that were acknowledged or revived as no longer in flight."""
        remaining = self.in_flight.pop((group, topic, queue_id), 0) - count
        if remaining > 0:
            self.in_flight[group, topic, queue_id] = remaining


CHECK_POINT, ACK = "CK", "ACK"
"""Names of the records in counters."""
EARLY_MS = 1_000
"""Checkpoints reach their revive queue this long before their messages become visible again, so before
acknowledgements.
"""


def reached(broker: Broker, group: str, topic: str, queue_id: int, offset: int, *, stored: bool = False) -> Step:
    """Record that a pop has gone on to ``offset``; call :func:`commit` once its checkpoint is stored."""
    step = Step(offset, stored)
    broker.popped.steps.setdefault((group, topic, queue_id), deque()).append(step)
    if stored:
        commit(broker, group, topic, queue_id)
    return step


def commit(broker: Broker, group: str, topic: str, queue_id: int) -> None:
    """Commit the leading offsets whose checkpoints are stored."""
    steps = broker.popped.steps
    waiting = steps.get((group, topic, queue_id))
    while waiting and waiting[0].stored:
        broker.store.tables.commit_consumer_offset(group, topic, queue_id, waiting.popleft().offset)
    if waiting is not None and not waiting:
        del steps[group, topic, queue_id]


def check_point_message(broker: Broker, check_point: codec.CheckPoint, revive_queue: int) -> Message:
    """Return the timer message that brings a checkpoint to its revive queue."""
    return _message(
        broker,
        check_point.body(),
        codec.CHECK_POINT_TAG,
        check_point.unique_key,
        check_point.due - EARLY_MS,
        revive_queue,
    )


def ack_message(broker: Broker, ack: codec.Ack, due: int, revive_queue: int) -> Message:
    """Return the timer message that brings an acknowledgement to the revive queue of its checkpoint."""
    return _message(broker, ack.body(), ack.tag, ack.unique_key, due, revive_queue)


def _message(broker: Broker, body: bytes, tag: str, key: str, due: int, revive_queue: int) -> Message:
    message_properties = {properties.TIMER_DELIVER_MS: str(due), properties.UNIQUE_KEY: key, properties.TAGS: tag}
    return Message(
        codec.revive_topic(broker.config.cluster),
        body,
        revive_queue,
        message_properties,
        born_timestamp=broker.now(),
        born_host=own_host(broker),
    )


def own_host(broker: Broker) -> str:
    """Return ``ip:port``, the born host of the broker's own messages."""
    return broker.address or broker.store.parts.commit_log.store_host


def is_stored(result: PutMessageResult) -> bool:
    """Return True if the message is stored, even if it was not flushed or copied in time."""
    return result.status in STORED_CODES


def count(broker: Broker, record: codec.CheckPoint | codec.Ack, result: PutMessageResult) -> None:
    """Count a record for the revive topic by the status of its put."""
    kind = CHECK_POINT if isinstance(record, codec.CheckPoint) else ACK
    broker.stats.revive_in[record.group, record.topic, kind, result.status.name] += 1


def put_for(
    broker: Broker,
    request: Command,
    connection: Connection,
    message: Message,
    answer: Callable[[PutMessageResult], Command | None],
) -> None:
    """Put ``message`` with the sends of this turn; ``answer`` returns the client's answer, None for no answer (yet)."""
    put_later(broker, Pending(request, connection, message, message.queue_id, {}, answer))


def put_check_point(
    broker: Broker,
    check_point: codec.CheckPoint,
    revive_queue: int,
    following: int,
    done: Callable[[], Command | None],
    request: Command,
    connection: Connection,
) -> None:
    """Store the checkpoint of a pop; its group has then read up to ``following``. ``done`` is called in any case: a
    checkpoint that could not be stored is retried, and until then the group's offset stays before it.
    """
    step = reached(broker, check_point.group, check_point.topic, check_point.queue_id, following)

    def put(result: PutMessageResult) -> Command | None:
        count(broker, check_point, result)
        if is_stored(result):
            step.stored = True
            commit(broker, check_point.group, check_point.topic, check_point.queue_id)
        else:
            broker.popped.unstored.append(UnstoredCheckpoint(check_point, revive_queue, step))
        return done()

    put_for(broker, request, connection, check_point_message(broker, check_point, revive_queue), put)


def put_unstored(broker: Broker) -> None:
    """Retry the checkpoints that could not be stored."""
    waiting, broker.popped.unstored = broker.popped.unstored, []
    for unstored in waiting:
        check_point = unstored.check_point
        result = broker.store.put_message(check_point_message(broker, check_point, unstored.revive_queue))
        count(broker, check_point, result)
        if is_stored(result):
            unstored.step.stored = True
            commit(broker, check_point.group, check_point.topic, check_point.queue_id)
        else:
            broker.popped.unstored.append(unstored)


SETTLED_MS = 2_000
"""A checkpoint is handled once acknowledgements that are due this long after it have arrived."""
_QUIET_MS = 3_000
_SLOT_MS = 1_000
_MAX_READ = 2_048
"""Maximum number of records of one revive queue, and of handled checkpoints, in one step, so that clients are
answered in between.
"""
_RETRY_DELAYS_S = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Delay of a checkpoint that is put again, by the number of attempts."""
_log = logging.getLogger(__name__)


def revive(broker: Broker) -> None:
    """Run one round over all revive queues."""
    if broker.timers is None or broker.config.broker_id != 0:
        return
    put_unstored(broker)
    topic = codec.revive_topic(broker.config.cluster)
    if not broker.popped.revive_queues:
        for queue_id in range(broker.config.revive_queues):
            handled = broker.store.tables.consumer_offset(REVIVE_GROUP, topic, queue_id)
            broker.popped.revive_queues.append(ReviveQueue(handled, handled + 1))
    broker.timers.step()
    late, waiting = broker.timers.behind()
    up_to_date = late <= _SLOT_MS and not waiting
    revived = 0
    for queue_id, queue in enumerate(broker.popped.revive_queues):
        at_end = _read_new_records(broker, topic, queue_id, queue)
        now = broker.now()
        if at_end and queue.points and now - queue.end > _QUIET_MS and up_to_date:
            queue.end = now
        revived += _handle_due(broker, topic, queue_id, queue)
    if revived:
        broker.dispatched()


def _read_new_records(broker: Broker, topic: str, queue_id: int, queue: ReviveQueue) -> bool:
    """Read new records. Return True if all are read."""
    for _ in range(_MAX_READ // codec.MAX_POP_MESSAGES):
        result = broker.store.get_message(REVIVE_GROUP, topic, queue_id, queue.read)
        if result is None:
            return False
        with result:
            if not result.messages:
                if result.next_begin_offset > queue.read and result.max_offset > queue.read:
                    queue.read = result.next_begin_offset  # the records before were deleted
                    continue
                return True
            try:
                units = result.units(crc=False)
            except CorruptUnit as error:
                _log.warning("revive queue %d at %d: %s", queue_id, queue.read, error)
                units = []
            broker.stats.got[REVIVE_GROUP, topic, None].add(len(result.messages), sum(map(len, result.messages)))
            for unit, offset in zip(units, result.queue_offsets, strict=False):
                _add_record(broker, queue_id, queue, unit, offset)
            queue.read = result.next_begin_offset
    return False


def _add_record(broker: Broker, queue_id: int, queue: ReviveQueue, unit: Unit, offset: int) -> None:
    tag = unit.tags
    if tag == codec.CHECK_POINT_TAG:
        point = codec.read_check_point(unit.body, offset)
        if point is not None:
            broker.stats.revive_out[point.group, point.topic, queue_id, CHECK_POINT] += 1
            queue.points[point.merge_key] = point
            queue.acked[point.merge_key] = set()
    elif tag in {codec.ACK_TAG, codec.BATCH_ACK_TAG}:
        ack = codec.read_ack(unit.body, tag, broker.config.broker_name)
        if ack is not None:
            broker.stats.revive_out[ack.group, ack.topic, queue_id, ACK] += 1
            if ack.merge_key in queue.acked:
                queue.acked[ack.merge_key].update(ack.all_offsets)
    due = unit.properties.get(properties.TIMER_DELIVER_MS, "")
    if due.isascii() and due.isdigit():
        queue.end = max(queue.end, int(due))


def _handle_due(broker: Broker, topic: str, queue_id: int, queue: ReviveQueue) -> int:
    """Handle checkpoints in their order up to the first that is not due. Return the number of revived messages."""
    revived, handled = 0, queue.handled
    for point in sorted(queue.points.values(), key=lambda check_point: check_point.revive_offset):
        if queue.end - point.due <= SETTLED_MS or revived > _MAX_READ:
            break
        acked = queue.acked.pop(point.merge_key)
        del queue.points[point.merge_key]
        if _has_target(broker, point):
            for offset in point.offsets:
                if offset not in acked:
                    revived += _revive_message(broker, point, offset, queue_id)
                    if point.pop_time >= broker.started:
                        broker.popped.done(point.group, point.topic, point.queue_id)
        handled = point.revive_offset
    if handled > queue.handled:
        queue.handled = handled
        broker.store.tables.commit_consumer_offset(REVIVE_GROUP, topic, queue_id, handled)
    return revived


def _has_target(broker: Broker, point: codec.CheckPoint) -> bool:
    """Return True if topic and group still exist."""
    name = codec.normal_topic(point.topic, point.group)
    return broker.topics.get(name) is not None and broker.topics.group(point.group) is not None


def _revive_message(broker: Broker, point: codec.CheckPoint, offset: int, queue_id: int) -> bool:
    """Put one message of a checkpoint again. Return False if the message is gone, or could not be put; a failed put
    is retried later.
    """
    read_result = broker.store.get_message(REVIVE_GROUP, point.topic, point.queue_id, offset, 1)
    if read_result is None:
        _put_again(broker, point, offset, queue_id)
        return False
    with read_result:
        try:
            units = read_result.units(crc=False)
        except CorruptUnit:
            units = []
    if not units:
        return False
    retry_message = make_retry_message(
        units[0],
        point,
        own_host(broker),
        v2=broker.config.retry_topic_v2,
        marks_group=broker.store.rules.marks_popping_group,
    )
    queue_count = _create_retry_topic(broker, retry_message.topic, point.group)
    if _has_separate_queues(broker) and units[0].queue_id < queue_count:
        retry_message = retry_message.changed(queue_id=units[0].queue_id)
    result = broker.store.put_message(retry_message)
    broker.stats.revived[point.group, point.topic, result.status.name] += 1
    if result.append is not None:
        return True
    _log.warning("a revived message cannot be put: %s queue %d offset %d", point.topic, point.queue_id, offset)
    _put_again(broker, point, offset, queue_id)
    return False


def make_retry_message(
    unit: Unit, point: codec.CheckPoint, born_host: str, *, v2: bool = False, marks_group: bool = False
) -> Message:
    """Return a popped message as it is put into the retry topic. One from a retry topic stays in its topic."""
    unit_properties = unit.properties
    if unit.reconsume_times == 0 or properties.FIRST_POP_TIME not in unit_properties:
        unit_properties[properties.FIRST_POP_TIME] = str(point.pop_time)
    if marks_group:
        unit_properties[properties.ORIGIN_GROUP] = point.group
    topic = point.topic if point.topic.startswith(RETRY_PREFIX) else codec.retry_topic(point.topic, point.group, v2=v2)
    return Message(
        topic,
        unit.body,
        0,
        unit_properties,
        flag=unit.flag,
        sys_flag=unit.sys_flag & ~HOST_BITS,
        born_timestamp=unit.born_timestamp,
        born_host=born_host,
        reconsume_times=unit.reconsume_times + 1,
    )


def _has_separate_queues(broker: Broker) -> bool:
    return broker.store.rules.priorities and broker.config.separate_retry_queues


def _create_retry_topic(broker: Broker, topic: str, group: str) -> int:
    """Create the retry topic if it does not exist yet, with the group's offsets at its beginning; return the number of
    its queues: one, or with ``useSeparateRetryQueue`` those of the normal topic.
    """
    declared, queue_count = broker.topics.get(topic), 1
    if _has_separate_queues(broker):
        normal = broker.topics.get(codec.normal_topic(topic, group))
        queue_count = normal.write_queue_nums if normal is not None else 1
        if declared is not None and declared.write_queue_nums != queue_count:
            declared = None
    if declared is not None:
        return declared.write_queue_nums
    broker.topics.declare(plain_topic(topic, queue_count))
    for queue_id in range(queue_count):
        if broker.store.tables.consumer_offset(group, topic, queue_id) < 0:
            broker.store.tables.commit_consumer_offset(group, topic, queue_id, 0)
    return queue_count


def _put_again(broker: Broker, point: codec.CheckPoint, offset: int, queue_id: int) -> None:
    """Put a checkpoint for one message that could not be revived, with a longer delay each time."""
    times = point.rewrite_count or 0
    if times >= len(_RETRY_DELAYS_S) and broker.config.gives_up_reviving:
        return
    invisible = point.invisible_time
    if point.due <= broker.now():
        invisible += _RETRY_DELAYS_S[min(times, len(_RETRY_DELAYS_S) - 1)] * 1000
    new_point = replace(
        point, start_offset=offset, differences=(0,), count=1, invisible_time=invisible, rewrite_count=times + 1
    )
    count(broker, new_point, broker.store.put_message(check_point_message(broker, new_point, queue_id)))
