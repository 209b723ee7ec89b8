"""Identifies messages in unreadable bytes, from the bytes themselves and from queue entries that point there.

A range of damage is parsed from its start and from every place that a queue entry names; lengths come from the
entries and from the next readable item (:mod:`engine.codec.salvage`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from engine.codec.message import Unit
from engine.codec.salvage import Entry, FieldFault, Salvage, salvage, salvage_overwritten
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead
from engine.inspection.queue_reader import QueueReader
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue

MAX_READ_BYTES = 8 << 20
"""Bytes of one range that are parsed."""
MAX_UNITS = 64
"""Number of units of one range that are reported."""
MAX_QUEUES = 4000
"""Number of queues that are searched for entries; with more queues only the bytes are used."""


@dataclass(frozen=True, slots=True)
class LostUnit:
    """A unit that cannot be read normally. ``salvage`` is None if only its queue entry is known; ``batch_size`` is the
    number of messages that the entry of a batch queue says, 0 for another queue.
    """

    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    salvage: Salvage | None
    batch_size: int = 0

    @property
    def keys(self) -> list[str]:
        """Its keys, as far as they are readable."""
        return self.salvage.unit.keys if self.salvage is not None else []

    @property
    def wrong(self) -> tuple[FieldFault, ...]:
        """Its fields that contradict the rest."""
        return self.salvage.wrong if self.salvage is not None else ()


def was(lost: LostUnit) -> str:
    """``topic/queue/offset, keys`` of a lost unit."""
    return ", ".join((f"{lost.topic}/{lost.queue_id}/{lost.queue_offset}", *lost.keys))


@dataclass(frozen=True, slots=True)
class EntryIntoDamage:
    """The entry of a queue that points into unreadable bytes, at ``offset`` of the log. ``number`` is the queue offset,
    ``batch_size`` the number of messages in a batch queue, 0 in another.
    """

    offset: int
    size: int
    topic: str
    queue_id: int
    number: int
    batch_size: int = 0


def lost_units(store: StoreSnapshot, offset: int, size: int, max_units: int = MAX_UNITS) -> list[LostUnit]:
    """The units that were in the ``size`` unreadable bytes from absolute ``offset`` on, in the order of the log;
    ``max_units`` at most.
    """
    end = offset + size
    entries: dict[int, EntryIntoDamage] = {}
    for queue_entry in entries_into(store, offset, end, max_units):
        if queue_entry.offset not in entries or not queue_entry.topic.startswith(LMQ_PREFIX):
            entries[queue_entry.offset] = queue_entry  # of a light message: that of its own queue
    try:
        data = memoryview(store.log.read(offset, min(size, MAX_READ_BYTES)))  # slices of it make no copies
    except CannotRead:
        data = memoryview(b"")
    starts = deque(sorted({offset, *entries}))
    units: list[LostUnit] = []
    while starts and len(units) < max_units:
        unit_offset = starts.popleft()
        entry, next_start = entries.get(unit_offset), starts[0] if starts else end
        sizes = [*([entry.size] if entry else []), next_start - unit_offset]
        salvaged = salvage(data[unit_offset - offset :], unit_offset, sizes)
        if salvaged is not None and salvaged.unit.size > next_start - unit_offset:
            salvaged = salvage(data[unit_offset - offset : next_start - offset], unit_offset, sizes)
        if entry is not None and (salvaged is None or _has_foreign_topic(salvaged.unit, entry)):
            salvaged = salvage_overwritten(
                data[unit_offset - offset :], unit_offset, Entry(entry.size, entry.topic, entry.queue_id, entry.number)
            )
        unit = _lost_unit(unit_offset, entry, salvaged)
        if unit is None:
            continue
        units.append(unit)
        if unit_offset + unit.size < next_start:
            starts.appendleft(unit_offset + unit.size)
    return units


def lost_at(store: StoreSnapshot, place: int) -> tuple[Damage, list[LostUnit]] | None:
    """The unreadable range at the absolute offset ``place``, and the units that were there; None if that cannot be
    determined.
    """
    log = store.log
    item = next(log.walk(log.align(place), crc=False), None) if log.sequence.find(place) is not None else None
    if not isinstance(item, Damage) or item.unread or not item.offset <= place < item.offset + item.size:
        return None
    units = [
        unit for unit in lost_units(store, item.offset, item.size) if unit.offset <= place < unit.offset + unit.size
    ]
    return (item, units) if units else None


def entry_at(store: StoreSnapshot, offset: int) -> Entry | None:
    """The entry of a simple queue that points to ``offset``; None if there is none or more than one. Those of light
    queues do not count: a light message is in its own queue, too.
    """
    entries = [entry for entry in entries_into(store, offset, offset + 1, 2) if not entry.topic.startswith(LMQ_PREFIX)]
    if len(entries) != 1:
        return None
    return Entry(entries[0].size, entries[0].topic, entries[0].queue_id, entries[0].number)


def _has_foreign_topic(unit: Unit, entry: EntryIntoDamage) -> bool:
    """Return True if the topic of a damaged unit is not that of its own queue's entry, as if it was overwritten."""
    return unit.topic != entry.topic and unit.size == entry.size and not entry.topic.startswith(LMQ_PREFIX)


