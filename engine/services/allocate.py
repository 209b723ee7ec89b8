"""AllocateMappedFile: create the next file of the log, and the one after it, ahead of need
(docs/formats/files.md#allocation).

Java: AllocateMappedFileService. Without a thread the file is created by the caller that needs it.

"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from engine.mapped.mapped_file import MappedFile
from engine.sentences import sentence

WAIT_S: Final = 5.0
IDLE_MS: Final = 60_000.0
_log = logging.getLogger(__name__)


class AllocateMappedFile:
    """Creates files of the log with ``create(start_offset)``.

    ``may_allocate`` returns True if the transient pool has a buffer for a file
    (``fastFailIfNoBufferInStorePool``). A MappedFileQueue calls :meth:`allocate`.

    """

    name = "AllocateMappedFileService"

    def __init__(
        self,
        create: Callable[[int], MappedFile],
        file_size: int,
        *,
        may_allocate: Callable[[], bool] | None = None,
        wait_seconds: float = WAIT_S,
    ) -> None:
        self.failure: str | None = None
        self.wake_service: Callable[[], None] | None = None
        self._create = create
        self._size = file_size
        self._may_allocate = may_allocate
        self._wait_seconds = wait_seconds
        self._wanted: list[int] = []
        self._making: int | None = None
        self._ready: dict[int, MappedFile] = {}
        self._closed = False
        self._hurried: MappedFile | None = None
        self._changed = threading.Condition()

    def allocate(self, start_offset: int) -> MappedFile | None:
        """Return the file that begins at ``start_offset``, and request the one behind it.

        Returns None if it was not created within five seconds, could not be created, or the pool has no buffer.

        """
        if self.wake_service is None:
            return self._make(start_offset) if self._allowed() else None
        with self._changed:
            is_under_way = start_offset in self._ready or self._making == start_offset
            if not is_under_way and not self._allowed():
                return None
            self._ask(start_offset)
            self._ask(start_offset + self._size)
            self.wake_service()
            deadline = time.monotonic() + self._wait_seconds
            while start_offset not in self._ready:
                remaining_s = deadline - time.monotonic()
                if (
                    remaining_s <= 0
                    or self._closed
                    or (start_offset not in self._wanted and self._making != start_offset)
                ):
                    self._forget(start_offset)
                    return None
                self._changed.wait(remaining_s)
            file = self._ready.pop(start_offset)
            self._forget_below(start_offset)
            return file

    def reserve_ahead(self, file: MappedFile) -> None:
        """Allocate disk room and pages behind the written part of ``file``, which fills up quickly, beside the
        writing.
        """
        if self.wake_service is not None:
            self._hurried = file
            self.wake_service()

    def step(self) -> float:
        """Allocate room in a file that fills up quickly, then create the first requested file."""
        filling_file, self._hurried = self._hurried, None
        if filling_file is not None:
            _reserve(filling_file)
        with self._changed:
            if not self._wanted or self._closed:
                return self._pause()
            start = self._making = min(self._wanted)
            self._wanted.remove(start)
        new_file = self._make(start)
        with self._changed:
            self._making = None
            if new_file is not None:
                self._ready[start] = new_file
            else:  # create none behind it either: if the process ended now, the log would have a gap
                self._wanted.clear()
            self._changed.notify_all()
            return self._pause()

    def close(self) -> int:
        """Delete files created ahead and never used; returns their number. Raises nothing: recovery removes what
        stays.
        """
        with self._changed:
            self._closed = True
            unused, self._ready = self._ready, {}
            self._wanted = []
            self._changed.notify_all()
        for file in unused.values():
            _destroy(file)
        return len(unused)

    def _pause(self) -> float:
        busy = self._hurried is not None or (self._wanted and not self._closed)
        return 0.0 if busy else IDLE_MS

    def _ask(self, start: int) -> None:
        if start not in self._ready and start not in self._wanted and self._making != start:
            self._wanted.append(start)

    def _forget(self, start: int) -> None:
        if start in self._wanted:
            self._wanted.remove(start)

    def _forget_below(self, start: int) -> None:
        """Destroy prepared files that a truncation has made useless."""
        for start_offset in [ready_start for ready_start in self._ready if ready_start < start]:
            _destroy(self._ready.pop(start_offset))

    def _allowed(self) -> bool:
        if self._may_allocate is None or self._may_allocate():
            return True
        self.failure = "the transient store pool has no buffer left"
        return False

    def _make(self, start: int) -> MappedFile | None:
        try:
            new_file = self._create(start)
        except OSError as error:
            self.failure = sentence("the log's file at {start:,} cannot be made: {error}", start=start, error=error)
            _log.error("%s", self.failure)
            return None
        self.failure = None
        return new_file


def _reserve(file: MappedFile) -> None:
    try:
        file.reserve_ahead()
    except OSError as error:  # the writer gets the same error and reports it
        _log.debug("no room ahead of need: %s", error)


def _destroy(file: MappedFile) -> None:
    try:
        file.destroy(0, 0)
    except OSError as error:
        _log.warning("a file made ahead of need stays: %s", error)
