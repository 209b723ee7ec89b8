"""Imports pyqtgraph when a plot needs it first: on the loop's thread, in steps.

A plain import takes 0.2 s and more, most of it for the types of all Qt classes, whose names pyqtgraph copies. These
types are made before, some dozens a step. Then the statements of the package itself run one by one: they import its
modules, and all of them in one step made a click wait for half a second.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
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
    yield from _import_by_statements("pyqtgraph")


def _import_by_statements(name: str) -> Iterator[None]:
    """Import a package, one statement of its own module a step. Without its source, all in one step."""
    spec = importlib.util.find_spec(name)
    get_source = getattr(spec.loader, "get_source", None) if spec is not None and name not in sys.modules else None
    source = get_source(name) if get_source is not None else None
    if spec is None or spec.loader is None or source is None:
        importlib.import_module(name)
        return
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    try:
        for statement in ast.parse(source).body:
            code = compile(ast.Module([statement], []), spec.origin or name, "exec", dont_inherit=True)
            exec(code, package.__dict__)  # noqa: S102 (the installed package's own statement, as an import runs it)
            yield
    except BaseException:
        sys.modules.pop(name, None)
        raise


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
