"""One queue in a check: the position of its walk, its entries by number, and the mismatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.codec import consume_queue as cq
from engine.codec.dtypes import BATCH_CQ_UNIT, CQ_UNIT
from engine.inspection.queue_reader import QueueReader
from engine.mapped.sparse import last_byte
from engine.rules.queue_rules import Entries, Side, Verdict

MOST_SUSPECTS = 32
MOST_RANGES = 512
NOWHERE = 1 << 62
"""An offset behind all logs."""
_EXT_WINDOW = 1 << 16


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

    def unit(self, row: int) -> Side:
        return Side(int(self.physical[row]), int(self.size[row]), int(self.tags[row]))


@dataclass(frozen=True, slots=True)
class Suspect:
    """A unit whose entry is wrong; batch queues count entries by number."""

    number: int
    unit: Side
    entry: Side
    verdict: Verdict


class QueueWalk:
    """State of one queue while the log is walked. Numbers are queue offsets; in a batch queue, entry numbers."""

    def __init__(self, reader: QueueReader) -> None:
        self.reader = reader
        self.unit_size = reader.unit_size
        self.first = max(reader.sequence.min_offset, 0) // self.unit_size
        self.end = self._last_written()
        self.next: int | None = None
        self.suspects: list[Suspect] = []
        self.wrong = 0
        self.last_wrong = -1
        self.skipped: list[tuple[int, int]] = []
        self.behind = 0  # units that came after the last entry
        self.first_behind = -1
        self.before = 0  # units whose entries would be before the first file
        self.first_before = -1
        self.lacks = NOWHERE  # the first unit without its own entry, however it is judged later
        self.matched = -1  # the last unit that was compared with its entry
        self.units = 0
        self.held: Run | None = None  # a unit that can only be judged with the next one
        self._ext: tuple[int, bytes] = (0, b"")
        self._orderly: bool | None = None

    @property
    def name(self) -> str:
        return f"{self.reader.topic}/{self.reader.queue_id}"

    @property
    def orderly(self) -> bool:
        """True if each entry stands at its number in the only file that holds it."""
        is_orderly = self._orderly
        if is_orderly is None:
            sequence = self.reader.sequence
            apart = all(a.end_offset <= b.start_offset for a, b in pairwise(sequence.files))
            is_orderly = self._orderly = self.reader.kind == "simple" and apart and not sequence.oddities
        return is_orderly

    def _last_written(self) -> int:
        """Number behind the last entry that is not all zero, whatever holes are in front of it."""
        for file in reversed(self.reader.files):
            last_position = last_byte(file)
            if last_position:
                return file.start_offset // self.unit_size + -(-last_position // self.unit_size)
        return self.first

    def skip(self, start: int, stop: int) -> None:
        """Entries [start, stop) had no unit in the log."""
        if start >= stop:
            return
        if (self.skipped and self.skipped[-1][1] == start) or len(self.skipped) >= MOST_RANGES:
            self.skipped[-1] = (self.skipped[-1][0], stop)
        else:
            self.skipped.append((start, stop))

    def suspect(self, number: int, unit: Side, entry: Side, verdict: Verdict) -> None:
        """Note a unit that did not find its entry."""
        self.wrong += 1
        self.lacks = min(self.lacks, unit.physical)
        self.last_wrong = number
        if len(self.suspects) < MOST_SUSPECTS:
            self.suspects.append(Suspect(number, unit, entry, verdict))

    def begin_anew(self, number: int, physical: int) -> None:
        """Start over: the topic was deleted and recreated, and earlier mismatches belong to its former life."""
        self.suspects = [s for s in self.suspects if 0 <= s.entry.physical < physical and s.number >= number]
        self.wrong = len(self.suspects)
        self.skipped = [(start, stop) for start, stop in self.skipped if stop <= number]
        self.behind, self.first_behind = 0, -1
        self.before, self.first_before = 0, -1

    def raw(self, start: int, count: int) -> np.ndarray:
        """Entries by number; the offset is −1 if no file holds the entry."""
        kind = CQ_UNIT if self.unit_size == cq.CQ_UNIT_SIZE else BATCH_CQ_UNIT
        offset, stop = start * self.unit_size, (start + count) * self.unit_size
        sequence = self.reader.sequence
        data = sequence.read(offset, stop - offset)
        if len(data) == stop - offset:
            return np.frombuffer(data, kind)
        rows = np.zeros(count, kind)
        rows["physical_offset"] = -1
        while offset < stop:
            data = sequence.read(offset, stop - offset)
            entry_count = len(data) // self.unit_size
            if entry_count:
                row = offset // self.unit_size - start
                rows[row : row + entry_count] = np.frombuffer(data[: entry_count * self.unit_size], kind)
                offset += entry_count * self.unit_size
                continue
            number = sequence.position_of(offset)
            if number + 1 >= len(sequence.files):
                break
            offset = max(sequence.files[number + 1].start_offset, offset + self.unit_size)
            offset = -(-offset // self.unit_size) * self.unit_size
        return rows

    def messages(self, first_entry: int, rows: np.ndarray) -> int:
        """Number of messages that these entries hold; ``rows`` count from entry ``first_entry``."""
        if self.reader.kind == "simple":
            return len(rows)
        return int(self.raw(first_entry, int(rows.max()) + 1)["batch_size"][rows].sum())

    def entries(self, start: int, count: int) -> Entries:
        """Entries as columns; the tags of ext addresses are looked up."""
        rows = self.raw(start, count)
        tags = rows["tags_code"].astype(np.int64)
        physical = rows["physical_offset"].astype(np.int64)
        for row in np.flatnonzero((tags <= cq.MAX_EXT_ADDRESS) & (physical >= 0)):
            tags[row] = self._ext_tags(int(tags[row]))
        return Entries(physical, rows["size"].astype(np.int64), tags)

    def entry(self, number: int) -> Side:
        """The entry with this number."""
        entries = self.entries(number, 1)
        return Side(int(entries.physical[0]), int(entries.size[0]), int(entries.tags[0]))

    def chunks(self, start: int, stop: int, step: int = 1 << 16) -> Iterator[tuple[int, Entries]]:
        """Entries [start, stop) piece by piece, each with the number of its first; holes between files are left out."""
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
        """Tag code of an ext unit; the address itself if there is no such unit."""
        if self.reader.ext is None:
            return address
        offset = cq.ext_offset(address)
        base, data = self._ext
        if not base <= offset <= base + len(data) - 20:
            data = self.reader.ext.read(offset, _EXT_WINDOW)
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
