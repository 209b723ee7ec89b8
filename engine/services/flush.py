"""Flushing and committing the log, the queues and the checkpoint (spec 7).

Java: FlushRealTimeService, CommitRealTimeService, FlushConsumeQueueService. Group commit has a module of its own,
:mod:`engine.services.flush`. Times in ms. A flush of the log that failed is never tried again: the kernel may
have thrown the dirty pages away, and a second try would find nothing left to complain about.

Group commit under SYNC_FLUSH: one flush serves all that wait (spec 7; Java: GroupCommitService, FlushDiskWatcher).

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
from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.services.service_thread import Crowd, short_turns
from engine.store.positions import Latencies
from engine.store.running_flags import NOT_WRITEABLE, QUEUE_WRITE_ERROR, RunningFlags
from engine.store.store_checkpoint import StoreCheckpoint

PIECE: Final = 64
"""Queues that are brought to disk in one step."""
SLOW_NANOSECONDS: Final = 1_000_000_000
MARKS: Final = 1024
"""Flushes of the log that are remembered."""
Clock = Callable[[], int]
_log = logging.getLogger(__name__)


class FlushFailed(StoreError):
    """The log could not be brought to disk; the store takes no messages any more."""


class Flushed(NamedTuple):
    """One flush of the log that moved something; the ``number``-th since the store was opened."""

    number: int
    at: int  # ns since 1970, when it was over
    to_offset: int
    bytes: int
    took: int  # ns
    waiters: int  # puts that waited for it, as far as they did when it began


class LogFlush:
    """The one door to ``flush`` and ``commit`` of the commit log: in turns, counted, and shut by the first failure."""

    def __init__(self, files: MappedFileQueue, checkpoint: StoreCheckpoint, flags: RunningFlags) -> None:
        self.files = files
        self.latencies = Latencies()
        self.failure: str | None = None
        self.marks: deque[Flushed] = deque(maxlen=MARKS)
        self.committed = 0, 0
        """The last commit that moved something: ns since 1970, bytes."""
        self.waiters: Callable[[], int] = _nobody
        self._checkpoint = checkpoint
        self._flags = flags
        self._flushes = 0
        self._lock = threading.Lock()

    @property
    def flushed(self) -> int:
        """Absolute offset up to which everything survives a power loss."""
        return self.files.flushed_where

    def flush(self, least_pages: int = 0) -> bool:
        """Flush one file where it is worth it; True where nothing moved. Raises :class:`FlushFailed`.

        ``least_pages`` 0 flushes whatever is there and tells the checkpoint the store time reached.
        """
        files = self.files
        with self._lock:
            if self.failure is not None:
                raise FlushFailed(self.failure)
            before, waiters = files.flushed_where, self.waiters()
            began = time.perf_counter_ns()
            try:
                unmoved = files.flush(least_pages)
            except OSError as error:
                raise self._failed("flush", error) from error
            if not unmoved:
                took, flushed = time.perf_counter_ns() - began, files.flushed_where
                self._count(took)
                self._flushes += 1
                self.marks.append(Flushed(self._flushes, time.time_ns(), flushed, flushed - before, took, waiters))
            if files.store_timestamp > 0:
                self._checkpoint.physic = files.store_timestamp
        return unmoved

    def commit(self, least_pages: int = 0) -> bool:
        """Hand pool buffers to their files; True where nothing moved. Raises ``OSError``; the next call tries again:
        the bytes are still in the buffer.
        """
        files = self.files
        with self._lock:
            before = files.max_offset
            unmoved = files.commit(least_pages)
            if not unmoved:
                self.committed = time.time_ns(), files.max_offset - before
            return unmoved

    def commit_all(self) -> int:
        """Commit everything written so far; gives the end of what is committed. Raises ``OSError``."""
        files = self.files
        while files.max_offset < files.wrote_offset:
            if self.commit(0):
                break
        return files.max_offset

    def flush_all(self, end: int | None = None) -> None:
        """Commit and flush until everything written so far (or up to ``end``) is on disk. Raises as those do."""
        files = self.files
        wanted = files.wrote_offset if end is None else end
        while files.flushed_where < wanted:
            committed = self.commit(0)
            if self.flush(0) and committed and files.flushed_where < wanted:
                return

    def _failed(self, what: str, error: OSError) -> FlushFailed:
        self.failure = f"{what} of the commit log failed: {error}"
        self._flags.raise_flag(NOT_WRITEABLE, self.failure)
        _log.error("%s; the store takes no messages any more", self.failure)
        return FlushFailed(self.failure)

    def _count(self, nanoseconds: int) -> None:
        self.latencies.add(nanoseconds)
        if nanoseconds > SLOW_NANOSECONDS:
            _log.warning("a flush of the commit log took %d ms", nanoseconds // 1_000_000)


class Rhythm:
    """Mostly what fills ``pages`` at least, and once in ``interval`` ms whatever is there."""

    __slots__ = ("_clock", "_interval", "_last", "_pages")

    def __init__(self, pages: int, interval: int, clock: Clock) -> None:
        self._pages = pages
        self._interval = interval
        self._clock = clock
        self._last = 0

    def least_pages(self) -> int:
        """Of the turn that begins now: 0 where it takes whatever is there."""
        now = self._clock()
        if now < self._last + self._interval:
            return self._pages
        self._last = now
        return 0

    def begin_anew(self) -> None:
        """Count the interval from now on."""
        self._last = self._clock()


class FlushRealTime:
    """ASYNC_FLUSH: every ``flushIntervalCommitLog`` what is worth it, now and then whatever is there."""

    name = "FlushRealTimeService"

    def __init__(self, log: LogFlush, config: MessageStoreConfig, clock: Clock) -> None:
        self._log = log
        self._interval = config.flush_interval_commit_log
        self._rhythm = Rhythm(config.flush_commit_log_least_pages, config.flush_commit_log_thorough_interval, clock)
        self.timed = config.flush_commit_log_timed  # the pause cannot be cut short

    def step(self) -> float:
        """One flush."""
        pages = self._rhythm.least_pages()
        if self._log.failure is None:
            _quietly(self._log.flush, pages)
        return self._interval


class CommitRealTime:
    """The transient pool: every ``commitIntervalCommitLog`` what is worth it; ``moved`` is told to flush it."""

    name = "CommitRealTimeService"

    def __init__(self, log: LogFlush, config: MessageStoreConfig, clock: Clock, moved: Callable[[], None]) -> None:
        self._log = log
        self._interval = config.commit_interval_commit_log
        self._rhythm = Rhythm(config.commit_commit_log_least_pages, config.commit_commit_log_thorough_interval, clock)
        self._moved = moved
        self.failure: str | None = None

    def step(self) -> float:
        """One commit; a full disk is told once and tried again: the bytes stay in the buffer."""
        pages = self._rhythm.least_pages()
        try:
            unmoved = self._log.commit(pages)
        except OSError as error:
            if self.failure is None:
                _log.error("committing the pool's buffers failed: %s", error)
            self.failure = str(error)
            return self._interval
        self.failure = None
        if not unmoved:
            self._rhythm.begin_anew()
            self._moved()
        return self._interval


Queue = TypeVar("Queue")


class Flushable(Protocol[Queue]):
    """All consume queues, as far as flushing goes."""

    def settle(self) -> Iterator[None]:
        """Write in small pieces what waits for its queue. Raises ``OSError``."""

    def dirty(self) -> list[Queue]:
        """Those that were written since they were last clean."""

    def flush_queue(self, queue: Queue, least_pages: int) -> bool:
        """Flush one that is worth it. Raises ``OSError``."""


class FlushConsumeQueue(Generic[Queue]):
    """Every ``flushIntervalConsumeQueue`` the queues; once a minute all of them, then the checkpoint learns it.

    Forty thousand queues take a minute of a slow disk: a round is cut into steps, so that the end of the service never
    waits for one.
    """

    name = "FlushConsumeQueueService"

    def __init__(
        self,
        queues: Flushable[Queue],
        checkpoint: StoreCheckpoint,
        flags: RunningFlags,
        config: MessageStoreConfig,
        clock: Clock,
    ) -> None:
        self._queues = queues
        self._checkpoint = checkpoint
        self._flags = flags
        self._interval = config.flush_interval_consume_queue
        least, thorough = config.flush_consume_queue_least_pages, config.flush_consume_queue_thorough_interval
        self._rhythm = Rhythm(least, thorough, clock)
        self._round: Iterator[None] | None = None
        self.failure: str | None = None
        """Why a queue could not be flushed: that stops the store."""
        self.delayed: str | None = None
        """Why the last round could not write what it was to flush; the next one tries again."""

    def step(self) -> float:
        """The next piece of the round under way, or the first one of another."""
        if self.failure is not None:
            return self._interval
        if self._round is None:
            self._round = self._pieces(self._rhythm.least_pages())
        try:
            for _ in self._round:
                return 0.0
            self.delayed = None
        except OSError as error:
            if self.delayed is None:
                _log.warning("queues and checkpoint cannot be written now: %s", error)
            self.delayed = str(error)
        self._round = None
        return self._interval

    def flush(self, least_pages: int = 0) -> None:
        """Flush queues worth ``least_pages``; with 0 all of them, and the checkpoint is written with the store time
        that the queues had reached before. Raises ``OSError``; queues that cannot be flushed stop the store.
        """
        if self.failure is not None:
            raise OSError(5, self.failure)
        for _ in self._pieces(least_pages):
            pass

    def _pieces(self, least_pages: int) -> Iterator[None]:
        before = self._checkpoint.logics
        piece = PIECE if least_pages == 0 else PIECE * 64
        if least_pages == 0:
            yield from self._queues.settle()
        for number, queue in enumerate(self._queues.dirty(), 1):
            self._flush_queue(queue, least_pages)
            if number % piece == 0:
                yield
        if least_pages == 0:
            if before > 0:
                self._checkpoint.settle_logics(before)
            self._checkpoint.flush()

    def _flush_queue(self, queue: Queue, least_pages: int) -> None:
        try:
            self._queues.flush_queue(queue, least_pages)
        except OSError as error:
            self._failed(error)
            raise

    def _failed(self, error: OSError) -> None:
        self.failure = f"flush of the consume queues failed: {error}"
        self._flags.raise_flag(QUEUE_WRITE_ERROR, self.failure)
        _log.error("%s", self.failure)


class FlushCheckpoint:
    """5.x: the checkpoint is written every second where it changed."""

    name = "FlushCheckpointService"
    interval = 1000.0

    def __init__(self, checkpoint: StoreCheckpoint) -> None:
        self._checkpoint = checkpoint
        self.failure: str | None = None

    def step(self) -> float:
        """One write; a failure is told once, for an old checkpoint only makes recovery longer."""
        try:
            self._checkpoint.flush()
            self.failure = None
        except OSError as error:
            if self.failure is None:
                _log.warning("the checkpoint cannot be written: %s", error)
            self.failure = str(error)
        return self.interval


def _nobody() -> int:
    """Without group commit nobody waits."""
    return 0


def _quietly(flush: Callable[[int], bool], pages: int) -> None:
    """A flush whose failure has been told and kept already."""
    try:
        flush(pages)
    except FlushFailed:
        return


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
