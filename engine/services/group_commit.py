"""Group commit under SYNC_FLUSH: one flush serves all that wait (spec 7; Java: GroupCommitService, FlushDiskWatcher).

Whoever waits and finds no flush under way flushes, for itself and for those behind it; a lone producer so never hands
its message to another thread. Those that come meanwhile wait, each on a lock of its own: the flush either served them,
or the first of them leads the next one. Java waits with a thread between and the same answers.

Beside threads of the same process that never pause (readers in a loop, say) turns are short while somebody waits: the
service's thread, which has little else to do, notices the crowd by how late it wakes up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from engine.services.flush import FlushFailed, LogFlush
from engine.services.short_turns import Crowd, short_turns

IDLE_MS = 10.0
TRIES = 1000
_AT_ONCE = 1
"""Those whom a flush served wake one another: all at once they would only queue for the interpreter's lock. Whoever
leaves, served or too late, wakes one, so the chain never ends before the last.
"""
_log = logging.getLogger(__name__)


class _Waiting:
    """One that waits until ``end`` is flushed; ``lead`` says that it shall flush, ``lost`` that nobody can."""

    __slots__ = ("bell", "end", "lead", "lost")

    def __init__(self, end: int) -> None:
        self.end = end
        self.bell = threading.Lock()
        self.bell.acquire()
        self.lead = False
        self.lost = False


class GroupCommit:
    """Waiting for the disk. ``timeout_ms`` is ``syncFlushTimeout``.

    A disk so slow that one flush took a quarter of that is left to the service's thread from then on, where there is
    one (``ring`` wakes it), so that no producer is held longer than the time-out.
    """

    name = "GroupCommitService"

    def __init__(self, log: LogFlush, timeout_ms: int, *, pool: bool = False) -> None:
        self._log = log
        self._files = log.files
        self._timeout = timeout_ms / 1000.0
        self._pool = pool
        self._lock = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._served: deque[_Waiting] = deque()  # each that wakes wakes the next
        self._leading = False
        self._led_by_put = False
        self._slow = False
        self._held = False
        self._crowd = Crowd()
        self.ring: Callable[[], None] | None = None
        log.waiters = self._waiters

    @property
    def waiting(self) -> int:
        """How many wait for a flush that they do not lead."""
        return len(self._queue)

    def wait(self, end: int) -> bool:
        """Return when the log is flushed up to ``end``: True; False where that took longer than the time-out, or
        cannot be any more (:attr:`LogFlush.failure`).
        """
        if self._files.flushed_where >= end:
            return True
        if self._crowd.is_dense:
            with short_turns():
                return self._wait(end)
        return self._wait(end)

    def _wait(self, end: int) -> bool:
        with self._lock:
            if self._leading or self._left_to_service:
                waiting = _Waiting(end)
                self._queue.append(waiting)
            else:
                self._leading = self._led_by_put = True
                waiting = None
        if waiting is None:
            return self._lead(end)
        if self._slow and self.ring is not None:
            self.ring()
        if not waiting.bell.acquire(timeout=self._timeout):
            with self._lock:
                if waiting in self._queue:
                    self._queue.remove(waiting)
                    return self._files.flushed_where >= end
        if self._served:
            self._wake_next()
        if waiting.lead:
            return self._lead(end)
        return not waiting.lost

    @property
    def _left_to_service(self) -> bool:
        """No producer flushes itself."""
        return self._held or (self._slow and self.ring is not None)

    def _waiters(self) -> int:
        return len(self._queue) + self._led_by_put

    def hold(self, held: bool) -> None:
        """While ``held`` nobody flushes but :meth:`step`: producers wait, and time out."""
        self._held = held

    def step(self) -> float:
        """A round of the service: flush for messages that nobody waits for, and for all where the disk is slow."""
        self._crowd.wakes()
        try:
            self._flush_for_others()
        finally:
            self._crowd.sleeps(IDLE_MS / 1000)
        return IDLE_MS

    def _flush_for_others(self) -> None:
        with self._lock:
            if self._leading:
                return
            files = self._files
            if not self._queue and (self._log.failure is not None or files.flushed_where >= files.wrote_offset):
                return
            self._leading, self._led_by_put = True, False
            end = self._queue[-1].end if self._queue else files.wrote_offset
        self._lead(end)

    def close(self) -> None:
        """At shutdown: one more round for those that still wait."""
        self.ring = None
        self._slow = self._held = False
        self.step()

    def _lead(self, end: int) -> bool:
        """Flush up to ``end``, release those whom that served, and give the lead to the first of the others."""
        began = time.monotonic()
        lost = False
        try:
            lost = not self._flush(end)
        except (FlushFailed, OSError) as error:
            lost = True
            _log.debug("group commit ends: %s", error)
        finally:
            self._pass_on(lost)
        took = time.monotonic() - began
        if took > self._timeout / 4:
            self._slow = True
        elif self._slow and took < self._timeout / 16:
            self._slow = False
        return not lost and took <= self._timeout

    def _wake_next(self) -> None:
        try:
            self._served.popleft().bell.release()
        except IndexError:  # another thread was quicker
            return

    def _flush(self, end: int) -> bool:
        log, files = self._log, self._files
        for _ in range(TRIES):
            committed = not self._pool or log.commit(0)
            unmoved = log.flush(0)
            if files.flushed_where >= end:
                return True
            if unmoved and committed and files.wrote_offset < end:
                return False
        return False

    def _pass_on(self, lost: bool) -> None:
        with self._lock:
            flushed = self._files.flushed_where
            if lost and self._log.failure is not None:
                served = list(self._queue)
                self._queue.clear()
                for waiting in served:
                    waiting.lost = waiting.end > flushed
            else:
                served = []
                later: deque[_Waiting] = deque()
                for waiting in self._queue:
                    (served if waiting.end <= flushed else later).append(waiting)
                self._queue = later
            if self._queue and not self._left_to_service:
                leader = self._queue.popleft()
                leader.lead = self._led_by_put = True
                served.insert(0, leader)
            else:
                self._leading = False
                if self._queue and self.ring is not None:
                    self.ring()
            self._served.extend(served[_AT_ONCE:])
        for waiting in served[:_AT_ONCE]:
            waiting.bell.release()
