"""Garbage is collected on the loop's thread only.

Python collects cycles in whichever thread happens to allocate. A timer or widget that is destroyed in another thread
than its own leaves its registration behind, and the next event for it ends the process.
"""

from __future__ import annotations

import gc
import threading

from PySide6.QtCore import QObject, QTimer

from viewer.bridge import memory

EVERY_MS = 400
GIVEN_BACK_MS = 30_000
"""How often free memory goes back to the system."""


class LoopGarbage(QObject):
    """While it exists the automatic collection is off and the loop does it, by Python's own thresholds."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thresholds = gc.get_threshold()
        self._automatic = gc.isenabled()
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.turn)
        self._timer.start(EVERY_MS)
        memory.keep_little()
        self._giver = QTimer(self, interval=GIVEN_BACK_MS)
        self._giver.timeout.connect(lambda: threading.Thread(target=memory.give_back, daemon=True).start())
        self._giver.start()

    def turn(self) -> None:
        """Collect what has become due."""
        counts = gc.get_count()
        for generation in (2, 1, 0):
            if counts[generation] > self._thresholds[generation]:
                gc.collect(generation)
                return

    def end(self) -> None:
        """Collect everything and give the automatic collection back where it was on."""
        self._timer.stop()
        self._giver.stop()
        take_back()
        gc.collect()
        if self._automatic:
            gc.enable()


def set_aside() -> None:
    """What is there now stays for long: later collections, each of which holds the loop, do not look at it again."""
    gc.collect()
    gc.freeze()


def take_back() -> None:
    """Look at everything again: what was set aside is being thrown away."""
    gc.unfreeze()
