"""Values over time in bounded memory: old values become coarser, but peaks stay. No Qt.

A series holds at most ``capacity`` points. When it is full, its older half is halved: of four points the smallest and
the largest stay, in the order of their times. An hour at ten samples a second is complete; a day needs the same
memory, its older hours coarser.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CAPACITY = 36_000
MANY_POINTS = 4000


class PeakSeries:
    """A value over time: seconds and a float, NaN where it was unknown."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = max(8, capacity)
        self._times = np.empty(self._capacity)
        self._values = np.empty(self._capacity)
        self._count = 0
        self._thinned = 0
        self._grid: _Grid | None = None
        self._median: tuple[int, int, int, float] | None = None

    def __len__(self) -> int:
        return self._count

    def columns(self, end: float, span: float, width: int) -> tuple[Floats, Floats]:
        """Return at most two points for each of ``width`` columns of the ``span`` seconds up to ``end``, with all
        peaks.

        Columns begin at multiples of their length, so the points of a column stay while time goes on, and only points
        added since the last call are read. Few points are returned as they are, with one beyond each edge so that
        curves continue to the edges.
        """
        start = max(0, int(np.searchsorted(self.times, end - span)) - 1)
        stop = min(self._count, int(np.searchsorted(self.times, end, "right")) + 1)
        if stop - start <= 2 * width or width <= 0 or span <= 0:
            return self.times[start:stop], self.values[start:stop]
        resolution = (span / width, self._thinned)
        if self._grid is None or self._grid.resolution != resolution:
            self._grid = _Grid(resolution, self._capacity)
        return self._grid.cut(self.times, self.values, start, stop)

    @property
    def times(self) -> Floats:
        return self._times[: self._count]

    @property
    def values(self) -> Floats:
        return self._values[: self._count]

    def append(self, time: float, value: float | None) -> None:
        """Add a value. A ``time`` before the last one is replaced by the last one: clocks are set back, and a
        reading of files may be newer than the engine's sample that follows it.
        """
        if self._count == self._capacity:
            self._thin()
        if self._count:
            time = max(time, float(self._times[self._count - 1]))
        self._times[self._count] = time
        self._values[self._count] = np.nan if value is None else value
        self._count += 1

    def at(self, time: float) -> float | None:
        """Return the value at ``time``; None before the first one and where it was unknown."""
        number = bisect_right(self._times, time, 0, self._count) - 1
        if number < 0 or np.isnan(self._values[number]):
            return None
        return float(self._values[number])

    def median_and_max(self, begin: float, end: float) -> tuple[float, float]:
        """Return median and largest value of [begin, end), (0, 0) without values.

        The median of many values is computed again only after one in a hundred changed: it is shown ten times a second,
        and computing it takes longer than drawing the curve.
        """
        start, stop = (int(index) for index in np.searchsorted(self.times, (begin, end)))
        if start == stop:
            return 0.0, 0.0
        max_shift = (stop - start) // 100 if stop - start > MANY_POINTS else 0
        cached = self._median
        if (
            cached is None
            or cached[0] != self._thinned
            or max(abs(cached[1] - start), abs(cached[2] - stop)) > max_shift
        ):
            cached = self._median = self._thinned, start, stop, float(np.median(self._values[start:stop]))
        return cached[3], float(self._values[start:stop].max())

    def _thin(self) -> None:
        self._thinned += 1
        old = self._capacity // 2 // 4 * 4
        kept_points = _extremes(self._values[:old].reshape(-1, 4))
        newer_count = self._count - old
        for column in (self._times, self._values):
            column[: len(kept_points)] = column[kept_points]
            column[len(kept_points) : len(kept_points) + newer_count] = column[old : self._count]
        self._count = len(kept_points) + newer_count


def _extremes(groups: Floats) -> npt.NDArray[np.intp]:
    """Return the indexes of the smallest and the largest value of each row, in their order; NaN counts only where
    both are NaN.
    """
    smallest = np.where(np.isnan(groups), np.inf, groups).argmin(1)
    largest = np.where(np.isnan(groups), -np.inf, groups).argmax(1)
    same = smallest == largest
    largest = np.where(same, (smallest + 1) % groups.shape[1], largest)
    base = np.arange(len(groups)) * groups.shape[1]
    return np.stack((np.minimum(smallest, largest) + base, np.maximum(smallest, largest) + base), 1).ravel()


class _Grid:
    """The columns of one series at one length of a column, kept while the series grows; ``resolution`` is that length
    in seconds and the number of times that the series was thinned.
    """

    def __init__(self, resolution: tuple[float, int], capacity: int) -> None:
        self.resolution = resolution
        self._starts = np.empty(capacity, np.intp)  # number of the first point of each column
        self._points = np.empty((capacity, 2))
        self._edges = np.empty(capacity)
        self._count = 0
        self._done = 0

    def cut(self, times: Floats, values: Floats, start: int, stop: int) -> tuple[Floats, Floats]:
        """Return the columns of the points [start, stop)."""
        if len(times) > self._done:
            self._add_points(times, values)
        first_column = max(0, int(np.searchsorted(self._starts[: self._count], start, "right")) - 1)
        end_column = int(np.searchsorted(self._starts[: self._count], stop))
        return np.repeat(self._edges[first_column:end_column], 2), self._points[first_column:end_column].ravel()

    def _add_points(self, times: Floats, values: Floats) -> None:
        """Add new points; the last column before them may get more."""
        column = max(0, self._count - 1)
        begin = int(self._starts[column]) if self._count else 0
        length = self.resolution[0]
        numbers = np.floor(times[begin:] / length)
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        new, count = values[begin:], column + len(starts)
        minima, maxima = np.minimum.reduceat(new, starts), np.maximum.reduceat(new, starts)
        down = new[starts] > new[np.append(starts[1:], len(new)) - 1]
        self._points[column:count, 0] = np.where(down, maxima, minima)
        self._points[column:count, 1] = np.where(down, minima, maxima)
        self._edges[column:count] = numbers[starts] * length
        self._starts[column:count] = starts + begin
        self._count, self._done = count, len(times)


class RowRing:
    """Rows of 64-bit integers in bounded memory, for going back in time.

    When it is full, every second old row is dropped.
    """

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
        """Add a row; a time before the last row's counts as the last one's."""
        if self._count == len(self._rows):
            old = len(self._rows) // 2
            kept_count = (old + 1) // 2
            self._rows[:kept_count] = self._rows[:old:2].copy()
            self._rows[kept_count : kept_count + self._count - old] = self._rows[old : self._count].copy()
            self._count = kept_count + self._count - old
        self._rows[self._count] = row
        if self._count:
            self._rows[self._count, 0] = max(row[0], int(self._rows[self._count - 1, 0]))
        self._count += 1

    def at(self, time: int) -> npt.NDArray[np.int64] | None:
        """Return the row at ``time`` ms: the last one before it, else the first one; None without rows."""
        if not self._count:
            return None
        number = int(np.searchsorted(self._rows[: self._count, 0], time, "right")) - 1
        row: npt.NDArray[np.int64] = self._rows[max(0, number)]
        return row
