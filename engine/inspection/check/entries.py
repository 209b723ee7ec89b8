"""One queue in a check: where its walk stands, its entries by number, and what did not fit."""

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

    def part(self, first: int, last: int | None) -> Run:
        piece = slice(first, last)
        return Run(self.number[piece], self.physical[piece], self.size[piece], self.tags[piece], self.stored[piece])

    def unit(self, at: int) -> Side:
        return Side(int(self.physical[at]), int(self.size[at]), int(self.tags[at]))


@dataclass(frozen=True, slots=True)
class Suspect:
    """A unit whose entry is not the one that belongs there; batch queues count entries by number."""

    number: int
    unit: Side
    entry: Side
    verdict: Verdict


class QueueWalk:
    """The state of one queue while the log goes by. Numbers are queue offsets; in a batch queue, entry numbers."""

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
        self.before = 0  # units whose entries would stand in front of the first file
        self.first_before = -1
        self.lacks = NOWHERE  # the first unit that has not its own entry, whatever is thought of it afterwards
        self.matched = -1  # the last unit that was held against its entry
        self.units = 0
        self.held: Run | None = None  # a unit that is judged when the one behind it is known
        self._ext: tuple[int, bytes] = (0, b"")
        self._orderly: bool | None = None

    @property
    def name(self) -> str:
        return f"{self.reader.topic}/{self.reader.queue_id}"

    @property
    def orderly(self) -> bool:
        """Whether each entry stands at its number in the one file that holds it."""
        found = self._orderly
        if found is None:
            sequence = self.reader.sequence
            apart = all(a.end_offset <= b.start_offset for a, b in pairwise(sequence.files))
            found = self._orderly = self.reader.kind == "simple" and apart and not sequence.oddities
        return found

    def _last_written(self) -> int:
        """Number behind the last entry that is not all zero, wherever holes are in front of it."""
        for file in reversed(self.reader.files):
            last = last_byte(file)
            if last:
                return file.start_offset // self.unit_size + -(-last // self.unit_size)
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
        """One unit that did not find its entry."""
        self.wrong += 1
        self.lacks = min(self.lacks, unit.physical)
        self.last_wrong = number
        if len(self.suspects) < MOST_SUSPECTS:
            self.suspects.append(Suspect(number, unit, entry, verdict))

    def begin_anew(self, number: int, physical: int) -> None:
        """The topic was deleted and made again: what did not fit before belonged to its former life."""
        self.suspects = [s for s in self.suspects if 0 <= s.entry.physical < physical and s.number >= number]
        self.wrong = len(self.suspects)
        self.skipped = [(start, stop) for start, stop in self.skipped if stop <= number]
        self.behind, self.first_behind = 0, -1
        self.before, self.first_before = 0, -1

    def raw(self, start: int, count: int) -> np.ndarray:
        """Entries by number; where no file holds one, its offset is −1."""
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
            whole = len(data) // self.unit_size
            if whole:
                at = offset // self.unit_size - start
                rows[at : at + whole] = np.frombuffer(data[: whole * self.unit_size], kind)
                offset += whole * self.unit_size
                continue
            number = sequence.position_of(offset)
            if number + 1 >= len(sequence.files):
                break
            offset = max(sequence.files[number + 1].start_offset, offset + self.unit_size)
            offset = -(-offset // self.unit_size) * self.unit_size
        return rows

    def messages(self, first: int, rows: np.ndarray) -> int:
        """How many messages these entries hold; ``rows`` count from entry ``first``."""
        if self.reader.kind == "simple":
            return len(rows)
        return int(self.raw(first, int(rows.max()) + 1)["batch_size"][rows].sum())

    def entries(self, start: int, count: int) -> Entries:
        """Entries as columns; the tags of ext addresses are looked up."""
        rows = self.raw(start, count)
        tags = rows["tags_code"].astype(np.int64)
        physical = rows["physical_offset"].astype(np.int64)
        for at in np.flatnonzero((tags <= cq.MAX_EXT_ADDRESS) & (physical >= 0)):
            tags[at] = self._ext_tags(int(tags[at]))
        return Entries(physical, rows["size"].astype(np.int64), tags)

    def entry(self, number: int) -> Side:
        """One entry."""
        found = self.entries(number, 1)
        return Side(int(found.physical[0]), int(found.size[0]), int(found.tags[0]))

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
        """Tag code of an ext unit; the address itself where there is no such unit."""
        if self.reader.ext is None:
            return address
        offset = cq.ext_offset(address)
        base, data = self._ext
        if not base <= offset <= base + len(data) - 20:
            data = self.reader.ext.read(offset, _EXT_WINDOW)
            base = offset
            self._ext = (base, data)
        at = offset - base
        if len(data) - at < 20:
            return address
        size, length = int.from_bytes(data[at : at + 2], "big"), int.from_bytes(data[at + 18 : at + 20], "big")
        if size != length + 20:
            return address
        return int.from_bytes(data[at + 2 : at + 10], "big", signed=True)
