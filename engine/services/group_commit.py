"""Group commit under SYNC_FLUSH: one flush serves all waiting puts (docs/formats/writing.md#flush; Java:
GroupCommitService, FlushDiskWatcher).

A put that finds no flush under way becomes the *leader*: it flushes for itself and for all that wait. So a lone
producer never hands its message to another thread. Puts that come meanwhile wait, each on a lock of its own.
After the flush they are either served, or the first of them becomes the next leader. Java has a thread in
between, with the same results::

    put up to 100   no leader: leads ═══ flush moves to 150 ═══╗ returns
    put up to 150       waits ·································╟ served, returns
    put up to 230            waits ····························╟ next leader ═══ flush moves to 300 ═══╗ returns
    put up to 300                waits ························╨ waits ································╨ served

There is at most one leader. A leader sorts the waiters and passes on the lead under the same lock, so no put can queue
unnoticed in between. A flush wakes one served put and each served put wakes the next: no put is
forgotten, and they do not all queue for the interpreter's lock at once.

A put that is interrupted (Ctrl+C, an exception from a signal handler) leaves like
a served one: it wakes the next and passes on the lead.

Threads of the same process that never pause (for example readers in a loop) make each wake-up late. So the
interpreter switches threads more often while puts wait; the service's thread detects such contention by how late
it wakes up itself.

"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from engine.services.flush import FlushFailed, LogFlush
from engine.services.service_thread import ThreadContention, short_turns

_log = logging.getLogger(__name__)


IDLE_MS = 10.0
MAX_FLUSH_TRIES = 1000
_WAKES_PER_FLUSH = 1
"""Number of served waiters that a flush wakes; each of them wakes the next.

