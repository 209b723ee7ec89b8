"""Garbage is collected on the loop's thread only.

Python collects cycles in whichever thread happens to allocate. A timer or widget that is destroyed in another thread
than its own leaves its registration behind, and the next event for it ends the process.
"""

from __future__ import annotations

import gc
import threading

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication

from viewer.runtime import memory

COLLECT_INTERVAL_MS = 400
UNUSED_AFTER_MS = 5_000
"""Time in the background after which the program counts as unused."""
RELEASE_INTERVAL_MS = 30_000
"""Interval at which free memory is returned to the system."""


class LoopGarbage(QObject):
    """While it exists, automatic collection is off and the loop collects, by Python's own thresholds."""

    due = False
    """True if objects that were excluded from collection are no longer used."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._away = QTimer(self, interval=UNUSED_AFTER_MS, singleShot=True)
        self._away.timeout.connect(self.collect_due)
        program = QGuiApplication.instance()
        if isinstance(program, QGuiApplication):
            program.applicationStateChanged.connect(self.on_state_changed)
        self._thresholds = gc.get_threshold()
        self._automatic = gc.isenabled()
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.turn)
        self._timer.start(COLLECT_INTERVAL_MS)
        memory.keep_little()
        self._release_timer = QTimer(self, interval=RELEASE_INTERVAL_MS)
        self._release_timer.timeout.connect(lambda: threading.Thread(target=_give_back, daemon=True).start())
        self._release_timer.start()

    def turn(self) -> None:
        """Collect the oldest generation that is due."""
        counts = gc.get_count()
        for generation in (2, 1, 0):
            if counts[generation] > self._thresholds[generation]:
                gc.collect(generation)
                return

    def on_state_changed(self, state: Qt.ApplicationState) -> None:
        """Start or stop the timer when the program goes to the background or comes back; switching between its own
        windows also does this for a moment.
        """
        if state == Qt.ApplicationState.ApplicationActive:
            self._away.stop()
        elif LoopGarbage.due:
            self._away.start()

    def collect_due(self) -> None:
        """Collect everything while the program is not used."""
        LoopGarbage.due = False
        take_back()
        set_aside()

    def end(self) -> None:
        """Collect everything and restore automatic collection if it was on."""
        self._timer.stop()
        self._away.stop()
        self._release_timer.stop()
        take_back()
        gc.collect()
        if self._automatic:
            gc.enable()


def _give_back() -> None:
    memory.give_back()
    memory.give_back_code()


def set_aside() -> None:
    """Exclude all objects that exist now from later collections, which block the loop."""
    gc.collect()
    gc.freeze()


def take_back() -> None:
    """Include all objects in collections again."""
    gc.unfreeze()


def take_back_later() -> None:
    """Request a full collection for when the program is not used: it blocks the loop for longer than a click may wait.
    Until then each closed window leaves about 2 MB.
    """
    LoopGarbage.due = True
