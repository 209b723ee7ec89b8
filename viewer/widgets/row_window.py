"""A bounded window of rows over a ruler of 64-bit positions, and the span of those that are chosen; no Qt.

A commit log has more rows than Qt can count and nobody knows their number at first. So a table holds a few hundred rows
around the place it shows, and the place is a position: bytes of a log, or the number of a queue entry. A
:class:`RowSource` reads rows at a position; a :class:`Window` says which read is wanted next and takes what came.
Reading may touch the disk: the caller runs it where the window on the screen does not wait for it.

::

    source.start                                                                             source.end
    ├─ not held ─┼──────── less ────────┼─ on the screen ─┼──────── more ────────┼─ not held ─┤
                 rows[0]                top      top + visible                rows[-1]

``more`` is due when fewer than a screen and a quarter of a chunk are held below the screen, ``less`` likewise above it.
A read at one end drops rows at the other beyond ``capacity``, so the numbers of rows in the window shift and ``apply``
returns the new number of ``top``. A position that is not held is a ``jump``, which replaces all rows. ``first`` and
``last`` say that the window touches an end of the source. The scroll bar shows positions, not numbers of rows: a number
is known only where the rows in front have been counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """The result of one read: ``rows`` in order. ``rows_before`` counts the rows before the requested position.

    ``is_first`` and ``is_last`` say that nothing lies in front of ``rows[0]`` or behind ``rows[-1]``.
    """

    rows: list[Row]
    rows_before: int
    is_first: bool
    is_last: bool


class RowSource(Protocol[Row]):
    """Rows along a ruler. ``read`` may block. Everything else answers at once from what is known."""

    @property
    def start(self) -> int:
        """Position of the first row."""

    @property
    def end(self) -> int:
        """Position after the last row."""

    @property
    def total(self) -> int | None:
        """Number of rows; None while it is unknown."""

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[Row]:
        """Read up to ``rows_before`` rows before ``position`` and up to ``rows_after`` rows that begin at or after
        it.
        """

    def position(self, row: Row) -> int:
        """The position at which ``row`` begins."""

    def behind(self, row: Row) -> int:
        """The earliest position at which the next row can begin."""

    def number(self, row: Row) -> int | None:
        """Number of ``row`` from 0; None while it is unknown."""

    def position_of(self, number: int) -> int | None:
        """The position at which row ``number`` begins; None while it is unknown. May read the disk."""


class ListSource(Generic[Row]):
    """Rows that are all in memory; their positions are their numbers."""

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self.rows: list[Row] = list(rows)
        self._numbers: dict[int, int] = {id(row): n for n, row in enumerate(self.rows)}

    start = 0

    @property
    def end(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int:
        return len(self.rows)

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows at the end."""
        for row in rows:
            self._numbers[id(row)] = len(self.rows)
            self.rows.append(row)

    def replace(self, number: int, row: Row) -> None:
        """Replace row ``number``."""
        self._numbers.pop(id(self.rows[number]), None)
        self.rows[number] = row
        self._numbers[id(row)] = number

    def sort(self, key: Callable[[Row], object], descending: bool = False) -> None:
        """Sort by ``key``. Rows without a value come last; values of mixed types are compared as text."""

        def rank(row: Row) -> tuple[bool, str, object]:
            value = key(row)
            if isinstance(value, (int, float)):
                return (value is None, "", value)
            return (value is None, "text", str(value))

        present = [row for row in self.rows if key(row) is not None]
        absent = [row for row in self.rows if key(row) is None]
        present.sort(key=rank, reverse=descending)
        self.rows = present + absent
        self._numbers = {id(row): n for n, row in enumerate(self.rows)}

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[Row]:
        """A slice; see :class:`RowSource`."""
        start, end = max(0, position - rows_before), min(len(self.rows), position + rows_after)
        return Page(self.rows[start:end], max(0, position - start), start == 0, end == len(self.rows))

    def position(self, row: Row) -> int:
        return self._numbers.get(id(row), 0)

    def behind(self, row: Row) -> int:
        return self.position(row) + 1

    def number(self, row: Row) -> int:
        return self.position(row)

    def position_of(self, number: int) -> int:
        return number


