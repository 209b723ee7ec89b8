"""Cells and rows that have just changed: they glow at once, for 0.4 s, and fade over 0.8 s; no row slides.

Where motion is to be reduced they glow for a second and then stop. Keys are positions of rows, which stay the same
when rows are read anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

from viewer.look.theme import theme
from viewer.widgets.columns import Record, RecordKind

HELD, FADING, STILL = 0.4, 0.8, 1.0
FRAME_MS = 80
MOST = 512
WHOLE = -1
"""The section of a glow that takes the whole row."""


class Glow:
    """What glows in one table; ``widget`` is painted again until all of it has faded."""

    def __init__(self, widget: QWidget, clock: Callable[[], float] = time.monotonic) -> None:
        self._widget, self._clock = widget, clock
        self._begun: dict[tuple[object, int], float] = {}
        self._timer = QTimer(widget, interval=FRAME_MS)
        self._timer.timeout.connect(self._tick)

    def __bool__(self) -> bool:
        return bool(self._begun)

    def add(self, key: object, sections: Iterable[int] = (WHOLE,)) -> None:
        """Have cells of the row ``key`` glow from now on; without sections the whole row."""
        now = self._clock()
        for section in sections:
            self._begun.pop((key, section), None)
            self._begun[key, section] = now
        while len(self._begun) > MOST:
            del self._begun[next(iter(self._begun))]
        if self._begun and not self._timer.isActive():
            self._timer.start()

    def clear(self) -> None:
        """Nothing glows any more."""
        self._begun.clear()
        self._timer.stop()

    def of(self, key: object, count: int) -> tuple[tuple[int, float], ...]:
        """(section, strength from 0 to 1) of what glows in the row ``key`` of ``count`` columns."""
        if not self._begun:
            return ()
        now = self._clock()
        found = ((n, self._strength(now - at)) for n in range(WHOLE, count)
                 if (at := self._begun.get((key, n))) is not None)  # fmt: skip
        return tuple((section, strength) for section, strength in found if strength > 0)

    @staticmethod
    def _strength(age: float) -> float:
        if theme.still:
            return 1.0 if age < STILL else 0.0
        return 1.0 if age < HELD else max(0.0, 1 - (age - HELD) / FADING)

    def _tick(self) -> None:
        now = self._clock()
        self._begun = {key: at for key, at in self._begun.items() if self._strength(now - at) > 0}
        if not self._begun:
            self._timer.stop()
        self._widget.update()


def changed_cells(kind: RecordKind, before: Record, after: Record, columns: Sequence[str]) -> list[int]:
    """Sections of ``columns`` (by key) whose value differs between two records of the same row."""
    return [
        number
        for number, column in enumerate(kind.columns)
        if column.key in columns and column.value(before) != column.value(after)
    ]
