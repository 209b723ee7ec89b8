"""Values over time in bounded memory: what is old becomes coarser, and its peaks stay; no Qt.

A series holds at most ``capacity`` points. When it is full, its older half is halved: of four points the smallest and
the largest stay, in the order of their times. An hour at ten looks a second is held point by point; a day in the same
memory, each hour of it coarser than the next.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CAPACITY = 36_000
MANY = 4000


class PeakSeries:
    """One value over time: seconds and a float, NaN where it was not known."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = max(8, capacity)
        self._times = np.empty(self._capacity)
        self._values = np.empty(self._capacity)
        self._count = 0
        self._thinned = 0
        self._grid: _Grid | None = None
        self._middle: tuple[int, int, int, float] | None = None

    def __len__(self) -> int:
        return self._count

    def columns(self, end: float, span: float, width: int) -> tuple[Floats, Floats]:
        """At most two points for each of the ``width`` columns of the ``span`` seconds up to ``end``: what a plot of
        that width can show, its peaks kept. Columns begin at whole multiples of their length, so that what lies in one
        stays while time goes on, and only what came since the last call is looked at. Few points are given as they
        are, with one beyond each edge so that lines run out of the picture.
        """
        first = max(0, int(np.searchsorted(self.times, end - span)) - 1)
        last = min(self._count, int(np.searchsorted(self.times, end, "right")) + 1)
        if last - first <= 2 * width or width <= 0 or span <= 0:
            return self.times[first:last], self.values[first:last]
        asked = (span / width, self._thinned)
        if self._grid is None or self._grid.asked != asked:
            self._grid = _Grid(asked, self._capacity)
        return self._grid.cut(self.times, self.values, first, last)

    @property
    def times(self) -> Floats:
        return self._times[: self._count]

    @property
    def values(self) -> Floats:
        return self._values[: self._count]

    def append(self, time: float, value: float | None) -> None:
        """One more value; a ``time`` in front of the last one's counts as that: clocks are set back, and a look at
        files may be newer than the engine's sample that comes behind it.
        """
        if self._count == self._capacity:
            self._thin()
        if self._count:
            time = max(time, float(self._times[self._count - 1]))
        self._times[self._count] = time
        self._values[self._count] = np.nan if value is None else value
        self._count += 1

    def at(self, time: float) -> float | None:
        """The value that stood at ``time``; None before the first one and where it was not known."""
        number = bisect_right(self._times, time, 0, self._count) - 1
        if number < 0 or np.isnan(self._values[number]):
            return None
        return float(self._values[number])

    def middle(self, begin: float, end: float) -> tuple[float, float]:
        """Median and largest value of [begin, end), (0, 0) of none. The median of many values is found anew where one
        in a hundred is another: it is shown ten times a second, and finding it takes longer than drawing the curve.
        """
        first, last = (int(at) for at in np.searchsorted(self.times, (begin, end)))
        if first == last:
            return 0.0, 0.0
        near = (last - first) // 100 if last - first > MANY else 0
        was = self._middle
        if was is None or was[0] != self._thinned or max(abs(was[1] - first), abs(was[2] - last)) > near:
            was = self._middle = self._thinned, first, last, float(np.median(self._values[first:last]))
        return was[3], float(self._values[first:last].max())

    def _thin(self) -> None:
        self._thinned += 1
        old = self._capacity // 2 // 4 * 4
        kept = _extremes(self._values[:old].reshape(-1, 4))
        rest = self._count - old
        for held in (self._times, self._values):
            held[: len(kept)] = held[kept]
            held[len(kept) : len(kept) + rest] = held[old : self._count]
        self._count = len(kept) + rest


def _extremes(groups: Floats) -> npt.NDArray[np.intp]:
    """Numbers of the smallest and the largest value of each row, in their order; of NaN and a value the value."""
    low = np.where(np.isnan(groups), np.inf, groups).argmin(1)
    high = np.where(np.isnan(groups), -np.inf, groups).argmax(1)
    same = low == high
    high = np.where(same, (low + 1) % groups.shape[1], high)
    base = np.arange(len(groups)) * groups.shape[1]
    return np.stack((np.minimum(low, high) + base, np.maximum(low, high) + base), 1).ravel()


class _Grid:
    """The columns of one series at one length of a column, kept while the series grows; ``asked`` is that length in
    seconds, and how often the series was thinned before.
    """

    def __init__(self, asked: tuple[float, int], capacity: int) -> None:
        self.asked = asked
        self._starts = np.empty(capacity, np.intp)  # number of the first point of each column
        self._points = np.empty((capacity, 2))
        self._edges = np.empty(capacity)
        self._count = 0
        self._done = 0

    def cut(self, times: Floats, values: Floats, first: int, last: int) -> tuple[Floats, Floats]:
        """The columns of the points [first, last)."""
        if len(times) > self._done:
            self._take(times, values)
        low = max(0, int(np.searchsorted(self._starts[: self._count], first, "right")) - 1)
        high = int(np.searchsorted(self._starts[: self._count], last))
        return np.repeat(self._edges[low:high], 2), self._points[low:high].ravel()

    def _take(self, times: Floats, values: Floats) -> None:
        """Points that are new; the last column before them may get more."""
        at = max(0, self._count - 1)
        begin = int(self._starts[at]) if self._count else 0
        length = self.asked[0]
        numbers = np.floor(times[begin:] / length)
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        new, count = values[begin:], at + len(starts)
        low, high = np.minimum.reduceat(new, starts), np.maximum.reduceat(new, starts)
        down = new[starts] > new[np.append(starts[1:], len(new)) - 1]
        self._points[at:count, 0] = np.where(down, high, low)
        self._points[at:count, 1] = np.where(down, low, high)
        self._edges[at:count] = numbers[starts] * length
        self._starts[at:count] = starts + begin
        self._count, self._done = count, len(times)


class RowRing:
    """Rows of 64-bit integers in bounded memory, for going back in time: of what is old every second row goes."""

    def __init__(self, width: int, capacity: int = CAPACITY) -> None:
        self._rows = np.empty((max(8, capacity), width), np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """All rows, oldest first; the first column is a time in ms."""
        return self._rows[: self._count]

    def append(self, row: list[int]) -> None:
        """One more row; a time in front of the last one's counts as that."""
        if self._count == len(self._rows):
            old = len(self._rows) // 2
            kept = (old + 1) // 2
            self._rows[:kept] = self._rows[:old:2].copy()
            self._rows[kept : kept + self._count - old] = self._rows[old : self._count].copy()
            self._count = kept + self._count - old
        self._rows[self._count] = row
        if self._count:
            self._rows[self._count, 0] = max(row[0], int(self._rows[self._count - 1, 0]))
        self._count += 1

    def at(self, time: int) -> npt.NDArray[np.int64] | None:
        """The row that stood at ``time`` ms; the first one before it, None where there is none."""
        if not self._count:
            return None
        number = int(np.searchsorted(self._rows[: self._count, 0], time, "right")) - 1
        found: npt.NDArray[np.int64] = self._rows[max(0, number)]
        return found
