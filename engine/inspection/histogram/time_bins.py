"""Bins of store time: messages and bytes by topic, offsets, and times from born to stored.

Only bins with messages exist, so a night without messages or one absurd time costs nothing. Bins begin at
multiples of their width since the epoch, and each width divides the next one: wider bins are exact sums. The first
bins are 1 ms wide; when there are too many, all become wider.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.inspection.histogram.delay_buckets import BUCKETS, percentiles

Ints = npt.NDArray[np.int64]

_MIX, _MASK_64 = 0x9E3779B97F4A7C15, (1 << 64) - 1
_FEW_BINS = 256
"""Bins whose edges are looked up in ordered times, which takes less time than to divide them all."""
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
WIDTHS_MS: tuple[int, ...] = (
    *(1, 5, 10, 50, 100, 500),
    *(_SECOND, 5 * _SECOND, 10 * _SECOND, 30 * _SECOND),
    *(_MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 7 * _DAY),
    *(70 * _DAY * 10**n for n in range(9)),
)
"""Widths of bins. The widest ones only serve times that damage has changed."""
OTHERS = ""
"""Name of the column of all topics that have none of their own."""
MAX_BINS = 1024
MAX_TOPICS = 64
"""Topics that are counted separately. When there are more, the smaller half is counted as :data:`OTHERS`."""
MAX_FOLDINGS = 16
"""So many times the smaller half is put together; later topics are :data:`OTHERS` at once."""


def width_for(begin: int, end: int, bins: int) -> int:
    """Return the smallest width with which ``bins`` bins cover [begin, end) ms."""
    return next((width for width in WIDTHS_MS if -(-end // width) - begin // width <= bins), WIDTHS_MS[-1])


@dataclass(frozen=True, slots=True)
class Units:
    """Columns of some units in the order of the log. ``buckets`` are those of the units that ``timed`` selects, None:
    of all. ``is_ordered``: no unit was stored before the one in front of it.
    """

    offset: Ints
    size: npt.NDArray[np.int32]
    stored: Ints
    column: npt.NDArray[np.intp]
    timed: npt.NDArray[np.bool_] | None
    buckets: Ints
    is_ordered: bool


@dataclass(frozen=True, slots=True)
class BinTable:
    """Bins as plain lists, in the order of time. ``messages`` and ``bytes`` have a list for each of ``topics``.

    ``p50`` and ``p99`` are −1 where no message has a time from born to stored. ``first`` is the offset of the first
    unit of a bin, ``end`` the offset behind its last one.
    """

    width: int
    starts: list[int]
    topics: list[str]
    messages: list[list[int]]
    bytes: list[list[int]]
    first: list[int]
    end: list[int]
    p50: list[int]
    p99: list[int]


class OpenTables(NamedTuple):
    """The tables of bins as the compiled twin fills them: flat arrays with room for further rows."""

    slots: npt.NDArray[np.int32]
    numbers: Ints
    messages: Ints
    bytes: Ints
    delays: npt.NDArray[np.int32]
    first: Ints
    end: Ints


class TimeBins:
    """Bins that are filled. ``topics`` are the names of the columns; the first one is :data:`OTHERS`."""

    def __init__(self, max_bins: int = MAX_BINS, width: int = WIDTHS_MS[0]) -> None:
        self.width = width
        self.topics = [OTHERS]
        self._max_bins = max_bins
        self._columns: dict[str, int] = {OTHERS: 0}
        self._rows: dict[int, int] = {}
        self._numbers = np.zeros(0, np.int64)
        self._messages = np.zeros((0, 1), np.int64)
        self._bytes = np.zeros((0, 1), np.int64)
        self._first = np.zeros(0, np.int64)
        self._end = np.zeros(0, np.int64)
        self._delays = np.zeros((0, BUCKETS), np.int32)
        self._slots: npt.NDArray[np.int32] | None = None
        self.foldings = 0
        """How often topics were put together; columns of names are others then."""

    def __len__(self) -> int:
        return len(self._rows)

    # -- columns

    def column_of(self, topic: str) -> int:
        """Return the column of a topic; a new one if there is room, which may put smaller topics together."""
        column = self._columns.get(topic)
        if column is None:
            if len(self.topics) > MAX_TOPICS:
                if self.foldings >= MAX_FOLDINGS:
                    return 0
                self._fold()
            column = self._columns[topic] = len(self.topics)
            self.topics.append(topic)
            self._messages = np.ascontiguousarray(np.pad(self._messages, ((0, 0), (0, 1))))
            self._bytes = np.ascontiguousarray(np.pad(self._bytes, ((0, 0), (0, 1))))
        return column

    def _fold(self) -> None:
        """Put the smaller half of the topics together."""
        sums = self._bytes.sum(axis=0)[1:]
        kept = np.sort(np.argsort(-sums, kind="stable")[: MAX_TOPICS // 2]) + 1
        folded = np.setdiff1d(np.arange(1, len(self.topics)), kept)
        for counts in (self._messages, self._bytes):
            counts[:, 0] += counts[:, folded].sum(axis=1)
        chosen = [0, *kept.tolist()]
        self._messages = np.ascontiguousarray(self._messages[:, chosen])
        self._bytes = np.ascontiguousarray(self._bytes[:, chosen])
        self.topics = [self.topics[column] for column in chosen]
        self._columns = dict.fromkeys(self._columns, 0) | {topic: n for n, topic in enumerate(self.topics)}
        self.foldings += 1

    # -- adding

    def add(self, units: Units) -> None:
        """Add units."""
        if not len(units.stored):
            return
        starts, numbers = _runs(units, self.width)
        while True:
            distinct = numbers if units.is_ordered else np.unique(numbers)
            if len(self) + len(distinct) <= self._max_bins or self.width == WIDTHS_MS[-1]:
                break
            new_count = sum(number not in self._rows for number in distinct.tolist())
            if len(self) + new_count <= self._max_bins:
                break
            self.coarsen(WIDTHS_MS[bisect_right(WIDTHS_MS, self.width)])
            starts, numbers = _runs(units, self.width)
        rows = self._rows_of(distinct)
        place_of_run = np.searchsorted(distinct, numbers)
        ends = np.append(starts[1:], len(units.stored))
        places = np.repeat(place_of_run, ends - starts) if len(starts) > 1 else None
        columns = len(self.topics)
        self._messages[rows] += _counts(places, units.column, len(distinct), columns).astype(np.int64)
        self._bytes[rows] += _counts(places, units.column, len(distinct), columns, units.size).astype(np.int64)
        timed_places = places if places is None or units.timed is None else places[units.timed]
        self._delays[rows] += _counts(timed_places, units.buckets, len(distinct), BUCKETS).astype(np.int32)
        run_rows, firsts = rows[place_of_run], units.offset[starts]
        run_ends = units.offset[ends - 1] + units.size[ends - 1]
        if units.is_ordered:
            self._first[run_rows] = np.minimum(self._first[run_rows], firsts)
            self._end[run_rows] = np.maximum(self._end[run_rows], run_ends)
        else:  # a bin may have several runs
            np.minimum.at(self._first, run_rows, firsts)
            np.maximum.at(self._end, run_rows, run_ends)

    def _rows_of(self, numbers: Ints) -> npt.NDArray[np.intp]:
        """Return the row of each bin, new ones for new bins."""
        rows = np.empty(len(numbers), np.intp)
        for place, number in enumerate(numbers.tolist()):
            row = self._rows.get(number)
            if row is None:
                row = self._rows[number] = len(self._rows)
            rows[place] = row
        new_count = len(self._rows) - len(self._numbers)
        if new_count > 0:
            self._make_room(max(new_count, len(self._numbers)))
        self._numbers[rows] = numbers
        self._slots = None
        return rows

    def _make_room(self, room: int) -> None:
        """Add ``room`` free rows."""
        self._numbers = np.pad(self._numbers, (0, room))
        self._first = np.pad(self._first, (0, room), constant_values=np.iinfo(np.int64).max)
        self._end = np.pad(self._end, (0, room))
        self._messages = np.pad(self._messages, ((0, room), (0, 0)))
        self._bytes = np.pad(self._bytes, ((0, room), (0, 0)))
        self._delays = np.pad(self._delays, ((0, room), (0, 0)))
        self._slots = None

    # -- adding by machine code

    def open_tables(self) -> OpenTables:
        """Return the tables for the compiled twin; :meth:`take_new_bins` must follow."""
        if self._slots is None:
            slots = np.zeros(1 << (4 * max(len(self._numbers), 1)).bit_length(), np.int32)
            mask = len(slots) - 1
            for number, row in self._rows.items():
                slot = ((number & _MASK_64) * _MIX & _MASK_64) >> 32 & mask
                while slots[slot]:
                    slot = (slot + 1) & mask
                slots[slot] = row + 1
            self._slots = slots
        cells = (self._messages.reshape(-1), self._bytes.reshape(-1), self._delays.reshape(-1))
        return OpenTables(self._slots, self._numbers, *cells, self._first, self._end)

    def take_new_bins(self, count: int) -> None:
        """The compiled twin has made bins up to ``count``."""
        for row in range(len(self._rows), count):
            self._rows[int(self._numbers[row])] = row

    def extend(self) -> None:
        """Make room for more bins; if there are as many as allowed, make them wider."""
        room = self._max_bins - len(self._numbers)
        if room > 0:
            self._make_room(room)
        elif self.width < WIDTHS_MS[-1]:
            self.coarsen(WIDTHS_MS[bisect_right(WIDTHS_MS, self.width)])
            self._make_room(self._max_bins - len(self._numbers))
        else:
            self._make_room(_FEW_BINS)

    def add_delays(self, stored: Ints, buckets: Ints) -> None:
        """Count times from born to stored of units that were added without one."""
        rows = np.array([self._rows[number] for number in (stored // self.width).tolist()], np.intp)
        np.add.at(self._delays, (rows, buckets), 1)

    # -- other widths

    def coarsen(self, width: int) -> None:
        """Make the bins wider. ``width`` is one of :data:`WIDTHS_MS`, not smaller than now."""
        if width == self.width:
            return
        self._slots = None
        count = len(self)
        numbers = self._numbers[:count] // (width // self.width)
        is_sorted = bool((numbers[1:] >= numbers[:-1]).all())
        order = slice(0, count) if is_sorted else np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        starts = (
            np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)) if count else np.zeros(0, np.intp)
        )
        self.width, self._numbers = width, ordered[starts]
        self._rows = {number: row for row, number in enumerate(self._numbers.tolist())}
        if not count:
            return
        self._messages = np.add.reduceat(self._messages[order], starts, axis=0)
        self._bytes = np.add.reduceat(self._bytes[order], starts, axis=0)
        self._delays = np.add.reduceat(self._delays[order], starts, axis=0, dtype=np.int32)
        self._first = np.minimum.reduceat(self._first[order], starts)
        self._end = np.maximum.reduceat(self._end[order], starts)

    def merge(self, other: TimeBins) -> None:
        """Add the bins of ``other``, which may become wider."""
        while True:
            width = max(self.width, other.width)
            self.coarsen(width)
            other.coarsen(width)
            new_count = sum(number not in self._rows for number in other._rows)
            if len(self) + new_count <= self._max_bins or width == WIDTHS_MS[-1]:
                break
            self.coarsen(WIDTHS_MS[bisect_right(WIDTHS_MS, width)])
        count = len(other)
        sizes = other._bytes[:count].sum(axis=0)
        for column in np.argsort(-sizes, kind="stable").tolist():
            self.column_of(other.topics[column])
        columns = np.array([self._columns.get(topic, 0) for topic in other.topics], np.intp)
        rows = self._rows_of(other._numbers[:count])
        for target, source in ((self._messages, other._messages), (self._bytes, other._bytes)):
            np.add.at(target, np.ix_(rows, columns), source[:count])
        self._delays[rows] += other._delays[:count]
        self._first[rows] = np.minimum(self._first[rows], other._first[:count])
        self._end[rows] = np.maximum(self._end[rows], other._end[:count])

    # -- results

    def copy(self) -> TimeBins:
        """Return bins of their own with the same content."""
        duplicate = TimeBins(self._max_bins, self.width)
        duplicate.merge(self)
        return duplicate

    @property
    def span(self) -> tuple[int, int]:
        """Store times (ms) at which the first bin begins and the last one ends; (0, 0) without bins."""
        if not len(self):
            return 0, 0
        numbers = self._numbers[: len(self)]
        return int(numbers.min()) * self.width, (int(numbers.max()) + 1) * self.width

    def main_span(self, gap_ms: int) -> tuple[int, int]:
        """Return :attr:`span` without times that are ``gap_ms`` from all others: the part with the most messages."""
        count = len(self)
        if not count:
            return 0, 0
        order = np.argsort(self._numbers[:count], kind="stable")
        numbers, messages = self._numbers[order], self._messages[order].sum(axis=1)
        starts = np.concatenate(
            ([0], np.flatnonzero(np.diff(numbers.astype(np.float64)) > max(gap_ms // self.width, 1)) + 1)
        )
        part = int(np.argmax(np.add.reduceat(messages, starts)))
        last = (int(starts[part + 1]) if part + 1 < len(starts) else count) - 1
        return int(numbers[starts[part]]) * self.width, (int(numbers[last]) + 1) * self.width

    def within(self, begin: int, end: int) -> TimeBins:
        """Return the bins that lie in [begin, end) or reach into it."""
        count = len(self)
        numbers = self._numbers[:count]
        rows = np.flatnonzero((numbers * self.width < end) & ((numbers + 1) * self.width > begin))
        part = TimeBins(self._max_bins, self.width)
        part.topics, part._columns = list(self.topics), dict(self._columns)
        part._rows = {number: row for row, number in enumerate(numbers[rows].tolist())}
        part._numbers = numbers[rows]
        part._messages, part._bytes = self._messages[rows], self._bytes[rows]
        part._delays, part._first, part._end = self._delays[rows], self._first[rows], self._end[rows]
        return part

    @property
    def offsets(self) -> tuple[int, int]:
        """The offset of the first unit, and the offset behind the last one; (0, 0) without units."""
        count = len(self)
        return (int(self._first[:count].min()), int(self._end[:count].max())) if count else (0, 0)

    def table(self, max_topics: int = MAX_TOPICS) -> BinTable:
        """Return the bins as plain lists; the largest ``max_topics`` topics by bytes, then :data:`OTHERS`."""
        count = len(self)
        order = np.argsort(self._numbers[:count], kind="stable")
        sums = self._bytes[:count].sum(axis=0)
        largest = [int(n) + 1 for n in np.argsort(-sums[1:], kind="stable")[:max_topics] if sums[n + 1]]
        other = [n for n in range(len(self.topics)) if n not in set(largest)]
        messages, sizes = self._messages[order], self._bytes[order]
        has_other = bool(sums[other].any())
        delays = self._delays[order]
        return BinTable(
            self.width,
            (self._numbers[order] * self.width).tolist(),
            [self.topics[n] for n in largest] + ([OTHERS] if has_other else []),
            messages[:, largest].T.tolist() + ([messages[:, other].sum(axis=1).tolist()] if has_other else []),
            sizes[:, largest].T.tolist() + ([sizes[:, other].sum(axis=1).tolist()] if has_other else []),
            self._first[order].tolist(),
            self._end[order].tolist(),
            percentiles(delays, 50).tolist(),
            percentiles(delays, 99).tolist(),
        )

    def delays_of_all(self) -> tuple[int, int]:
        """Return p50 and p99 (ms) of the times from born to stored of all units; −1 where no message has one."""
        counts = self._delays[: len(self)].sum(axis=0, keepdims=True)
        return int(percentiles(counts, 50)[0]), int(percentiles(counts, 99)[0])

    # -- saved form

    def arrays(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return the content as flat arrays; cells that are 0 are left out."""
        count = len(self)
        cells = np.flatnonzero(self._messages[:count])
        delays = np.flatnonzero(self._delays[:count])
        return {
            "numbers": self._numbers[:count],
            "first": self._first[:count],
            "end": self._end[:count],
            "cells": cells,
            "messages": self._messages[:count].ravel()[cells],
            "bytes": self._bytes[:count].ravel()[cells],
            "delays": delays,
            "delayCounts": self._delays[:count].ravel()[delays].astype(np.int64),
        }

    @classmethod
    def from_arrays(
        cls, width: int, topics: list[str], arrays: dict[str, npt.NDArray[np.int64]], max_bins: int = MAX_BINS
    ) -> TimeBins:
        """Return the bins that :meth:`arrays` describes. Raises ``ValueError`` or ``IndexError`` if it cannot be."""
        bins = cls(max_bins, width)
        count = len(arrays["numbers"])
        if topics[:1] != [OTHERS] or width not in WIDTHS_MS:
            raise ValueError(f"expected topics that begin with others and a known width, found {topics[:1]}, {width}")
        bins.topics, bins._columns = list(topics), {topic: n for n, topic in enumerate(topics)}
        bins._numbers = arrays["numbers"].copy()
        bins._rows = {number: row for row, number in enumerate(bins._numbers.tolist())}
        bins._first, bins._end = arrays["first"].copy(), arrays["end"].copy()
        bins._messages = np.zeros((count, len(topics)), np.int64)
        bins._bytes = np.zeros_like(bins._messages)
        bins._delays = np.zeros((count, BUCKETS), np.int32)
        bins._messages.reshape(-1)[arrays["cells"]] = arrays["messages"]
        bins._bytes.reshape(-1)[arrays["cells"]] = arrays["bytes"]
        bins._delays.reshape(-1)[arrays["delays"]] = arrays["delayCounts"]
        if not len(bins._rows) == count == len(bins._first) == len(bins._end):
            raise ValueError("expected as many offsets as bins")
        return bins


