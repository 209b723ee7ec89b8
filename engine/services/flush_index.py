"""The service that flushes index files which the dispatch has filled."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from engine.store.store_checkpoint import StoreCheckpoint

_log = logging.getLogger(__name__)


IDLE_MS = 60_000.0


class FullFile(Protocol):
    """An index file that may be full and followed by another."""

    @property
    def is_full(self) -> bool: ...
    @property
    def end_timestamp(self) -> int: ...
    def flush(self) -> object:
        """Make header and entries durable. Raises ``OSError``."""


class FlushIndex:
    """Flushes index files that the dispatching thread gives to :meth:`take`; full ones advance the checkpoint's
    index time.
    """

    name = "FlushIndexService"

    def __init__(self, checkpoint: StoreCheckpoint) -> None:
        self.failure: str | None = None
        self.ring: Callable[[], None] | None = None
        self._checkpoint = checkpoint
        self._files: deque[FullFile] = deque()

    def take(self, file: FullFile) -> None:
        """Flush ``file`` soon, or at once if there is no thread."""
        self._files.append(file)
        if self.ring is not None:
            self.ring()
        else:
            self.step()

    def step(self) -> float:
        """Flush the oldest waiting file. A failure only costs recovery time: the file is rebuilt then."""
        try:
            file = self._files.popleft()
        except IndexError:
            return IDLE_MS
        try:
            file.flush()
            if file.is_full and self.failure is None:  # else the checkpoint would cover the failed file
                self._checkpoint.index = max(self._checkpoint.index, file.end_timestamp)
                self._checkpoint.flush()
        except OSError as error:
            self.failure = str(error)
            _log.warning("an index file cannot be flushed: %s", error)
        return 0.0 if self._files else IDLE_MS

    def finish(self) -> None:
        """Flush the waiting files at shutdown."""
        while self._files:
            self.step()