JUMPS = ("jump", "tail")
"""Kinds of reads that give a new window."""


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A read that the window needs: ``kind`` is ``jump`` (a new window), ``tail`` (only the last rows), ``more``
    (rows after the window) or ``less`` (rows before it).
    """

    kind: str
    position: int
    rows_before: int
    rows_after: int
    source_end: int = field(default=0, compare=False)
    """End of the source when the read was requested."""


class Window(Generic[Row]):
    """The rows that a table holds, around the place it shows.

    ``chunk`` rows are read at a time, at most ``capacity`` are held. A source that says ``total`` at most ``whole`` is
    held completely once it is read.
    """

    def __init__(self, source: RowSource[Row], chunk: int = 160, capacity: int = 960, whole: int = 0) -> None:
        self.source = source
        self.chunk = chunk
        self.capacity = capacity
        self.whole = whole
        self.rows: list[Row] = []
        self.first = False
        self.last = False
        self._known_end = 0
        """End of the source when ``last`` was read: a source that has grown since has rows after those."""

    @property
    def complete(self) -> bool:
        """Return whether every row of the source is in the window."""
        return self.first and self.last

    def jump(self, position: int, visible: int) -> RowRequest:
        """The read that brings ``position`` into the window with room on both sides."""
        total = self.source.total
        if total is not None and total <= self.whole:
            return RowRequest("jump", self.source.start, 0, total + 1, self.source.end)
        position = min(max(position, self.source.start), self.source.end)
        edge = self.chunk // 4 + 1
        return RowRequest("jump", position, 2 * visible + edge, 2 * visible + edge, self.source.end)

    def tail(self, visible: int) -> RowRequest:
        """The read of only the last rows, for an end that moves faster than the user scrolls."""
        return RowRequest("tail", self.source.end, visible + 2, visible, self.source.end)

    def wanted(self, top: int, visible: int) -> RowRequest | None:
        """The read that is due when row ``top`` is the first of ``visible`` rows on the screen, or None."""
        if not self.rows:
            return None
        if not self.last and top + 2 * visible + self.chunk // 4 >= len(self.rows):
            return RowRequest("more", self.source.behind(self.rows[-1]), 0, self.chunk, self.source.end)
        if not self.first and top < visible + self.chunk // 4:
            return RowRequest("less", self.source.position(self.rows[0]), self.chunk, 0)
        return None

    def apply(self, row_request: RowRequest, page: Page[Row], top: int, visible: int) -> int:
        """Store the result of a read. Returns the new number of the row that was at ``top`` (for a jump: of the
        requested position).
        """
        if row_request.kind in JUMPS:
            self.rows, self.first, self.last = list(page.rows), page.is_first, page.is_last
            self._known_end = row_request.source_end
            return min(page.rows_before, max(0, len(self.rows) - 1))
        if row_request.kind == "more":
            self.rows += page.rows
            self.last, self._known_end = page.is_last, row_request.source_end
            drop = max(0, min(len(self.rows) - self.capacity, top - visible - self.chunk))
            if drop:
                del self.rows[:drop]
                self.first = False
            return top - drop
        self.rows[:0] = page.rows
        self.first = page.is_first
        top += len(page.rows)
        keep = max(self.capacity, top + 2 * visible + self.chunk)
        if len(self.rows) > keep:
            del self.rows[keep:]
            self.last = False
        return top

    def replace(self, number: int, row: Row) -> None:
        """Replace row ``number`` of a list in memory."""
        if isinstance(self.source, ListSource):
            self.source.replace(self.source.position(self.rows[number]), row)
        self.rows[number] = row

    def find(self, position: int) -> int | None:
        """Number in the window of the row at exactly ``position``; None if no such row is held."""
        number = bisect_left(self.rows, position, key=self.source.position)
        if number < len(self.rows) and self.source.position(self.rows[number]) == position:
            return number
        return None

    def covers(self, position: int) -> bool:
        """Return whether the row at or after ``position`` is held, with nothing unread in between."""
        if not self.rows:
            return False
        start, end = self.source.position(self.rows[0]), self.source.behind(self.rows[-1])
        return (self.first or position >= start) and (self.last or position < end)

    @property
    def holds_end(self) -> bool:
        """Return whether the last row of the source is in the window, and the source has not grown since."""
        return self.last and self.source.end == self._known_end

    def is_outdated_at(self, position: int) -> bool:
        """Return whether the source has grown since its last row was read, and ``position`` is at or after that row.

        The last row may be the space after the last record: what was written there since is not in the window.
        """
        if not self.rows or not self.last or self.holds_end:
            return False
        return position >= self.source.position(self.rows[-1])


Bounds = tuple[int, int]
"""Positions of the first and the last row."""


class RowSpan:
    """The span of chosen rows of one table. Moving the choice with Shift widens it. Any other move ends it, unless
    it is held.
    """

    def __init__(self) -> None:
        self._anchor: int | None = None
        self._widening = False
        self._held: Bounds | None = None

    def press(self, position: int | None, *, shift: bool) -> None:
        """Note a key or click that moves the choice from ``position``: with Shift it widens the span, else it ends
        it.
        """
        if not shift:
            self._anchor = None
        elif self._anchor is None:
            self._anchor = position
        self._widening = shift and position is not None

    def moved(self) -> None:
        """The choice has moved."""
        if not self._widening:
            self._anchor = None
        self._widening = False

    def hold(self, bounds: Bounds | None) -> None:
        """Keep ``bounds`` while the choice moves; None ends that."""
        self._held = bounds
        if bounds is None:
            self._anchor = None

    def end(self) -> None:
        """End the span, held or not, because the rows have changed."""
        self._anchor, self._widening, self._held = None, False, None

    def bounds(self, current: int | None) -> Bounds | None:
        """First and last position; None if only the row at ``current`` is chosen."""
        if self._held is not None:
            return self._held
        if self._anchor is None or current is None or self._anchor == current:
            return None
        return min(self._anchor, current), max(self._anchor, current)
