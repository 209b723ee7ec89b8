"""Imports pyqtgraph when a plot needs it first: on the loop's thread, in steps.

A plain import takes 0.2 s, most of it for the types of all Qt classes, whose names pyqtgraph copies. These types
are made before, some dozens a step. The import itself is then a step of 60 ms.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, QTimer
from shiboken6 import isValid

from viewer.runtime.loop_imports import require_loop_thread

_COPIED_MODULES = (
    "PySide6.QtCore",
    "PySide6.QtGui",
    "PySide6.QtWidgets",
    "PySide6.QtSvg",
    "PySide6.QtTest",
    "PySide6.QtOpenGLWidgets",
)
_NAMES_A_STEP = 60
Done = Callable[[], None]
Failed = Callable[[Exception], None]


def _import_steps() -> Iterator[None]:
    for name in _COPIED_MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:  # pyqtgraph does not need it
            continue
        names = dir(module)
        for start in range(0, len(names), _NAMES_A_STEP):
            yield
            for attribute in names[start : start + _NAMES_A_STEP]:
                getattr(module, attribute, None)
    yield
    importlib.import_module("pydoc")
    yield
    importlib.import_module("pyqtgraph")


class PlotLibrary:
    """State of the import, and the callbacks that wait for it."""

    def __init__(self) -> None:
        self.loaded = False
        self._steps: Iterator[None] | None = None
        self._waiting: list[tuple[QObject, Done, Failed]] = []

    def load(self, receiver: QObject, done: Done, failed: Failed | None = None) -> None:
        """Import the library if it is not there, then call ``done`` or ``failed``, unless ``receiver`` is gone."""
        require_loop_thread("pyqtgraph")
        if self.loaded:
            done()
            return
        self._waiting.append((receiver, done, failed or (lambda _error: None)))
        if self._steps is None:
            self._steps = _import_steps()
            QTimer.singleShot(0, self._step)

    def _step(self) -> None:
        assert self._steps is not None
        error: Exception | None = None
        try:
            next(self._steps)
        except StopIteration:
            self.loaded = True
        except Exception as raised:  # noqa: BLE001 (a broken installation is told where the plot would stand)
            error = raised
        else:
            QTimer.singleShot(0, self._step)
            return
        self._steps = None
        waiting, self._waiting = self._waiting, []
        for receiver, done, failed in waiting:
            if not isValid(receiver):
                continue
            if error is None:
                done()
            else:
                failed(error)


plot_library = PlotLibrary()
