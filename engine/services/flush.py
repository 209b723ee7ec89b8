"""Flush and commit the log, the queues, the index files that dispatch has filled, and the checkpoint
(docs/formats/writing.md#flush).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.callbacks import Clock
from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.sentences import sentence
from engine.store.latency import Latencies
from engine.store.running_flags import NOT_WRITEABLE, QUEUE_WRITE_ERROR, RunningFlags
from engine.store.store_checkpoint import StoreCheckpoint

if TYPE_CHECKING:
    from engine.store.consume_queue import BatchConsumeQueue, ConsumeQueue
    from engine.store.consume_queue_store import ConsumeQueueStore
    from engine.store.index_file import IndexFile


QUEUES_PER_STEP: Final = 64
"""Number of queues that one step writes to disk."""
SLOW_NANOSECONDS: Final = 1_000_000_000
MAX_REMEMBERED_FLUSHES: Final = 1024
"""Number of log flushes that are remembered."""
_log = logging.getLogger(__name__)


class FlushFailed(StoreError):
    """The log could not be written to disk; the store accepts no messages any more."""


class FlushRecord(NamedTuple):
    """A flush of the log that moved something; ``number`` counts since the store was opened."""

    number: int
    finished_ns: int  # since 1970
    to_offset: int
    bytes: int
    duration_ns: int
    waiters: int  # puts that waited when it began


class LogFlush:
    """The only way to ``flush`` and ``commit`` the commit log: one at a time, counted, and disabled by the first
    failure.
    """

    def __init__(self, files: MappedFileQueue, checkpoint: StoreCheckpoint, flags: RunningFlags) -> None:
        self.files = files
        self.latencies = Latencies()
        self.failure: str | None = None
        self.marks: deque[FlushRecord] = deque(maxlen=MAX_REMEMBERED_FLUSHES)
        self.committed = 0, 0
        """The last commit that moved something: ns since 1970, bytes."""
        self.waiters: Callable[[], int] = _no_waiters
        self._checkpoint = checkpoint
        self._flags = flags
        self._flushes = 0
        self._lock = threading.Lock()

    @property
    def flushed(self) -> int:
        """Absolute offset up to which all bytes survive a power loss."""
        return self.files.flushed_where

    def flush(self, least_pages: int = 0) -> bool:
        """Flush one file if enough of it is dirty; returns True if nothing moved. Raises :class:`FlushFailed`.

        ``least_pages`` 0 flushes everything and passes the store time to the checkpoint.
        """
        files = self.files
        with self._lock:
            if self.failure is not None:
                raise FlushFailed(self.failure)
            old_offset, waiters = files.flushed_where, self.waiters()
            start_ns = time.perf_counter_ns()
            try:
                unmoved = files.flush(least_pages)
            except OSError as error:
                raise self._failed("flush", error) from error
            if not unmoved:
                duration_ns, flushed = time.perf_counter_ns() - start_ns, files.flushed_where
                self._count(duration_ns)
                self._flushes += 1
                self.marks.append(
                    FlushRecord(self._flushes, time.time_ns(), flushed, flushed - old_offset, duration_ns, waiters)
                )
            if files.store_timestamp > 0:
                self._checkpoint.physic = files.store_timestamp
        return unmoved

    def commit(self, least_pages: int = 0) -> bool:
        """Write pool buffers to their files; returns True if nothing moved.

        Raises ``OSError``; the next call tries again, because the bytes are still in the buffer.

        """
        files = self.files
        with self._lock:
            old_offset = files.max_offset
            unmoved = files.commit(least_pages)
            if not unmoved:
                self.committed = time.time_ns(), files.max_offset - old_offset
            return unmoved

    def commit_all(self) -> int:
        """Commit everything written so far; returns the end of committed bytes. Raises ``OSError``."""
        files = self.files
        while files.max_offset < files.wrote_offset:
            if self.commit(0):
                break
        return files.max_offset

    def flush_all(self, end: int | None = None) -> None:
        """Commit and flush until everything written so far (or up to ``end``) is on disk. Raises as :meth:`commit`
        and :meth:`flush` do.
        """
        files = self.files
        target_offset = files.wrote_offset if end is None else end
        while files.flushed_where < target_offset:
            committed = self.commit(0)
            if self.flush(0) and committed and files.flushed_where < target_offset:
                return

    def _failed(self, action: str, error: OSError) -> FlushFailed:
        self.failure = sentence("{action} of the commit log failed: {error}", action=action, error=error)
        self._flags.raise_flag(NOT_WRITEABLE, self.failure)
        _log.error("%s; the store takes no messages any more", self.failure)
        return FlushFailed(self.failure)

    def _count(self, nanoseconds: int) -> None:
        self.latencies.add(nanoseconds)
        if nanoseconds > SLOW_NANOSECONDS:
            _log.warning("a flush of the commit log took %d ms", nanoseconds // 1_000_000)


class FlushSchedule:
    """Decides how much a turn must flush: usually at least ``pages``, and once per ``interval`` ms everything."""

    __slots__ = ("_clock", "_interval", "_last", "_pages")

    def __init__(self, pages: int, interval: int, clock: Clock) -> None:
        self._pages = pages
        self._interval = interval
        self._clock = clock
        self._last = 0

    def least_pages(self) -> int:
        """Return the minimum number of pages for the turn that begins now: 0 if it flushes everything."""
        now = self._clock()
        if now < self._last + self._interval:
            return self._pages
        self._last = now
        return 0

    def begin_anew(self) -> None:
        """Restart the interval now."""
        self._last = self._clock()


class FlushRealTime:
    """ASYNC_FLUSH: flushes every ``flushIntervalCommitLog`` if enough is dirty, and regularly everything."""

    name = "FlushRealTimeService"

    def __init__(self, log: LogFlush, config: MessageStoreConfig, clock: Clock) -> None:
        self._log = log
        self._interval = config.flush_interval_commit_log
        self._rhythm = FlushSchedule(
            config.flush_commit_log_least_pages, config.flush_commit_log_thorough_interval, clock
        )
        self.timed = config.flush_commit_log_timed  # nothing ends the pause early

    def step(self) -> float:
        """Flush once."""
        pages = self._rhythm.least_pages()
        if self._log.failure is None:
            _flush_logged(self._log.flush, pages)
        return self._interval


class CommitRealTime:
    """The transient pool: commits every ``commitIntervalCommitLog`` if enough is there; ``moved`` is called after a
    commit.
    """

    name = "CommitRealTimeService"

    def __init__(self, log: LogFlush, config: MessageStoreConfig, clock: Clock, moved: Callable[[], None]) -> None:
        self._log = log
        self._interval = config.commit_interval_commit_log
        self._rhythm = FlushSchedule(
            config.commit_commit_log_least_pages, config.commit_commit_log_thorough_interval, clock
        )
        self._moved = moved
        self.failure: str | None = None

    def step(self) -> float:
        """Commit once. A full disk is logged once and tried again: the bytes stay in the buffer."""
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


class FlushConsumeQueue:
    """Flushes the queues every ``flushIntervalConsumeQueue``; once a minute all of them, and then the checkpoint.

    Forty thousand queues take a slow disk a minute. A round is cut into steps, so that stopping the service never
    waits for a complete round.

    """

    name = "FlushConsumeQueueService"

    def __init__(
        self,
        queues: ConsumeQueueStore,
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
        self._rhythm = FlushSchedule(least, thorough, clock)
        self._round: Iterator[None] | None = None
        self.failure: str | None = None
        """Why a queue could not be flushed: that stops the store."""
        self.delayed: str | None = None
        """Why the last round could not write what it was to flush; the next one tries again."""

    def step(self) -> float:
        """Do the next part of the present round, or begin a new one."""
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
        """Flush queues with at least ``least_pages`` dirty pages.

        With 0 all of them are flushed, and the checkpoint gets the store time that the queues had before. Raises
        ``OSError``; queues that cannot be flushed stop the store.

        """
        if self.failure is not None:
            raise OSError(5, self.failure)
        for _ in self._pieces(least_pages):
            pass

    def _pieces(self, least_pages: int) -> Iterator[None]:
        checkpoint_time, checkpoint_offset = self._checkpoint.logics, self._checkpoint.logics_offset
        queues_per_step = QUEUES_PER_STEP if least_pages == 0 else QUEUES_PER_STEP * 64
        if least_pages == 0:
            yield from self._queues.settle()
        for number, queue in enumerate(self._queues.dirty(), 1):
            self._flush_queue(queue, least_pages)
            if number % queues_per_step == 0:
                yield
        if least_pages == 0:
            if checkpoint_time > 0:
                self._checkpoint.settle_logics(checkpoint_time, checkpoint_offset)
            self._checkpoint.flush()

    def _flush_queue(self, queue: ConsumeQueue | BatchConsumeQueue, least_pages: int) -> None:
        try:
            self._queues.flush_queue(queue, least_pages)
        except OSError as error:
            self._failed(error)
            raise

    def _failed(self, error: OSError) -> None:
        self.failure = sentence("flush of the consume queues failed: {error}", error=error)
        self._flags.raise_flag(QUEUE_WRITE_ERROR, self.failure)
        _log.error("%s", self.failure)


class FlushCheckpoint:
    """5.x: writes the checkpoint every second if it changed."""

    name = "FlushCheckpointService"
    interval = 1000.0

    def __init__(self, checkpoint: StoreCheckpoint) -> None:
        self._checkpoint = checkpoint
        self.failure: str | None = None

    def step(self) -> float:
        """Write once. A failure is logged once: an old checkpoint only makes recovery longer."""
        try:
            self._checkpoint.flush()
            self.failure = None
        except OSError as error:
            if self.failure is None:
                _log.warning("the checkpoint cannot be written: %s", error)
            self.failure = str(error)
        return self.interval


def _no_waiters() -> int:
    """Return 0: without group commit nobody waits."""
    return 0


def _flush_logged(flush: Callable[[int], bool], pages: int) -> None:
    """Flush; a failure is already logged and stored."""
    try:
        flush(pages)
    except FlushFailed:
        return


IDLE_MS = 60_000.0


class FlushIndex:
    """Flushes index files that the dispatching thread gives to :meth:`take`; full ones advance the checkpoint's
    index time.
    """

    name = "FlushIndexService"

    def __init__(self, checkpoint: StoreCheckpoint) -> None:
        self.failure: str | None = None
        self.wake_service: Callable[[], None] | None = None
        self._checkpoint = checkpoint
        self._files: deque[IndexFile] = deque()

    def take(self, file: IndexFile) -> None:
        """Flush ``file`` soon, or at once if there is no thread."""
        self._files.append(file)
        if self.wake_service is not None:
            self.wake_service()
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
