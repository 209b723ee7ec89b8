"""Watch over threads that import modules with Qt: only the loop's thread may do this safely."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from viewer.runtime.loop_imports import imports_of

QT = {"PySide6", "shiboken6", "pyqtgraph", "qasync"}


@cache
def uses_qt(module: str) -> bool:
    """Return True if ``module`` loads a part of Qt: it is one, or imports one, itself or through others."""
    waiting, visited = [module], {module}
    while waiting:
        name = waiting.pop()
        if name.partition(".")[0] in QT:
            return True
        if name.startswith("viewer."):
            waiting += [imported for imported in imports_of(name) if imported not in visited]
            visited.update(waiting)
    return False


class _Watcher(MetaPathFinder):
    """An import finder that finds nothing: it notes each module with Qt that a thread other than the main one loads."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        thread = threading.current_thread()
        if thread is not threading.main_thread() and uses_qt(fullname):
            frames = [frame for frame in traceback.extract_stack() if "importlib" not in frame.filename]
            where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-5:-1]))
            self.wrong.append(f"{fullname} in thread {thread.name}: {where}")
        return None


@contextmanager
def watched_imports() -> Iterator[list[str]]:
    """Yield a list that grows by one line for each import of a module with Qt in a thread."""
    watcher = _Watcher()
    sys.meta_path.insert(0, watcher)
    try:
        yield watcher.wrong
    finally:
        sys.meta_path.remove(watcher)
