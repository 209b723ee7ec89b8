"""Work of the loop's thread in steps, a step a turn: between two of them keys are answered and other events come in.
Work that is slow is done elsewhere, through a runner that a pane gives its widgets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from PySide6.QtCore import QObject, QTimer

Step = Callable[[], object]


class Turns(QObject):
    """Does steps one after the other; what is new takes the place of what waits."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: list[Step] = []
        self._next = QTimer(self, interval=0)
        self._next.timeout.connect(self._one)

    @property
    def busy(self) -> bool:
        """Whether steps wait."""
        return bool(self._waiting)

    def take(self, steps: Sequence[Step], *, spread: bool = True) -> None:
        """Do ``steps``, the first now and each other at a turn of its own, or all of them now."""
        self._waiting = list(steps)
        if spread:
            self._next.start()
            self._one()
            return
        self.finish()

    def finish(self) -> None:
        """Do at once what waits."""
        while self._waiting:
            self._one()

    def _one(self) -> None:
        step = self._waiting.pop(0) if self._waiting else None
        if not self._waiting:
            self._next.stop()
        if step is not None:
            step()


class Runner(Protocol):
    """Runs ``work`` where the loop does not wait for it, then ``done`` with its result or ``failed`` with its error."""

    def __call__(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None: ...


def run_here(work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
    """The runner for what is in memory: at once."""
    try:
        result = work()
    except (OSError, ValueError) as error:
        failed(error)
        return
    done(result)
