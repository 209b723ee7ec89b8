"""Values over time in bounded memory: what is old becomes coarser, and its peaks stay; no Qt.

A series holds at most ``capacity`` points. When it is full, its older half is halved: of four points the smallest and
the largest stay, in the order of their times. An hour at ten looks a second is held point by point; a day in the same
memory, each hour of it coarser than the next.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

CAPACITY = 36_000
Floats = npt.NDArray[np.float64]


class PeakSeries:
    """One value over time: seconds and a float, NaN where it was not known."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = max(8, capacity)
        self._times = np.empty(self._capacity)
        self._values = np.empty(self._capacity)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def times(self) -> Floats:
        return self._times[: self._count]

    @property
    def values(self) -> Floats:
        return self._values[: self._count]

    def append(self, time: float, value: float | None) -> None:
        """One more value; ``time`` is not in front of the last one's."""
        if self._count == self._capacity:
            self._thin()
        self._times[self._count] = time
        self._values[self._count] = np.nan if value is None else value
        self._count += 1

    def at(self, time: float) -> float | None:
        """The value that stood at ``time``; None before the first one and where it was not known."""
        number = bisect_right(self._times, time, 0, self._count) - 1
        if number < 0 or np.isnan(self._values[number]):
            return None
        return float(self._values[number])

    def _thin(self) -> None:
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


def columns(times: Floats, values: Floats, begin: float, end: float, width: int) -> tuple[Floats, Floats]:
    """At most two points for each of ``width`` columns of [begin, end): what a plot of that width can show, its peaks
    kept. One point beyond each edge is kept so that lines run out of the picture.
    """
    first = max(0, int(np.searchsorted(times, begin)) - 1)
    last = min(len(times), int(np.searchsorted(times, end, "right")) + 1)
    xs, ys = times[first:last], values[first:last]
    if len(xs) <= 2 * width or width <= 0 or end <= begin:
        return xs, ys
    edges = np.searchsorted(xs, begin + np.arange(1, width + 1) * ((end - begin) / width))
    edges[0], edges[-1] = 0, len(xs) - 1
    edges = edges[np.diff(edges, prepend=-1) > 0]
    low = np.minimum.reduceat(ys, edges)
    high = np.maximum.reduceat(ys, edges)
    down = ys[edges] > ys[np.append(edges[1:], len(xs)) - 1]
    pairs = np.empty(2 * len(edges))
    pairs[0::2] = np.where(down, high, low)
    pairs[1::2] = np.where(down, low, high)
    return np.repeat(xs[edges], 2), pairs


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
        """One more row."""
        if self._count == len(self._rows):
            old = len(self._rows) // 2
            kept = (old + 1) // 2
            self._rows[:kept] = self._rows[:old:2].copy()
            self._rows[kept : kept + self._count - old] = self._rows[old : self._count].copy()
            self._count = kept + self._count - old
        self._rows[self._count] = row
        self._count += 1

    def at(self, time: int) -> npt.NDArray[np.int64] | None:
        """The row that stood at ``time`` ms; the first one before it, None where there is none."""
        if not self._count:
            return None
        number = int(np.searchsorted(self._rows[: self._count, 0], time, "right")) - 1
        found: npt.NDArray[np.int64] = self._rows[max(0, number)]
        return found
