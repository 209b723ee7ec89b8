"""Files of the commit log that retention had deleted, and that an older copy brought back in front of the log.

They are read as a part of the log, with a gap behind them. Queues show what they are: those of their messages were
deleted with them, as retention does, so nothing of them and of the gap is lost now.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from engine.codec.message import PREPARED, ROLLBACK, Unit
from engine.errors import StoreError
from engine.mapped.read_only import ReadOnlyFile

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_UNITS = 4096
"""Units of a file that are compared with their queues."""


class OlderFront(NamedTuple):
    """The files in front, where they end, where the log of today begins (``start``), and the queue that shows it:
    its first entry, and the offset in the log of a message before it.
    """

    files: tuple[ReadOnlyFile, ...]
    end: int
    start: int
    queue: str
    first_entry: int
    unit: int

    @property
    def begin(self) -> int:
        """The first offset of the files in front."""
        return self.files[0].start_offset

    def holds(self, offset: int) -> bool:
        """Return True if retention had deleted the bytes at ``offset`` of the log."""
        return self.begin <= offset < self.start


def older_front(store: StoreSnapshot) -> OlderFront | None:
    """The files in front of the log that retention had deleted; None if there are none, or if no queue shows it."""
    if store.paths is None:
        return None
    files = store.log.sequence.files
    gaps = (n for n, (file, following) in enumerate(pairwise(files), 1) if file.end_offset < following.start_offset)
    count = next(gaps, 0)
    if not count:
        return None
    front, start = tuple(files[:count]), files[count].start_offset
    with contextlib.suppress(StoreError):
        for unit in _units(store, front):
            first_entry = _first_entry_behind(store, unit, front[-1].end_offset)
            if first_entry is not None:
                queue = f"{unit.topic}/{unit.queue_id}"
                return OlderFront(front, front[-1].end_offset, start, queue, first_entry, unit.offset)
    return None


def _units(store: StoreSnapshot, files: Sequence[ReadOnlyFile]) -> Iterator[Unit]:
    """The first units of the last of these files, and of the first one."""
    for file in {file.start_offset: file for file in (files[-1], files[0])}.values():
        for item in islice(store.units(file.start_offset, crc=False), MAX_UNITS):
            if not file.start_offset <= item.offset < file.end_offset:
                break
            if isinstance(item, Unit) and item.physical_offset == item.offset:
                yield item


def _first_entry_behind(store: StoreSnapshot, unit: Unit, end: int) -> int | None:
    """The first entry of the unit's queue if the queue's earlier files were deleted, with the unit's entry, and it
    points behind ``end``; else None.
    """
    if unit.transaction_type in {PREPARED, ROLLBACK}:
        return None
    queue = store.queue(unit.topic, unit.queue_id)
    if queue is None or queue.kind != "simple":
        return None
    first_entry = max(queue.sequence.min_offset, 0) // queue.unit_size
    if not unit.queue_offset < first_entry:
        return None
    rows = queue.array(first_entry, first_entry + 1)
    return first_entry if len(rows) and int(rows["physical_offset"][0]) >= end else None
