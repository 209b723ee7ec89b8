"""Which messages stood in bytes that cannot be read: told by the bytes themselves and by the queues that point there.

A stretch of damage is taken apart from its start and from every place that a queue entry names; lengths come from the
entries and from the next thing that can be read (:mod:`engine.codec.salvage`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.codec.salvage import Entry, FieldFault, Salvage, salvage, salvage_overwritten
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot

MOST_READ = 8 << 20
"""Bytes of one stretch that are taken apart."""
MOST_UNITS = 64
"""Units of one stretch that are told."""
MOST_QUEUES = 4000
"""Queues that are asked for entries; in a store with more only the bytes speak."""


@dataclass(frozen=True, slots=True)
class LostUnit:
    """A unit that cannot be read as it stands. ``salvage`` is None where only its queue entry tells of it."""

    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    salvage: Salvage | None

    @property
    def keys(self) -> list[str]:
        """Its keys, as far as they can be read."""
        return self.salvage.unit.keys if self.salvage is not None else []

    @property
    def wrong(self) -> tuple[FieldFault, ...]:
        """Its fields that contradict the rest."""
        return self.salvage.wrong if self.salvage is not None else ()


def was(lost: LostUnit) -> str:
    """``topic/queue/offset, keys`` of a lost unit."""
    return ", ".join((f"{lost.topic}/{lost.queue_id}/{lost.queue_offset}", *lost.keys))


@dataclass(frozen=True, slots=True)
class _Entry:
    offset: int
    size: int
    topic: str
    queue_id: int
    number: int


def lost_units(store: StoreSnapshot, offset: int, size: int) -> list[LostUnit]:
    """The units that stood in the ``size`` unreadable bytes from absolute ``offset`` on, in the order of the log."""
    end = offset + size
    entries = {one.offset: one for one in _entries_into(store, offset, end)}
    try:
        data = memoryview(store.log.read(offset, min(size, MOST_READ)))  # what is cut off it is no copy
    except CannotRead:
        data = memoryview(b"")
    starts = sorted({offset, *entries})
    found: list[LostUnit] = []
    while starts and len(found) < MOST_UNITS:
        at = starts.pop(0)
        entry, behind = entries.get(at), starts[0] if starts else end
        sizes = [*([entry.size] if entry else []), behind - at]
        told = salvage(data[at - offset :], at, sizes)
        if told is not None and told.unit.size > behind - at:
            told = salvage(data[at - offset : behind - offset], at, sizes)
        if told is None and entry is not None:
            told = salvage_overwritten(
                data[at - offset :], at, Entry(entry.size, entry.topic, entry.queue_id, entry.number)
            )
        unit = _lost(at, entry, told)
        if unit is None:
            continue
        found.append(unit)
        if at + unit.size < behind:
            starts.insert(0, at + unit.size)
    return found


def lost_at(store: StoreSnapshot, place: int) -> tuple[Damage, list[LostUnit]] | None:
    """The unreadable stretch at the absolute offset ``place``, and the units that stood there; None where nothing can
    be told.
    """
    log = store.log
    item = next(log.walk(log.align(place), crc=False), None) if log.sequence.find(place) is not None else None
    if not isinstance(item, Damage) or item.unread or not item.offset <= place < item.offset + item.size:
        return None
    found = [one for one in lost_units(store, item.offset, item.size) if one.offset <= place < one.offset + one.size]
    return (item, found) if found else None


def _lost(at: int, entry: _Entry | None, told: Salvage | None) -> LostUnit | None:
    if told is not None:
        unit = told.unit
        if entry is not None and entry.topic == unit.topic:
            told = replace(told, wrong=told.wrong + tuple(_other_places(unit, entry)))
            return LostUnit(at, unit.size, entry.topic, entry.queue_id, entry.number, told)
        return LostUnit(at, unit.size, unit.topic, unit.queue_id, unit.queue_offset, told)
    if entry is None:
        return None
    return LostUnit(at, entry.size, entry.topic, entry.queue_id, entry.number, None)


def _other_places(unit: Unit, entry: _Entry) -> Iterator[FieldFault]:
    """Fields of a unit that its own queue's entry contradicts."""
    if unit.queue_id != entry.queue_id:
        yield FieldFault("queueId", unit.queue_id, entry.queue_id)
    if unit.queue_offset != entry.number:
        yield FieldFault("queueOffset", unit.queue_offset, entry.number)


def _entries_into(store: StoreSnapshot, start: int, stop: int) -> Iterator[_Entry]:
    """Entries of simple queues that point into [start, stop) of the log."""
    queues = [queue for queues in store.topics().values() for queue in queues.values() if queue.kind == "simple"]
    for queue in queues if len(queues) <= MOST_QUEUES else ():
        try:
            yield from _of_queue(queue, start, stop)
        except CannotRead:
            continue


def _of_queue(queue: QueueReader, start: int, stop: int) -> Iterator[_Entry]:
    low = max(queue.sequence.min_offset, 0) // queue.unit_size
    high = end = queue.raw_end // queue.unit_size
    while low < high:
        middle = (low + high) // 2
        entry = queue.entry(middle)
        if entry is not None and entry.physical_offset < start:
            low = middle + 1
        else:
            high = middle
    for entry in queue.entries(low, min(end, low + MOST_UNITS)):
        if entry.state != "entry" or entry.physical_offset >= stop:
            return
        if entry.physical_offset >= start and entry.size > 0:
            yield _Entry(entry.physical_offset, entry.size, queue.topic, queue.queue_id, entry.queue_offset)
