"""FlushIndex: a full index file goes to disk beside the dispatch that goes on in the next one (spec 4.5)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from engine.store.store_checkpoint import StoreCheckpoint

IDLE_MS = 60_000.0
_log = logging.getLogger(__name__)


class FullFile(Protocol):
    """An index file that the next one has followed."""

    @property
    def is_full(self) -> bool: ...
    @property
    def end_timestamp(self) -> int: ...
    def flush(self) -> object:
        """Make header and entries durable. Raises ``OSError``."""


class FlushIndex:
    """Takes files from the dispatching thread by :meth:`take`; flushed and full they move the checkpoint's index."""

    name = "FlushIndexService"

    def __init__(self, checkpoint: StoreCheckpoint) -> None:
        self.failure: str | None = None
        self.ring: Callable[[], None] | None = None
        self._checkpoint = checkpoint
        self._files: deque[FullFile] = deque()

    def take(self, file: FullFile) -> None:
        """Flush ``file`` soon; at once where no thread does it."""
        self._files.append(file)
        if self.ring is not None:
            self.ring()
        else:
            self.step()

    def step(self) -> float:
        """Flush the file that waits longest. A failure costs recovery time only: the file is built again then."""
        try:
            file = self._files.popleft()
        except IndexError:
            return IDLE_MS
        try:
            file.flush()
            if file.is_full and self.failure is None:  # else the checkpoint would vouch for the file that failed
                self._checkpoint.index = max(self._checkpoint.index, file.end_timestamp)
                self._checkpoint.flush()
        except OSError as error:
            self.failure = str(error)
            _log.warning("an index file cannot be flushed: %s", error)
        return 0.0 if self._files else IDLE_MS

    def finish(self) -> None:
        """At shutdown: flush what still waits."""
        while self._files:
            self.step()
