"""Run work on the event loop's thread in steps, one a turn, so that keys and other events are handled in between.

Slow work runs in other threads, through the runner that a pane passes to its widgets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from PySide6.QtCore import QObject, QTimer

Step = Callable[[], object]


class StepQueue(QObject):
    """Runs steps one after the other. New steps replace the waiting ones."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: list[Step] = []
        self._next = QTimer(self, interval=0)
        self._next.timeout.connect(self._run_next)

    @property
    def busy(self) -> bool:
        """Return True if steps are waiting."""
        return bool(self._waiting)

    def take(self, steps: Sequence[Step], *, spread: bool = True) -> None:
        """Run ``steps``: the first now and each other in its own turn, or all of them now."""
        self._waiting = list(steps)
        if spread:
            self._next.start()
            self._run_next()
            return
        self.finish()

    def finish(self) -> None:
        """Run all waiting steps now."""
        while self._waiting:
            self._run_next()

    def _run_next(self) -> None:
        step = self._waiting.pop(0) if self._waiting else None
        if not self._waiting:
            self._next.stop()
        if step is not None:
            step()


class Runner(Protocol):
    """Runs ``work`` where the event loop does not wait for it, then calls ``done`` with its result or ``failed``
    with its error.
    """

    def __call__(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None: ...


def run_here(work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
    """A runner for data in memory: it runs at once."""
    try:
        result = work()
    except (OSError, ValueError) as error:
        failed(error)
        return
    done(result)
