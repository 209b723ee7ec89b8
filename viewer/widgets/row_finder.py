"""Going to a row by its number where looking it up takes a while: of those asked for meanwhile only the last counts."""

from __future__ import annotations

from collections.abc import Callable

Look = Callable[[int, Callable[[int | None], None], Callable[[Exception], None]], object]
"""``look(number, found, failed)``: has the position of a row looked up; None where it is not known."""


class RowFinder:
    """Asks ``look`` for one number at a time, and calls ``go(position)``."""

    def __init__(self, look: Look, go: Callable[[int], object], failed: Callable[[Exception], object]) -> None:
        self._look, self._go, self._told_failed = look, go, failed
        self._wanted: int | None = None
        self._turn = 0

    def forget(self) -> None:
        """Other rows have come: what is under way counts no more."""
        self._turn += 1
        self._wanted = None

    def ask(self, number: int) -> None:
        """Go to row ``number``."""
        busy, self._wanted = self._wanted is not None, number
        if not busy:
            self._look_up(number)

    def _look_up(self, number: int) -> None:
        turn = self._turn

        def found(position: int | None) -> None:
            if turn != self._turn:
                return
            wanted, self._wanted = self._wanted, None
            if wanted is not None and wanted != number:
                self._wanted = wanted
                self._look_up(wanted)
            elif position is not None:
                self._go(position)

        def failed(error: Exception) -> None:
            if turn == self._turn:
                self._wanted = None
                self._told_failed(error)

        self._look(number, found, failed)
