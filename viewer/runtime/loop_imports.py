"""Imports of modules that use Qt: always on the loop's thread, in steps short enough for keys and clicks in between.

Importing such a module makes Python types of Qt's classes. Doing that in a thread while the loop runs Qt's own code
ended the program. A thread may only load what the module needs of the engine: that knows no Qt.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QTimer

_TOP_IMPORT = re.compile(r"^(?:from ([\w.]+) import \(?([^\n#]*)|import ([\w.]+))", re.MULTILINE)
"""An import at the left margin: what stands inside a function or under TYPE_CHECKING is not loaded with the module."""
_ROOT = Path(__file__).resolve().parents[2]


def require_loop_thread(module: str) -> None:
    """Raise where this is not the thread of the loop."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(f"{module} uses Qt and must be imported on the loop's thread")


def load_engine_parts(module: str) -> list[str]:
    """Import what ``module`` of the viewer needs of the engine, and return the viewer's modules that it needs.

    Runs in a thread: it reads sources and imports nothing that uses Qt. In the result each module stands behind those
    that it imports itself; ``module`` is the last.
    """
    needed: list[str] = []
    visited: set[str] = set()

    def visit(name: str) -> None:
        if name in visited or name in sys.modules:
            return
        visited.add(name)
        for imported in imports_of(name):
            if imported.startswith("viewer."):
                visit(imported)
            elif imported.partition(".")[0] == "engine":
                importlib.import_module(imported)
        needed.append(name)

    visit(module)
    return needed


def load_in_turns(modules: list[str], done: Callable[[], None]) -> None:
    """Import ``modules`` on the loop's thread, one a turn of the loop, then call ``done``."""
    waiting = [module for module in modules if module not in sys.modules]

    def step() -> None:
        if not waiting:
            done()
            return
        module = waiting.pop(0)
        require_loop_thread(module)
        importlib.import_module(module)
        QTimer.singleShot(0, step)

    step()


def imports_of(module: str) -> Iterator[str]:
    """Modules that ``module`` of the viewer imports when it is loaded; none where its source is not at hand."""
    source = _source_of(module)
    text = ""
    if source is not None:
        with contextlib.suppress(OSError):
            text = source.read_text("utf-8")
    for package, names, plain in _TOP_IMPORT.findall(text):
        yield package or plain
        if package.startswith("viewer"):
            for name in re.findall(r"\w+", names):
                if _source_of(f"{package}.{name}") is not None:
                    yield f"{package}.{name}"


def _source_of(module: str) -> Path | None:
    path = _ROOT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
