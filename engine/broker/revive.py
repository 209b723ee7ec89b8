"""Popped messages that nobody acknowledged come again: checkpoints and acknowledgements of the revive topic are
matched, and messages that are open when their time is over go to the retry topic (docs/protocol/pop.md#revive).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.broker.pop_state import ReviveQueue
from engine.broker.revive_log import ACK, CHECK_POINT, check_point_message, count, own_host, put_unstored
from engine.broker.topics import READ, WRITE
from engine.codec import pop as codec
from engine.codec import properties
from engine.codec.encode import HOST_BITS, Message
from engine.codec.message import Unit
from engine.errors import CorruptUnit
from engine.system_names import RETRY_PREFIX, REVIVE_GROUP

if TYPE_CHECKING:
    from engine.broker.broker import Broker


SETTLED_MS = 2_000
"""A checkpoint is handled once acknowledgements that are due this long after it have arrived, too."""
_QUIET_MS = 3_000
_SLOT_MS = 1_000
_MOST_READ = 2_048
"""Maximum number of records of one revive queue, and of handled checkpoints, in one step: clients are answered in
between.
"""
_AGAIN_S = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""Delay in seconds of a checkpoint that is put again, by the number of tries."""
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
        at_end = _read_on(broker, topic, queue_id, queue)
        now = broker.now()
        if at_end and queue.points and now - queue.end > _QUIET_MS and up_to_date:
            queue.end = now
        revived += _handle_due(broker, topic, queue_id, queue)
    if revived:
        broker.dispatched()


def _read_on(broker: Broker, topic: str, queue_id: int, queue: ReviveQueue) -> bool:
    """Read new records. Return True if that is all of them."""
    for _ in range(_MOST_READ // codec.MAX_POP_MESSAGES):
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
                _take_in(broker, queue_id, queue, unit, offset)
            queue.read = result.next_begin_offset
    return False


def _take_in(broker: Broker, queue_id: int, queue: ReviveQueue, unit: Unit, offset: int) -> None:
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
    """Handle checkpoints in their order up to the first that is not due. Return how many messages come again."""
    revived, handled = 0, queue.handled
    for point in sorted(queue.points.values(), key=lambda check_point: check_point.revive_offset):
        if queue.end - point.due <= SETTLED_MS or revived > _MOST_READ:
            break
        acked = queue.acked.pop(point.merge_key)
        del queue.points[point.merge_key]
        if _is_wanted(broker, point):
            for offset in point.offsets:
                if offset not in acked:
                    revived += _bring_back(broker, point, offset, queue_id)
                    if point.pop_time >= broker.started:
                        broker.popped.done(point.group, point.topic, point.queue_id)
        handled = point.revive_offset
    if handled > queue.handled:
        queue.handled = handled
        broker.store.tables.commit_consumer_offset(REVIVE_GROUP, topic, queue_id, handled)
    return revived


def _is_wanted(broker: Broker, point: codec.CheckPoint) -> bool:
    """Return True if topic and group still exist."""
    name = codec.normal_topic(point.topic, point.group)
    return broker.topics.get(name) is not None and broker.topics.group(point.group) is not None


def _bring_back(broker: Broker, point: codec.CheckPoint, offset: int, queue_id: int) -> bool:
    """Put one message of a checkpoint again. Return False if the message is gone, or could not be put; the latter is
    tried again later.
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
    retry_message = make_retry_message(units[0], point, own_host(broker), v2=broker.config.retry_topic_v2)
    _declare(broker, retry_message.topic, point.group)
    result = broker.store.put_message(retry_message)
    broker.stats.revived[point.group, point.topic, result.status.name] += 1
    if result.append is not None:
        return True
    _log.warning("no room for what comes again: %s queue %d offset %d", point.topic, point.queue_id, offset)
    _put_again(broker, point, offset, queue_id)
    return False


def make_retry_message(unit: Unit, point: codec.CheckPoint, born_host: str, *, v2: bool = False) -> Message:
    """Return a popped message as the retry topic gets it; one from a retry topic stays there."""
    unit_properties = unit.properties
    if unit.reconsume_times == 0 or properties.FIRST_POP_TIME not in unit_properties:
        unit_properties[properties.FIRST_POP_TIME] = str(point.pop_time)
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


def _declare(broker: Broker, topic: str, group: str) -> None:
    """Declare the retry topic where it does not exist yet, with the group's offset at its beginning."""
    if broker.topics.get(topic) is None:
        broker.topics.create_plain(topic, 1, READ | WRITE)
        if broker.store.tables.consumer_offset(group, topic, 0) < 0:
            broker.store.tables.commit_consumer_offset(group, topic, 0, 0)


def _put_again(broker: Broker, point: codec.CheckPoint, offset: int, queue_id: int) -> None:
    """Put a checkpoint for one message that could not be brought back, due later each time."""
    times = point.rewrite_count or 0
    if times >= len(_AGAIN_S) and broker.config.gives_up_reviving:
        return
    invisible = point.invisible_time
    if point.due <= broker.now():
        invisible += _AGAIN_S[min(times, len(_AGAIN_S) - 1)] * 1000
    new_point = replace(
        point, start_offset=offset, differences=(0,), count=1, invisible_time=invisible, rewrite_count=times + 1
    )
    count(broker, new_point, broker.store.put_message(check_point_message(broker, new_point, queue_id)))
