"""Errors that nothing caught, of any thread and of the loop: noted in a file, and shown in a box with a report to copy.

The window stays open. A report has types and places of the program, not the texts of errors: those may quote a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from PySide6.QtCore import QObject, Qt, Signal

from engine.errors import StoreError
from viewer.shell.crash_notes import UNCAUGHT, ErrorBox

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

MAX_REPEATS = 3
"""How often the same error is noted: one in a paint event comes back with every frame."""


def report_text(error: BaseException) -> str:
    """Return the types of ``error`` and of its causes, and the lines of the program where they were raised."""
    parts = [f"{type(link).__name__}\n{''.join(traceback.format_tb(link.__traceback__))}" for link in _chain(error)]
    return "\ncaused:\n".join(reversed(parts))


def _chain(error: BaseException) -> Iterator[BaseException]:
    visited: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in visited:
        visited.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


class ErrorReports(QObject):
    """Takes errors from hooks of Python, threads and the loop. ``shows_box`` is False where nobody can close a box."""

    _arrived = Signal(object)

    def __init__(self, window: MainWindow, crash_notes: TextIO | None, *, shows_box: bool) -> None:
        super().__init__()
        self._window, self._crash_notes, self._shows_box = window, crash_notes, shows_box
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self.box: ErrorBox | None = None
        self._arrived.connect(self._show)  # from another thread it is queued for the thread of the window

    def install(self) -> None:
        """Take errors of this thread, of other threads, and of jobs that nobody awaits."""
        top = self._window.window()

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            if issubclass(kind, KeyboardInterrupt):
                top.close()
            else:
                self.take(error.with_traceback(trace))

        sys.excepthook = hook
        threading.excepthook = lambda args: self.take(args.exc_value or args.exc_type())
        self._window.jobs.failed.connect(self._take_failed)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take errors of tasks and callbacks of ``loop`` that nobody awaits."""
        loop.set_exception_handler(self._take_of_loop)

    def _take_of_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.take(error)
        else:
            loop.default_exception_handler(context)

    def _take_failed(self, error: Exception) -> None:
        """A job failed: the window says so; a fault of the store or of the system is no error of the program."""
        if isinstance(error, StoreError | OSError):
            self._note("".join(traceback.format_exception(error)))
        else:
            self.take(error)

    def take(self, error: BaseException) -> None:
        """Note ``error`` and show it; may be called in any thread."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        with self._lock:
            self._counts[type(error).__name__, place] += 1
            count = self._counts[type(error).__name__, place]
        if count > MAX_REPEATS:
            return
        sys.stderr.write("".join(traceback.format_exception(error)))
        report = report_text(error)
        self._note(f"{'shown' if self._shows_box else UNCAUGHT} at {datetime.now().astimezone().isoformat()}\n{report}")
        with contextlib.suppress(RuntimeError):  # the window is gone
            self._arrived.emit((f"{type(error).__name__}: {error}", report if count == 1 else ""))

    def _note(self, text: str) -> None:
        with self._lock:
            if self._crash_notes is not None and not self._crash_notes.closed:
                self._crash_notes.write(text)
                self._crash_notes.flush()

    def _show(self, texts: tuple[str, str]) -> None:
        line, report = texts
        with contextlib.suppress(RuntimeError):
            self._window.say(line)
            if not self._shows_box or not report:
                return
            if self.box is None:
                self.box = ErrorBox(self._window.window(), report, self._window.settings.folder)
                self.box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
                self.box.destroyed.connect(self._forget_box)
                self.box.open()
            else:
                self.box.add(report)

    def _forget_box(self) -> None:
        self.box = None
