"""Flushing and committing the log, the queues and the checkpoint (docs/formats/writing.md#flush).

Java: FlushRealTimeService, CommitRealTimeService, FlushConsumeQueueService. Group commit has a module of its own,
:mod:`engine.services.group_commit`. Times in ms. A flush of the log that failed is never tried again: the kernel may
have thrown the dirty pages away, and a second try would find nothing left to complain about.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.store.latency import Latencies
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
        before, offset = self._checkpoint.logics, self._checkpoint.logics_offset
        piece = PIECE if least_pages == 0 else PIECE * 64
        if least_pages == 0:
            yield from self._queues.settle()
        for number, queue in enumerate(self._queues.dirty(), 1):
            self._flush_queue(queue, least_pages)
            if number % piece == 0:
                yield
        if least_pages == 0:
            if before > 0:
                self._checkpoint.settle_logics(before, offset)
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
