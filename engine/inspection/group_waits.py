"""Messages that a group must still handle although its offset is at the end of the queue: messages in its retry topics,
and messages that were popped and not acknowledged (docs/protocol/pop.md#revive; docs/formats/transactions.md#retry,
#pop).

A popped message has a checkpoint in the revive topic. Until the checkpoint is due, it is in the timer topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.codec import pop, properties
from engine.codec.message import Unit
from engine.inspection.groups import GroupProgress
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import offsets
from engine.system_names import RETRY_PREFIX, REVIVE_GROUP, REVIVE_PREFIX, TIMER_TOPIC

MOST_RECORDS = 20_000
"""Number of newest records of each revive queue, and of the timer topic, that are read: checkpoints live minutes."""

QueueKey = tuple[str, str, int]
"""Group, topic and queue id."""
PopKey = tuple[str, str, int, int, int]
"""Topic, group, queue id, first queue offset and time (ms) of a pop: its acknowledgements name the same values."""


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """Waiting messages of all groups.

    ``retry``: messages by (group, topic); the topic is "" if a retry topic of a group serves all its topics.
    ``popped``: messages that were popped and not acknowledged, by group, topic and queue.
    """

    retry: Counter[tuple[str, str]] = field(default_factory=Counter)
    popped: Counter[QueueKey] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Waits:
    """Messages that a group must still handle, whatever its offset is: ``retry`` of them are in retry topics,
    ``popped`` were popped and not acknowledged.
    """

    retry: int = 0
    popped: int = 0

    @property
    def messages(self) -> int:
        """All of them."""
        return self.retry + self.popped


NO_WAITS = Waits()


def find_group_waits(store: StoreSnapshot) -> GroupWaits:
    """Find the waiting messages of each group.

    Raises:
        CannotRead: offsets or records cannot be read or are not decoded.
    """
    store.require("pop")
    store.whole_topics()
    read = {(row.group, row.topic): row.offsets for row in offsets(store) if row.mode != "broadcast"}
    groups = {group for group, _ in read}
    waits = GroupWaits()
    for topic, queues in store.topics().items():
        if topic.startswith(RETRY_PREFIX):
            group, original = _split_retry_topic(topic, groups)
            progress = read.get((group, topic), {})
            waiting = sum(
                max(queue.max_offset - max(progress.get(number, 0), queue.first_in_log), 0)
                for number, queue in queues.items()
            )
            if waiting:
                waits.retry[group, original] += waiting
        elif topic.startswith(REVIVE_PREFIX):
            _count_popped(store, queues, read.get((REVIVE_GROUP, topic), {}), waits.popped)
    return waits


def waits_of(waits: GroupWaits, progress: GroupProgress) -> Waits:
    """Return the waiting messages of one group and queue; none for a broadcast.

    A retry topic has a single count for all queues of its topic.
    """
    group = progress.group
    if progress.mode == "broadcast":
        return NO_WAITS
    popped = waits.popped[group, progress.topic, progress.queue_id]
    if progress.topic.startswith(RETRY_PREFIX):
        return Waits(0, popped)
    popped += sum(
        count
        for (owner, topic, _queue), count in waits.popped.items()
        if owner == group and topic.startswith(RETRY_PREFIX) and pop.normal_topic(topic, group) == progress.topic
    )
    return Waits(waits.retry[group, progress.topic] + waits.retry[group, ""], popped)


def _split_retry_topic(topic: str, groups: set[str]) -> tuple[str, str]:
    """Split a retry topic into its group and the topic whose messages are retried ("" if it serves all topics)."""
    name = topic.removeprefix(RETRY_PREFIX)
    if name in groups:
        return name, ""
    for group in sorted(groups, key=len, reverse=True):
        if name.startswith((f"{group}+", f"{group}_")):
            return group, name[len(group) + 1 :]
    return name, ""


def _count_popped(
    store: StoreSnapshot, queues: dict[int, QueueReader], handled: dict[int, int], popped: Counter[QueueKey]
) -> None:
    """Add the messages of open checkpoints: all that have come but for those that are handled or acknowledged."""
    points: dict[PopKey, pop.CheckPoint] = {}
    acknowledged: dict[PopKey, set[int]] = {}
    closed: set[PopKey] = set()
    timers = store.topics().get(TIMER_TOPIC, {})
    for queue in timers.values():
        for unit, offset in _newest_records(store, queue):
            if unit.properties.get(properties.REAL_TOPIC, "").startswith(REVIVE_PREFIX):
                _take(unit, offset, points, acknowledged)
    for number, queue in queues.items():
        for unit, offset in _newest_records(store, queue):
            key = _take(unit, offset, points, acknowledged)
            if key and unit.tags == pop.CHECK_POINT_TAG and offset <= handled.get(number, -1):
                closed.add(key)
    for key, point in points.items():
        if key not in closed:
            waiting = sum(offset not in acknowledged.get(key, ()) for offset in point.offsets)
            if waiting:
                popped[point.group, point.topic, point.queue_id] += waiting


def _take(
    unit: Unit, offset: int, points: dict[PopKey, pop.CheckPoint], acknowledged: dict[PopKey, set[int]]
) -> PopKey | None:
    """Note a record; returns the pop that it belongs to, None if it is neither a checkpoint nor an acknowledgement."""
    if unit.tags == pop.CHECK_POINT_TAG:
        point = pop.read_check_point(unit.body, offset)
        if point is not None:
            points[_key(point)] = point
            return _key(point)
    elif unit.tags in {pop.ACK_TAG, pop.BATCH_ACK_TAG}:
        ack = pop.read_ack(unit.body, unit.tags, "")
        if ack is not None:
            acknowledged.setdefault(_key(ack), set()).update(ack.all_offsets)
            return _key(ack)
    return None


def _key(record: pop.CheckPoint | pop.Ack) -> PopKey:
    return record.topic, record.group, record.queue_id, record.start_offset, record.pop_time


def _newest_records(store: StoreSnapshot, queue: QueueReader) -> Iterator[tuple[Unit, int]]:
    """The newest records of a queue with their queue offsets; damaged ones are skipped."""
    end = queue.max_offset
    for entry in queue.entries(max(queue.first_in_log, end - MOST_RECORDS), end):
        item = store.log.unit_at(entry.physical_offset, crc=False)
        if isinstance(item, Unit):
            yield item, entry.queue_offset
