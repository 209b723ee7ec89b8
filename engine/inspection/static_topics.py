"""Logical queues of a store's static topics, with the offsets that the store has of them
(docs/formats/config-tables.md#static-topics).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from engine.codec.queue_mappings import MAPPINGS_FILE, MappedRange, TopicMapping, range_at, read_mappings
from engine.errors import CannotRead
from engine.inspection import tables
from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class LogicalRange:
    """A range of a logical queue. The bounds are physical; None if another broker has the queue, or it is absent."""

    topic: str
    queue_id: int
    range: MappedRange
    is_local: bool
    is_leading: bool
    min_offset: int | None
    max_offset: int | None

    @property
    def logical_bounds(self) -> tuple[int, int] | None:
        """First logical offset and the one behind the last, of the messages that the store has of the range."""
        if self.min_offset is None or self.max_offset is None or not self.range.is_placed:
            return None
        return self.range.logical(self.min_offset), self.range.logical_within(self.max_offset)

    def logical_offset(self, offset: int) -> int | None:
        """Logical offset of a physical one; None if it is not of the range, or the range has no place yet."""
        item = self.range
        is_inside = item.start_offset <= offset and not (item.has_end and offset >= item.end_offset)
        return item.logical(offset) if item.is_placed and is_inside else None


class LogicalOffsets:
    """Logical offsets of one physical queue of a static topic."""

    def __init__(self, ranges: tuple[LogicalRange, ...]) -> None:
        self.ranges = ranges
        """The ranges that are in the queue, mostly one."""

    def find(self, offset: int) -> tuple[int, int] | None:
        """Logical queue and logical offset of the message at a physical offset; None if no client can ask for it."""
        for item in self.ranges:
            logical_offset = item.logical_offset(offset)
            if logical_offset is not None:
                return item.queue_id, logical_offset
        return None


def mappings(store: StoreSnapshot) -> dict[str, TopicMapping]:
    """The mappings of static topics, by topic; none without a table. Raises :class:`CannotRead`."""
    return read_mappings(tables.loaded(store, MAPPINGS_FILE) or {})


def find_logical_offsets(store: StoreSnapshot, topic: str) -> dict[int, LogicalOffsets]:
    """The physical queues of a static topic that this store has, by their number; empty for any other topic, and if
    the mappings cannot be read.
    """
    by_queue: dict[int, tuple[LogicalRange, ...]] = {}
    with contextlib.suppress(CannotRead):
        for item in logical_ranges(store, topic):
            if item.is_local:
                by_queue[item.range.queue_id] = (*by_queue.get(item.range.queue_id, ()), item)
    return {number: LogicalOffsets(ranges) for number, ranges in by_queue.items()}


def find_range(store: StoreSnapshot, topic: str, queue_id: int, logical_offset: int) -> LogicalRange | None:
    """The range of a logical queue that has the offset, whichever broker has it; None without such a queue.

    Raises :class:`CannotRead`.
    """
    ranges = [item for item in logical_ranges(store, topic) if item.queue_id == queue_id]
    holding = range_at([item.range for item in ranges], logical_offset)
    return next((item for item in ranges if item.range is holding), None)


def logical_ranges(store: StoreSnapshot, topic_name: str | None = None) -> Iterator[LogicalRange]:
    """Every range of every logical queue that the store's broker knows, the oldest of each queue first; those of one
    topic if it is named.

    Raises :class:`CannotRead`.
    """
    for topic, mapping in mappings(store).items():
        if topic_name not in {None, topic}:
            continue
        queues = store.queues.by_topic().get(topic, {})
        for queue_id, ranges in mapping.queues.items():
            for item in ranges:
                is_local = item.broker == mapping.broker
                queue = queues.get(item.queue_id) if is_local else None
                bounds = (None, None) if queue is None else (queue.min_offset, queue.max_offset)
                yield LogicalRange(topic, queue_id, item, is_local, item is ranges[-1], *bounds)
