"""Logical queues of a store's static topics, with the offsets that the store has of them
(docs/formats/config-tables.md#static-topics).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.codec.queue_mappings import MAPPINGS_FILE, MappedRange, TopicMapping, read_mappings
from engine.inspection import tables
from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class LogicalRange:
    """A range of a logical queue. The bounds are physical; None where another broker has the queue, or it is absent."""

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


def mappings(store: StoreSnapshot) -> dict[str, TopicMapping]:
    """The mappings of static topics, by topic; none without a table. Raises :class:`CannotRead`."""
    return read_mappings(tables.loaded(store, MAPPINGS_FILE) or {})


def logical_ranges(store: StoreSnapshot) -> Iterator[LogicalRange]:
    """Every range of every logical queue that the store's broker knows, the oldest of each queue first.

    Raises :class:`CannotRead`.
    """
    for topic, mapping in mappings(store).items():
        queues = store.queues_by_topic().get(topic, {})
        for queue_id, ranges in mapping.queues.items():
            for item in ranges:
                is_local = item.broker == mapping.broker
                queue = queues.get(item.queue_id) if is_local else None
                bounds = (None, None) if queue is None else (queue.min_offset, queue.max_offset)
                yield LogicalRange(topic, queue_id, item, is_local, item is ranges[-1], *bounds)
