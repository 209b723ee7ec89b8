"""Revival of popped messages that nobody acknowledged in time: they go to the retry topic
(docs/protocol/pop.md#revive).

One round reads the checkpoints and acknowledgements that have become due in the revive topic, and matches them. Java:
``PopReviveService``.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.broker.pop_checkpoints import (
    ACK,
    CHECK_POINT,
    ReviveQueue,
    check_point_message,
    count_record,
    own_host,
    put_unstored,
)
from engine.broker.topics import plain_topic
from engine.codec import pop as codec
from engine.codec import properties
from engine.codec.encode import HOST_BITS, Message
from engine.codec.message import Unit
from engine.errors import CorruptUnit
from engine.system_names import RETRY_PREFIX, REVIVE_GROUP

if TYPE_CHECKING:
    from engine.broker.broker import Broker


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
        if at_end and queue.check_points and now - queue.end_ms > _QUIET_MS and up_to_date:
            queue.end_ms = now
        revived += _handle_due(broker, topic, queue_id, queue)
    if revived:
        broker.dispatched()


def _read_new_records(broker: Broker, topic: str, queue_id: int, queue: ReviveQueue) -> bool:
    """Read new records. Return True if all are read."""
    for _ in range(_MAX_READ // codec.MAX_POP_MESSAGES):
        result = broker.store.get_message(REVIVE_GROUP, topic, queue_id, queue.next_offset)
        if result is None:
            return False
        with result:
            if not result.messages:
                if result.next_begin_offset > queue.next_offset and result.max_offset > queue.next_offset:
                    queue.next_offset = result.next_begin_offset  # the records before were deleted
                    continue
                return True
            try:
                units = result.units(crc=False)
            except CorruptUnit as error:
                _log.warning("revive queue %d at %d: %s", queue_id, queue.next_offset, error)
                units = []
            broker.stats.got[REVIVE_GROUP, topic, None].add(len(result.messages), sum(map(len, result.messages)))
            for unit, offset in zip(units, result.queue_offsets, strict=False):
                _add_record(broker, queue_id, queue, unit, offset)
            queue.next_offset = result.next_begin_offset
    return False


def _add_record(broker: Broker, queue_id: int, queue: ReviveQueue, unit: Unit, offset: int) -> None:
    tag = unit.tags
    if tag == codec.CHECK_POINT_TAG:
        point = codec.read_check_point(unit.body, offset)
        if point is not None:
            broker.stats.revive_out[point.group, point.topic, queue_id, CHECK_POINT] += 1
            queue.check_points[point.merge_key] = point
            queue.acked_offsets[point.merge_key] = set()
    elif tag in {codec.ACK_TAG, codec.BATCH_ACK_TAG}:
        ack = codec.read_ack(unit.body, tag, broker.config.broker_name)
        if ack is not None:
            broker.stats.revive_out[ack.group, ack.topic, queue_id, ACK] += 1
            if ack.merge_key in queue.acked_offsets:
                queue.acked_offsets[ack.merge_key].update(ack.all_offsets)
    due = unit.properties.get(properties.TIMER_DELIVER_MS, "")
    if due.isascii() and due.isdigit():
        queue.end_ms = max(queue.end_ms, int(due))


def _handle_due(broker: Broker, topic: str, queue_id: int, queue: ReviveQueue) -> int:
    """Handle checkpoints in their order up to the first that is not due. Return the number of revived messages."""
    revived, handled = 0, queue.handled_offset
    for point in sorted(queue.check_points.values(), key=lambda check_point: check_point.revive_offset):
        if queue.end_ms - point.due <= SETTLED_MS or revived > _MAX_READ:
            break
        acked = queue.acked_offsets.pop(point.merge_key)
        del queue.check_points[point.merge_key]
        if _has_target(broker, point):
            for offset in point.offsets:
                if offset not in acked:
                    revived += _revive_message(broker, point, offset, queue_id)
                    if point.pop_time >= broker.started:
                        broker.popped.done(point.group, point.topic, point.queue_id)
        handled = point.revive_offset
    if handled > queue.handled_offset:
        queue.handled_offset = handled
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
    count_record(broker, new_point, broker.store.put_message(check_point_message(broker, new_point, queue_id)))
