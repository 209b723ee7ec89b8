"""Group commit under SYNC_FLUSH: one flush serves all that wait (docs/formats/writing.md#flush; Java:
GroupCommitService, FlushDiskWatcher).

Whoever waits and finds no flush under way flushes, for itself and for those behind it; a lone producer so never hands
its message to another thread. Those that come meanwhile wait, each on a lock of its own: the flush either served them,
or the first of them leads the next one. Java waits with a thread between and the same answers. Whoever is interrupted
(Ctrl+C, an exception out of a signal's handler) leaves as one that was served: it wakes the next and passes on the
lead.

Beside threads of the same process that never pause (readers in a loop, say) turns are short while somebody waits: the
service's thread, which has little else to do, notices the crowd by how late it wakes up.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from engine.services.flush import FlushFailed, LogFlush
from engine.services.service_thread import Crowd, short_turns

_log = logging.getLogger(__name__)


IDLE_MS = 10.0
TRIES = 1000
_AT_ONCE = 1
"""Those whom a flush served wake one another: all at once they would only queue for the interpreter's lock. Whoever
leaves, served or too late, wakes one, so the chain never ends before the last.
"""


class _Waiting:
    """One that waits until ``end`` is flushed; ``lost`` says that nobody can, ``gone`` that it waits no more."""

    __slots__ = ("bell", "end", "gone", "lost")

    def __init__(self, end: int) -> None:
        self.end = end
        self.bell = threading.Lock()
        self.bell.acquire()
        self.lost = False
        self.gone = False


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
        self._leader: _Waiting | None = None  # whoever flushes now: it has to pass this on
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
        me = _Waiting(end)
        try:
            return self._wait_as(me)
        except BaseException:
            self._leave(me)
            raise

    def _wait_as(self, me: _Waiting) -> bool:
        with self._lock:
            leads = self._leader is None and not self._left_to_service
            if leads:
                self._leader, self._led_by_put = me, True
            else:
                self._queue.append(me)
        if leads:
            return self._lead(me)
        if self._slow and self.ring is not None:
            self.ring()
        if not me.bell.acquire(timeout=self._timeout):
            with self._lock:
                if me in self._queue:
                    self._queue.remove(me)
                    return self._files.flushed_where >= me.end
        me.gone = True
        if self._served:
            self._wake_next()
        if self._leader is me:
            return self._lead(me)
        return not me.lost

    def _leave(self, me: _Waiting) -> None:
        """``me`` was interrupted, wherever it stood: nobody is to wait for it."""
        me.gone = True
        with self._lock:
            if me in self._queue:
                self._queue.remove(me)
        self._wake_next()
        self._pass_on(me, lost=False)

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
        me = _Waiting(0)
        try:
            if self._begins(me):
                self._lead(me)
        except BaseException:
            self._leave(me)
            raise

    def _begins(self, me: _Waiting) -> bool:
        """Whether there is something to flush and nobody does; ``me`` leads then."""
        with self._lock:
            if self._leader is not None:
                return False
            files = self._files
            if not self._queue and (self._log.failure is not None or files.flushed_where >= files.wrote_offset):
                return False
            me.end = self._queue[-1].end if self._queue else files.wrote_offset
            self._leader, self._led_by_put = me, False
            return True

    def close(self) -> None:
        """At shutdown: one more round for those that still wait."""
        self.ring = None
        self._slow = self._held = False
        self.step()

    def _lead(self, me: _Waiting) -> bool:
        """Flush as far as ``me`` waits for, release those whom that served, lead on to the first of the others."""
        began = time.monotonic()
        lost = False
        try:
            lost = not self._flush(me.end)
        except (FlushFailed, OSError) as error:
            lost = True
            _log.debug("group commit ends: %s", error)
        finally:
            self._pass_on(me, lost)
        took = time.monotonic() - began
        if took > self._timeout / 4:
            self._slow = True
        elif self._slow and took < self._timeout / 16:
            self._slow = False
        return not lost and took <= self._timeout

    def _wake_next(self) -> None:
        """Wake one of those that were served, past those that went before somebody woke them."""
        waiting: _Waiting | None = None
        try:
            while (waiting := self._served.popleft()).gone:
                pass
            waiting.bell.release()
        except (IndexError, RuntimeError):  # another thread was quicker
            return
        except BaseException:  # interrupted: whoever was taken out is known to nobody else
            if waiting is not None:
                with contextlib.suppress(RuntimeError):
                    waiting.bell.release()
            raise

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

    def _pass_on(self, me: _Waiting, lost: bool) -> None:
        """Nothing where ``me`` does not lead. Nobody is out of the queue before it is among the served: this may be
        interrupted, and is done once more then.
        """
        with self._lock:
            if self._leader is not me:
                return
            flushed = self._files.flushed_where
            hopeless = lost and self._log.failure is not None
            served: list[_Waiting] = []
            later: deque[_Waiting] = deque()
            for waiting in self._queue:
                waiting.lost = hopeless and waiting.end > flushed
                (served if hopeless or waiting.end <= flushed else later).append(waiting)
            leader = later.popleft() if later and not self._left_to_service else None
            self._served.extend(served)
            if leader is not None:
                self._served.appendleft(leader)
            self._queue, self._leader, self._led_by_put = later, leader, leader is not None
            if later and leader is None and self.ring is not None:
                self.ring()
        for _ in range(_AT_ONCE):
            self._wake_next()
