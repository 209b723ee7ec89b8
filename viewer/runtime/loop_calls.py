"""Calls from threads to the loop's thread.

Objects that a thread hands over are also released on the loop's thread. If the last reference to a Qt object went away
in another thread, the object would be destroyed there while events for it are still queued.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

SLICE_SECONDS = 0.005
"""Maximum time for calls in a row before the event loop continues."""
Finish = Callable[[Any, Exception | None], None]


class _Mailbox(QObject):
    """Queue of the waiting calls; lives as long as the process."""

    callsAdded = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._calls: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
        self.callsAdded.connect(self._deliver)

    def put(self, call: list[Any]) -> None:
        """Add the call ``[function, *arguments]``. May be called from any thread."""
        self._calls.put(call)
        self.callsAdded.emit()

    def _deliver(self) -> None:
        begun = time.perf_counter()
        while True:
            try:
                function, *arguments = self._calls.get_nowait()
            except queue.Empty:
                return
            function(*arguments)
            if time.perf_counter() - begun > SLICE_SECONDS:
                QTimer.singleShot(0, self._deliver)
                return


class _Post:
    """The one mailbox of this process, once it is open."""

    box: _Mailbox


def open_mailbox() -> None:
    """Create the mailbox. Must be called on the loop's thread before anything is posted."""
    if not hasattr(_Post, "box"):
        assert threading.current_thread() is threading.main_thread()
        _Post.box = _Mailbox()


def post(function: Callable[..., object], *arguments: object) -> None:
    """Call ``function(*arguments)`` on the loop's thread. May be called from any thread."""
    _Post.box.put([function, *arguments])


def run_in(pool: Executor, work: Callable[[], Any], finish: Finish) -> None:
    """Run ``work`` in ``pool``, then ``finish(result, error)`` on the loop's thread."""
    call: list[Any] = [work, finish]

    def body() -> None:
        try:
            call.append(call[0]())
            call.append(None)
        except Exception as raised:  # noqa: BLE001 (every error is carried to the thread that waits for it)
            call.extend([None, raised])
        _Post.box.put([_end, call])

    pool.submit(body)


def _end(call: list[Any]) -> None:
    """Call ``finish`` on the loop's thread and drop all references."""
    _work, finish, result, error = call
    call.clear()
    finish(result, error)
