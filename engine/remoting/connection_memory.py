"""Limit the memory of all connections of a server: incomplete frames, and answers that clients have not read yet.

Each connection has its own limit for answers (the transport's high-water mark, 64 KiB): above it no further request is
answered. This module limits the sum, because a thousand connections just below their limits also need much memory.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.remoting.connection import Connection


LIMIT_BYTES = 512 << 20
"""Bytes that all connections may hold together. Above it incomplete frames wait, except that of the oldest holder."""
SMALL_BYTES = 64 << 10
"""Bytes of one connection that are not counted."""
STALL_TIMEOUT_S = 10.0
"""While the sum is above the limit, a connection without progress for this time is ended."""
_POLL_INTERVAL_S = 1.0
_log = logging.getLogger(__name__)


class ConnectionMemory:
    """The bytes that connections hold. Above ``limit`` connections wait; above twice the limit the one that has held
    memory longest is ended.
    """

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit = limit
        self._held: dict[Connection, int] = {}
        """Bytes by connection; the connection that has held memory longest comes first."""
        self._progress_times: dict[Connection, float] = {}
        self._waiting: dict[Connection, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.total = 0

    def note(self, holder: Connection, size: int) -> None:
        """Record that ``holder`` holds ``size`` bytes now."""
        if size < SMALL_BYTES:
            if holder in self._held:
                self.forget(holder)
            return
        old_size = self._held.get(holder, 0)
        self._held[holder] = size
        self.total += size - old_size
        if not old_size:
            self._progress_times[holder] = asyncio.get_running_loop().time()
        while self.total > 2 * self._limit and self._held:
            self._end_connection(next(iter(self._held)), "it has held memory longest")
        if self.total > self._limit and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_POLL_INTERVAL_S, self._end_stalled)
        elif size < old_size:
            self._wake()

    def forget(self, holder: Connection) -> None:
        """Record that ``holder`` holds nothing any more."""
        self._waiting.pop(holder, None)
        self._progress_times.pop(holder, None)
        self.total -= self._held.pop(holder, 0)
        self._wake()

    def may_read(self, holder: Connection) -> bool:
        """Return True if ``holder`` may read more of a frame; else its ``resume_reading`` is called when it may."""
        if self.total <= self._limit or holder not in self._held:
            return True
        if next((candidate for candidate in self._held if not candidate.is_congested), None) is holder:
            return True
        self._waiting[holder] = None
        return False

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for holder in waiting:
            if self.may_read(holder):
                self._progress_times[holder] = asyncio.get_running_loop().time()
                holder.resume_reading()

    def _end_stalled(self) -> None:
        """End holders that make no progress while the sum is above the limit."""
        loop = asyncio.get_running_loop()
        self._timer = None
        for holder, old_size in list(self._held.items()):
            if holder not in self._held:
                continue
            size = holder.held_bytes
            if size != old_size or holder in self._waiting:
                self._progress_times[holder] = loop.time()
                self.note(holder, size)
            elif self.total > self._limit and loop.time() - self._progress_times[holder] >= STALL_TIMEOUT_S:
                self._end_connection(holder, sentence("it stood still for {seconds:g} s", seconds=STALL_TIMEOUT_S))
        if self.total > self._limit and self._timer is None:
            self._timer = loop.call_later(_POLL_INTERVAL_S, self._end_stalled)

    def _end_connection(self, holder: Connection, reason: str) -> None:
        _log.warning(
            "%s is ended: all connections together hold %d bytes, more than %d, and %s",
            holder.peer,
            self.total,
            self._limit,
            reason,
        )
        self.forget(holder)
        holder.abort()
