"""A queue in a check: its entries by number, and what the walk of the log noted about it
(docs/formats/consume-queue.md).

Each queue keeps only the number of its next entry, so memory does not grow with the number of units. Mismatches are
kept as a few suspects per queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engine.codec import consume_queue as cq
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.inspection.queue_reader import QueueReader
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.inspection.store_queues import AnyQueue
from engine.mapped.sparse import last_byte
from engine.rules.queue_rules import ComparedEntry, Entries, Verdict

MAX_SUSPECTS = 32
MAX_RANGES = 512
NOWHERE = 1 << 62
"""An offset behind every log."""
_EXT_WINDOW_BYTES = 1 << 16
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Run:
    """Units of one queue in one block, in the order of the log."""

    number: Int64
    physical: Int64
    size: Int64
    tags: Int64
    stored: Int64

    def __len__(self) -> int:
        return len(self.number)

    def part(self, start: int, stop: int | None) -> Run:
        piece = slice(start, stop)
        return Run(self.number[piece], self.physical[piece], self.size[piece], self.tags[piece], self.stored[piece])

    def unit(self, row: int) -> ComparedEntry:
        return ComparedEntry(int(self.physical[row]), int(self.size[row]), int(self.tags[row]))


@dataclass(frozen=True, slots=True)
class Suspect:
    """A unit whose entry is wrong; batch queues count entries by number."""

    number: int
    unit: ComparedEntry
    entry: ComparedEntry
    verdict: Verdict


class QueueWalk:
    """State of one queue while the log is walked. Numbers are queue offsets; in a batch queue, entry numbers."""

    def __init__(self, reader: QueueReader) -> None:
        self.reader = reader
        self.unit_size = reader.unit_size
        self.first_number, self.end_number = self._span()
        self.next_number: int | None = None
        self.suspects: list[Suspect] = []
        self.wrong_count = 0
        self.last_wrong = -1
        self.skipped: list[tuple[int, int]] = []
        self.units_behind = 0  # units whose entries would be after the last one
        self.first_offset_behind = -1
        self.units_before = 0  # units whose entries would be before the first file
        self.first_offset_before = -1
        self.first_lacking_offset = NOWHERE  # of the first unit without its own entry, however it is judged later
        self.last_compared_offset = -1  # of the last unit that was compared with its entry
        self.units = 0
        self.held_back: Run | None = None  # a unit that can only be judged with the next one
        self._ext: tuple[int, bytes] = (0, b"")
        self._is_orderly: bool | None = None

    @property
    def name(self) -> str:
        return f"{self.reader.topic}/{self.reader.queue_id}"

    def has_number(self, number: int) -> bool:
        """Return True if the entry ``number`` is between the first and the last entry, holes included."""
        return self.first_number <= number < self.end_number

    @property
    def is_orderly(self) -> bool:
        """True if each entry is at the place of its number, in only one file."""
        if self._is_orderly is None:
            sequence = self.reader.sequence
            files_are_apart = all(file.end_offset <= next_.start_offset for file, next_ in pairwise(sequence.files))
            self._is_orderly = self.reader.kind == "simple" and files_are_apart and not sequence.oddities
        return self._is_orderly

    def _span(self) -> tuple[int, int]:
        """Return the number of the first entry, and the number behind the last entry that is not all zero."""
        first_number = max(self.reader.sequence.min_offset, 0) // self.unit_size
        for file in reversed(self.reader.files):
            last_position = last_byte(file)
            if last_position:
                return first_number, file.start_offset // self.unit_size + -(-last_position // self.unit_size)
        return first_number, first_number

    @property
    def in_rocksdb(self) -> bool:
        """True if the entries are rows of a RocksDB."""
        return False

    def place_of(self, number: int) -> tuple[str | None, int | None]:
        """Return the file that holds the entry ``number`` or should hold it, and the entry's position there (bytes)."""
        offset = number * self.unit_size
        files = self.reader.files
        file = self.reader.sequence.find(offset)
        path = file.path if file else (files[-1].path if files else None)
        return path, offset - file.start_offset if file else None

    def skip(self, start: int, stop: int) -> None:
        """Note that the entries [start, stop) had no unit in the log."""
        if start >= stop:
            return
        if (self.skipped and self.skipped[-1][1] == start) or len(self.skipped) >= MAX_RANGES:
            self.skipped[-1] = (self.skipped[-1][0], stop)
        else:
            self.skipped.append((start, stop))

    def suspect(self, number: int, unit: ComparedEntry, entry: ComparedEntry, verdict: Verdict) -> None:
        """Note a unit whose entry is wrong."""
        self.wrong_count += 1
        self.first_lacking_offset = min(self.first_lacking_offset, unit.physical)
        self.last_wrong = number
        if len(self.suspects) < MAX_SUSPECTS:
            self.suspects.append(Suspect(number, unit, entry, verdict))

    def begin_again(self, number: int, physical: int) -> None:
        """Start over: the topic was deleted and created again, and earlier mismatches are of the deleted one."""
        self.suspects = [s for s in self.suspects if 0 <= s.entry.physical < physical and s.number >= number]
        self.wrong_count = len(self.suspects)
        self.skipped = [(start, stop) for start, stop in self.skipped if stop <= number]
        self.units_behind, self.first_offset_behind = 0, -1
        self.units_before, self.first_offset_before = 0, -1

    def raw(self, start: int, count: int) -> np.ndarray:
        """Return entries by number; the offset is −1 if no file holds the entry."""
        entry_type = CQ_UNIT if self.unit_size == cq.CQ_UNIT_SIZE else BATCH_CQ_UNIT
        offset, stop = start * self.unit_size, (start + count) * self.unit_size
        sequence = self.reader.sequence
        data = sequence.read(offset, stop - offset)
        if len(data) == stop - offset:
            return np.frombuffer(data, entry_type)
        rows = np.zeros(count, entry_type)
        rows["physical_offset"] = -1
        while offset < stop:
            data = sequence.read(offset, stop - offset)
            entry_count = len(data) // self.unit_size
            if entry_count:
                row = offset // self.unit_size - start
                rows[row : row + entry_count] = np.frombuffer(data[: entry_count * self.unit_size], entry_type)
                offset += entry_count * self.unit_size
                continue
            number = sequence.position_of(offset)
            if number + 1 >= len(sequence.files):
                break
            offset = max(sequence.files[number + 1].start_offset, offset + self.unit_size)
            offset = -(-offset // self.unit_size) * self.unit_size
        return rows

    def messages(self, first_entry: int, rows: np.ndarray) -> int:
        """Return the number of messages in these entries; ``rows`` count from entry ``first_entry``."""
        if self.reader.kind == "simple":
            return len(rows)
        return int(self.raw(first_entry, int(rows.max()) + 1)["batch_size"][rows].sum())

    def entries(self, start: int, count: int) -> Entries:
        """Return entries as columns; the tags of ext addresses are looked up."""
        rows = self.raw(start, count)
        tags = rows["tags_code"].astype(np.int64)
        physical = rows["physical_offset"].astype(np.int64)
        for row in np.flatnonzero((tags <= cq.MAX_EXT_ADDRESS) & (physical >= 0)):
            tags[row] = self._ext_tags(int(tags[row]))
        return Entries(physical, rows["size"].astype(np.int64), tags)

    def entry(self, number: int) -> ComparedEntry:
        """Return the entry with this number."""
        entries = self.entries(number, 1)
        return ComparedEntry(int(entries.physical[0]), int(entries.size[0]), int(entries.tags[0]))

    def chunks(self, start: int, stop: int, step: int = 1 << 16) -> Iterator[tuple[int, Entries]]:
        """Yield entries [start, stop) in pieces, each with its first number; holes between files are left out."""
        sequence = self.reader.sequence
        while start < stop:
            if sequence.find(start * self.unit_size) is None:
                number = sequence.position_of(start * self.unit_size) + 1
                if number >= len(sequence.files):
                    return
                start = max(-(-sequence.files[number].start_offset // self.unit_size), start + 1)
                continue
            count = min(step, stop - start)
            yield start, self.entries(start, count)
            start += count

    def _ext_tags(self, address: int) -> int:
        """Return the tag code of an ext unit; the address itself if there is no such unit."""
        if self.reader.ext is None:
            return address
        offset = cq.ext_offset(address)
        base, data = self._ext
        if not base <= offset <= base + len(data) - 20:
            data = self.reader.ext.read(offset, _EXT_WINDOW_BYTES)
            base = offset
            self._ext = (base, data)
        position = offset - base
        if len(data) - position < 20:
            return address
        size, length = (
            int.from_bytes(data[position : position + 2], "big"),
            int.from_bytes(data[position + 18 : position + 20], "big"),
        )
        if size != length + 20:
            return address
        return int.from_bytes(data[position + 2 : position + 10], "big", signed=True)


class RocksdbWalk(QueueWalk):
    """A queue whose entries are rows of a RocksDB: each has its number in its key, and any of them may be missing."""

    def __init__(self, rows: RocksQueueReader) -> None:
        self.rows = rows
        super().__init__(cast("QueueReader", rows))

    @property
    def in_rocksdb(self) -> bool:
        return True

    def has_number(self, number: int) -> bool:
        """Return True if the entry ``number`` is between the first and the last entry, holes included."""
        return self.first_number <= number < self.end_number

    @property
    def is_orderly(self) -> bool:
        return False

    def _span(self) -> tuple[int, int]:
        """Return the span up to the row that ``max`` names; dispatch overwrites the rows behind it."""
        newest = self.rows.bound("max")
        end = newest.queue_offset + 1 if newest is not None else 0
        first_row = self.rows.first_row
        return min(first_row if first_row is not None else end, end), end

    def place_of(self, number: int) -> tuple[str | None, int | None]:
        del number
        return str(self.rows.folder), None

    def raw(self, start: int, count: int) -> np.ndarray:
        return self.rows.raw_entries(start, count)

    def chunks(self, start: int, stop: int, step: int = 1 << 16) -> Iterator[tuple[int, Entries]]:
        for first_number in range(start, stop, step):
            yield first_number, self.entries(first_number, min(step, stop - first_number))

    def _ext_tags(self, address: int) -> int:
        return address


def walk_of(reader: AnyQueue) -> QueueWalk:
    """Return a walk for a queue in files or in a RocksDB. Raises :class:`CannotRead`."""
    return RocksdbWalk(reader) if isinstance(reader, RocksQueueReader) else QueueWalk(reader)
