"""What a search of images found, as rows of numbers: runs of whole units, and beginnings of units.

A fragmented image has many thousands of both. They stay columns up to the report; :class:`UnitRun` and
:class:`HeadFragment` are made of single rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec.unit_search import UnitHead

Int64 = npt.NDArray[np.int64]


class UnitRun(NamedTuple):
    """``unit_count`` whole units back to back in the source number ``source``, from ``position`` of the file on.

    ``physical_offset`` is that of the first one. ``is_live``: the store has the same bytes at that offset.
    ``in_damaged`` means that the bytes lie within a unit whose body CRC is wrong.
    """

    source: int
    position: int
    physical_offset: int
    size: int
    unit_count: int
    is_live: bool
    in_damaged: bool = False
    has_entries: bool = False
    """Between the units are the headers of their DLedger entries."""

    @property
    def shift(self) -> int:
        """Position minus physical offset: equal for all units of a file that is not fragmented."""
        return self.position - self.physical_offset

    @property
    def end_position(self) -> int:
        return self.position + self.size

    @property
    def end_offset(self) -> int:
        return self.physical_offset + self.size


class HeadFragment(NamedTuple):
    """The beginning of a unit whose other bytes do not follow; with ``is_bad_body`` they do, but the CRC is wrong."""

    source: int
    position: int
    head: UnitHead
    is_bad_body: bool = False
    in_damaged: bool = False


_SIZE, _UNIT_COUNT = UnitRun._fields.index("size"), UnitRun._fields.index("unit_count")


class RowTable:
    """Rows of numbers that grow at the end."""

    def __init__(self, width: int) -> None:
        self._rows = np.empty((64, width), np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Int64:
        """A view of all rows."""
        return self._rows[: self._count]

    def reorder(self, order: Int64) -> None:
        """Put the rows in the ``order`` of their numbers."""
        self._rows[: self._count] = self._rows[order]

    def append(self, count: int, *columns: Int64 | int) -> None:
        """Append ``count`` rows; a number is the same in each of them."""
        stop = self._count + count
        if stop > len(self._rows):
            larger = np.empty((max(2 * len(self._rows), stop), self._rows.shape[1]), np.int64)
            larger[: self._count] = self.rows
            self._rows = larger
        for number, column in enumerate(columns):
            self._rows[self._count : stop, number] = column
        self._count = stop


class RunTable(RowTable):
    """Runs, as the fields of :class:`UnitRun`."""

    def __init__(self) -> None:
        super().__init__(len(UnitRun._fields))

    def __getitem__(self, number: int) -> UnitRun:
        return _run_of(self.rows[number].tolist())

    def __iter__(self) -> Iterator[UnitRun]:
        return map(_run_of, self.rows.tolist())

    def append_runs(self, count: int, source: int, *columns: Int64 | int) -> None:
        """Append runs; the first one lengthens the last one of the table if its units go on there."""
        start = self._count
        self.append(count, source, *columns)
        if not start or not count:
            return
        previous, run = self[start - 1], self[start]
        if (
            (previous.source, previous.is_live, previous.in_damaged) == (run.source, run.is_live, run.in_damaged)
            and previous.end_position == run.position
            and previous.end_offset == run.physical_offset
        ):
            self._rows[start - 1, _SIZE] += run.size
            self._rows[start - 1, _UNIT_COUNT] += run.unit_count
            self._rows[start : self._count - 1] = self._rows[start + 1 : self._count].copy()
            self._count -= 1


class HeadTable(RowTable):
    """Beginnings of units: source, position, the fields of :class:`UnitHead`, flags of :class:`HeadFragment`."""

    def __init__(self) -> None:
        super().__init__(4 + len(UnitHead._fields))

    def __getitem__(self, number: int) -> HeadFragment:
        return _head_of(self.rows[number].tolist())

    def __iter__(self) -> Iterator[HeadFragment]:
        return map(_head_of, self.rows.tolist())

    def append_head(self, fragment: HeadFragment) -> None:
        """Append one row."""
        self.append(1, fragment.source, fragment.position, *fragment.head, fragment.is_bad_body, fragment.in_damaged)


@dataclass(slots=True)
class SearchResult:
    """The result of the search of all sources."""

    runs: RunTable = field(default_factory=RunTable)
    heads: HeadTable = field(default_factory=HeadTable)
    joins: RowTable = field(default_factory=lambda: RowTable(6))
    """Units that were joined while they were in memory: the source, and a row of :attr:`unit_survey.Survey.joins`."""
    open_ends: list[UnitRun] = field(default_factory=list)
    """Single units with topic or properties in a page of which nothing proves that it is of the same file."""


def _run_of(row: list[int]) -> UnitRun:
    source, position, offset, size, unit_count, is_live, in_damaged, has_entries = row
    return UnitRun(source, position, offset, size, unit_count, bool(is_live), bool(in_damaged), bool(has_entries))


def _head_of(row: list[int]) -> HeadFragment:
    source, position, *fields, is_bad_body, in_damaged = row
    return HeadFragment(source, position, UnitHead(*fields), bool(is_bad_body), bool(in_damaged))