If all woke at once, they would only queue for the interpreter's lock. Waiters that time out wake the next too, so the
chain never ends early.
"""


class _Waiter:
    """A put that waits until ``end`` is flushed; ``lost``: the flush failed. ``gone``: it no longer waits."""

    __slots__ = ("bell", "end", "gone", "lost")

    def __init__(self, end: int) -> None:
        self.end = end
        self.bell = threading.Lock()
        self.bell.acquire()
        self.lost = False
        self.gone = False


class GroupCommit:
    """Waits for the disk. ``timeout_ms`` is ``syncFlushTimeout``.

    On a disk so slow that one flush takes a quarter of that, the service's thread does all further flushes, if
    there is one (``wake_service`` wakes it), so that no producer is held longer than the time-out.

    """

    name = "GroupCommitService"

    def __init__(self, log: LogFlush, timeout_ms: int, *, pool: bool = False) -> None:
        self._log = log
        self._files = log.files
        self._timeout = timeout_ms / 1000.0
        self._pool = pool
        self._lock = threading.Lock()
        self._queue: deque[_Waiter] = deque()
        self._served: deque[_Waiter] = deque()  # each of them wakes the next
        self._leader: _Waiter | None = None  # the waiter that flushes now; it must pass on the lead
        self._led_by_put = False
        self._slow = False
        self._held = False
        self._contention = ThreadContention()
        self.wake_service: Callable[[], None] | None = None
        log.waiters = self._waiters

    @property
    def waiting(self) -> int:
        """The number of puts that wait for a flush that they do not lead."""
        return len(self._queue)

    def wait(self, end: int) -> bool:
        """Wait until the log is flushed up to ``end`` and return True.

        Returns False if that takes longer than the time-out, or is impossible (:attr:`LogFlush.failure`).

        """
        if self._files.flushed_where >= end:
            return True
        if self._contention.is_dense:
            with short_turns():
                return self._wait(end)
        return self._wait(end)

    def _wait(self, end: int) -> bool:
        waiter = _Waiter(end)
        try:
            return self._wait_as(waiter)
        except BaseException:
            self._leave(waiter)
            raise

    def _wait_as(self, waiter: _Waiter) -> bool:
        with self._lock:
            is_leader = self._leader is None and not self._is_left_to_service
            if is_leader:
                self._leader, self._led_by_put = waiter, True
            else:
                self._queue.append(waiter)
        if is_leader:
            return self._lead(waiter)
        if self._slow and self.wake_service is not None:
            self.wake_service()
        if not waiter.bell.acquire(timeout=self._timeout):
            with self._lock:
                if waiter in self._queue:
                    self._queue.remove(waiter)
                    return self._files.flushed_where >= waiter.end
        waiter.gone = True
        if self._served:
            self._wake_next()
        if self._leader is waiter:
            return self._lead(waiter)
        return not waiter.lost

    def _leave(self, waiter: _Waiter) -> None:
        """Remove ``waiter`` after an interrupt, whatever its state, so that no other put waits for it."""
        waiter.gone = True
        with self._lock:
            if waiter in self._queue:
                self._queue.remove(waiter)
        self._wake_next()
        self._pass_on(waiter, has_failed=False)

    @property
    def _is_left_to_service(self) -> bool:
        """True if no producer flushes itself."""
        return self._held or (self._slow and self.wake_service is not None)

    def _waiters(self) -> int:
        return len(self._queue) + self._led_by_put

    def hold(self, is_held: bool) -> None:
        """While ``is_held`` only :meth:`step` flushes: producers wait, and time out."""
        self._held = is_held

    def step(self) -> float:
        """Do a round of the service: flush for messages for which no put waits, and for all if the disk is slow."""
        self._contention.wakes()
        try:
            self._flush_for_others()
        finally:
            self._contention.sleeps(IDLE_MS / 1000)
        return IDLE_MS

    def _flush_for_others(self) -> None:
        waiter = _Waiter(0)
        try:
            if self._try_to_lead(waiter):
                self._lead(waiter)
        except BaseException:
            self._leave(waiter)
            raise

    def _try_to_lead(self, waiter: _Waiter) -> bool:
        """Make ``waiter`` the leader if there is something to flush and no leader; returns True if it leads."""
        with self._lock:
            if self._leader is not None:
                return False
            files = self._files
            if not self._queue and (self._log.failure is not None or files.flushed_where >= files.wrote_offset):
                return False
            waiter.end = self._queue[-1].end if self._queue else files.wrote_offset
            self._leader, self._led_by_put = waiter, False
            return True

    def close(self) -> None:
        """Do one more round at shutdown, for the puts that still wait."""
        self.wake_service = None
        self._slow = self._held = False
        self.step()

    def _lead(self, leader: _Waiter) -> bool:
        """Flush up to the offset of ``leader``, wake every waiter that this covers, and make the next waiter the
        leader.
        """
        start_s = time.monotonic()
        has_failed = False
        try:
            has_failed = not self._flush(leader.end)
        except (FlushFailed, OSError) as error:
            has_failed = True
            _log.debug("group commit ends: %s", error)
        finally:
            self._pass_on(leader, has_failed)
        duration_s = time.monotonic() - start_s
        if duration_s > self._timeout / 4:
            self._slow = True
        elif self._slow and duration_s < self._timeout / 16:
            self._slow = False
        return not has_failed and duration_s <= self._timeout

    def _wake_next(self) -> None:
        """Wake a served waiter, skipping those that have left."""
        waiter: _Waiter | None = None
        try:
            while (waiter := self._served.popleft()).gone:
                pass
            waiter.bell.release()
        except (IndexError, RuntimeError):  # another thread was faster
            return
        except BaseException:  # interrupted: no other thread knows the waiter that was removed
            if waiter is not None:
                with contextlib.suppress(RuntimeError):
                    waiter.bell.release()
            raise

    def _flush(self, end: int) -> bool:
        log, files = self._log, self._files
        for _ in range(MAX_FLUSH_TRIES):
            committed = not self._pool or log.commit(0)
            has_nothing_new = log.flush(0)
            if files.flushed_where >= end:
                return True
            if has_nothing_new and committed and files.wrote_offset < end:
                return False
        return False

    def _pass_on(self, leaving: _Waiter, has_failed: bool) -> None:
        """Pass the lead of ``leaving`` to the next waiter; does nothing if it does not lead.

        No waiter leaves the queue before it is in the list of served ones: this may be interrupted, and is then
        repeated.

        """
        with self._lock:
            if self._leader is not leaving:
                return
            flushed = self._files.flushed_where
            log_has_failed = has_failed and self._log.failure is not None
            served: list[_Waiter] = []
            remaining: deque[_Waiter] = deque()
            for waiter in self._queue:
                waiter.lost = log_has_failed and waiter.end > flushed
                (served if log_has_failed or waiter.end <= flushed else remaining).append(waiter)
            leader = remaining.popleft() if remaining and not self._is_left_to_service else None
            self._served.extend(served)
            if leader is not None:
                self._served.appendleft(leader)
            self._queue, self._leader, self._led_by_put = remaining, leader, leader is not None
            if remaining and leader is None and self.wake_service is not None:
                self.wake_service()
        for _ in range(_WAKES_PER_FLUSH):
            self._wake_next()
