"""Compiled code is loaded in a thread while plain Python answers: loading takes half a second, on a busy machine
two, in which clients would get no answer.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from engine.codec import columns, dispatch_twin, message_columns, object_put

LOADS = (columns.twin, message_columns.twin, dispatch_twin.twin, object_put.twin)


class _Loading:
    """Loads the compiled twins; the thread starts when a twin is first needed."""

    def __init__(self, loads: tuple[Callable[[], object], ...]) -> None:
        self._loads = loads
        self._lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def others_do_without(self) -> bool:
        """Return True if the caller works without the compiled twins for now."""
        thread = self.thread
        if thread is None:
            with self._lock:
                if self.thread is None:
                    self.thread = threading.Thread(target=self._load, name="storescope-twins", daemon=True)
                    self.thread.start()
            return True
        return thread.is_alive() and thread is not threading.current_thread()

    def _load(self) -> None:
        for load in self._loads:
            load()


@contextlib.contextmanager
def loading_beside(*loads: Callable[[], object]) -> Iterator[None]:
    """Load the compiled twins of dispatch and of puts in a thread; within the block no caller waits for them. ``loads``
    replaces the functions that load them.
    """
    loading = _Loading(loads or LOADS)
    with columns.without_twins_while(loading.others_do_without):
        yield
    if loading.thread is not None:
        loading.thread.join()