def _lost_unit(unit_offset: int, entry: EntryIntoDamage | None, salvaged: Salvage | None) -> LostUnit | None:
    if salvaged is not None:
        unit = salvaged.unit
        if entry is not None and entry.topic == unit.topic:
            salvaged = replace(salvaged, wrong=salvaged.wrong + tuple(_other_places(unit, entry)))
            return LostUnit(
                unit_offset, unit.size, entry.topic, entry.queue_id, entry.number, salvaged, entry.batch_size
            )
        return LostUnit(unit_offset, unit.size, unit.topic, unit.queue_id, unit.queue_offset, salvaged)
    if entry is None:
        return None
    return LostUnit(unit_offset, entry.size, entry.topic, entry.queue_id, entry.number, None, entry.batch_size)


def _other_places(unit: Unit, entry: EntryIntoDamage) -> Iterator[FieldFault]:
    """Fields of a unit that its own queue's entry contradicts."""
    if unit.queue_id != entry.queue_id:
        yield FieldFault("queueId", unit.queue_id, entry.queue_id)
    if unit.queue_offset != entry.number:
        yield FieldFault("queueOffset", unit.queue_offset, entry.number)


def entries_into(store: StoreSnapshot, start: int, stop: int, max_entries: int) -> Iterator[EntryIntoDamage]:
    """Entries of queues that point into [start, stop) of the log."""
    queues = [queue for queues in store.queues.by_topic().values() for queue in queues.values()]
    for queue in queues if len(queues) <= MAX_QUEUES else ():
        try:
            if queue.kind == "batch" and isinstance(queue, QueueReader):
                yield from _of_batch_queue(queue, start, stop, max_entries)
            else:
                yield from _of_queue(queue, start, stop, max_entries)
        except CannotRead:
            continue


class _PointsIntoLog(Protocol):
    @property
    def physical_offset(self) -> int: ...


def _first_into(start: int, lower: int, upper: int, read_entry: Callable[[int], _PointsIntoLog | None]) -> int:
    """Return the number of the first entry in [lower, upper) that does not point in front of ``start``."""

    def is_not_before(number: int) -> bool:
        entry = read_entry(number)
        return entry is None or entry.physical_offset >= start

    return lower + bisect_left(range(lower, max(upper, lower)), True, key=is_not_before)


def _of_batch_queue(queue: QueueReader, start: int, stop: int, max_entries: int) -> Iterator[EntryIntoDamage]:
    lower = max(queue.sequence.min_offset, 0) // queue.unit_size
    end = max((file.end_offset for file in queue.files), default=0) // queue.unit_size
    lower = _first_into(start, lower, end, queue.batch)
    for number in range(lower, min(end, lower + max_entries)):
        batch = queue.batch(number)
        if batch is None or batch.physical_offset >= stop:
            return
        if batch.physical_offset >= start:
            yield EntryIntoDamage(
                batch.physical_offset,
                batch.size,
                queue.topic,
                queue.queue_id,
                batch.queue_offset,
                batch.next_offset - batch.queue_offset,
            )


def _of_queue(queue: AnyQueue, start: int, stop: int, max_entries: int) -> Iterator[EntryIntoDamage]:
    if isinstance(queue, RocksQueueReader):
        lower = queue.min_offset
    else:
        lower = max(queue.sequence.min_offset, 0) // queue.unit_size
    end = queue.raw_end // queue.unit_size
    lower = _first_into(start, lower, end, queue.entry)
    last = min(end, lower + max_entries)
    entries = queue.stored_entries(lower, last) if isinstance(queue, RocksQueueReader) else queue.entries(lower, last)
    for entry in entries:
        if entry.state != "entry" or entry.physical_offset >= stop:
            return
        if entry.physical_offset >= start and entry.size > 0:
            yield EntryIntoDamage(entry.physical_offset, entry.size, queue.topic, queue.queue_id, entry.queue_offset)