def _runs(units: Units, width: int) -> tuple[npt.NDArray[np.intp], Ints]:
    """Return where runs of units of the same bin begin, and the number of the bin of each run."""
    stored = units.stored
    if units.is_ordered:
        first, last = int(stored[0]) // width, int(stored[-1]) // width
        if first == last:
            return np.zeros(1, np.intp), np.array([first], np.int64)
        if last - first < _FEW_BINS:
            numbers = np.arange(first, last + 1, dtype=np.int64)
            starts = np.searchsorted(stored, numbers * width)
            is_filled = np.diff(starts, append=len(stored)) > 0
            return starts[is_filled], numbers[is_filled]
    bins = stored // width
    starts = np.concatenate(([0], np.flatnonzero(bins[1:] != bins[:-1]) + 1))
    return starts, bins[starts]


def _counts(
    places: npt.NDArray[np.intp] | None,
    columns: npt.NDArray[np.intp] | Ints,
    place_count: int,
    column_count: int,
    weights: npt.NDArray[np.int32] | None = None,
) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Count (or sum ``weights``) by place and column. Without ``places`` all are at the only place."""
    cells = columns if places is None else places * column_count + columns
    counts = np.bincount(cells, weights=weights, minlength=place_count * column_count)
    return counts.reshape(-1, column_count)
