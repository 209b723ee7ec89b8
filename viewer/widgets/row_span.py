"""More than one row chosen: from the row where Shift was first held to the current one, by their positions.

Positions stay while rows come and go behind the scroll bar. Qt's own selection would end at the rows that are held.
"""

from __future__ import annotations

Bounds = tuple[int, int]
"""Positions of the first and the last row."""


class RowSpan:
    """The span of one table. A move of the choice with Shift widens it, any other ends it, unless it is held."""

    def __init__(self) -> None:
        self._anchor: int | None = None
        self._widening = False
        self._held: Bounds | None = None

    def press(self, here: int | None, *, shift: bool) -> None:
        """A key or click that moves the choice from ``here``: with Shift it widens the span, else it ends it."""
        if not shift:
            self._anchor = None
        elif self._anchor is None:
            self._anchor = here
        self._widening = shift and here is not None

    def moved(self) -> None:
        """The choice has moved."""
        if not self._widening:
            self._anchor = None
        self._widening = False

    def hold(self, bounds: Bounds | None) -> None:
        """Keep ``bounds`` whatever the choice does; None: no more."""
        self._held = bounds
        if bounds is None:
            self._anchor = None

    def end(self) -> None:
        """One row again, held or not: other rows have come."""
        self._anchor, self._widening, self._held = None, False, None

    def bounds(self, current: int | None) -> Bounds | None:
        """First and last position; None where it is the one row at ``current``."""
        if self._held is not None:
            return self._held
        if self._anchor is None or current is None or self._anchor == current:
            return None
        return min(self._anchor, current), max(self._anchor, current)
