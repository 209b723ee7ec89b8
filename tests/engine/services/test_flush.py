"""Flush services, round by round: when they flush, what the checkpoint records, and what a failure stops."""

from __future__ import annotations

import errno
from typing import Any, cast

import pytest
from log_files import SmallLog

from engine.config import MessageStoreConfig
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.transient_pool import TransientStorePool
from engine.services.flush import (
    IDLE_MS,
    QUEUES_PER_STEP,
    CommitRealTime,
    FlushCheckpoint,
    FlushConsumeQueue,
    FlushFailed,
    FlushIndex,
    FlushRealTime,
    LogFlush,
)

PAGE = 4096


class Clock:
    """Milliseconds that only the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


def log_flush(small: SmallLog) -> LogFlush:
    return LogFlush(small.files, small.checkpoint, small.flags)


def test_few_pages_wait_for_the_thorough_interval() -> None:
    small, clock = SmallLog(), Clock()
    service = FlushRealTime(log_flush(small), MessageStoreConfig(), clock)
    assert service.step() == 500
    end = small.append(3 * PAGE, 77)
    clock.now += 9_999
    service.step()
    assert (small.files.flushed_where, small.checkpoint.physic) == (0, 0)
    clock.now += 1
    service.step()
    assert (small.files.flushed_where, small.checkpoint.physic) == (end, 77)


def test_four_pages_are_flushed_without_moving_the_checkpoint() -> None:
    small, clock = SmallLog(), Clock()
    service = FlushRealTime(log_flush(small), MessageStoreConfig(), clock)
    service.step()
    end = small.append(4 * PAGE, 77)
    service.step()
    assert (small.files.flushed_where, small.checkpoint.physic) == (end, 0)


def test_everything_over_several_files_is_flushed() -> None:
    small = SmallLog(size=PAGE)
    for _ in range(3):
        small.append(PAGE)
    small.append(10)
    log_flush(small).flush_all()
    assert small.files.flushed_where == 3 * PAGE + 10


def test_a_failed_flush_is_never_retried() -> None:
    small, clock = SmallLog(), Clock()
    log = log_flush(small)
    service = FlushRealTime(log, MessageStoreConfig(), clock)
    small.append(100)
    small.disk.fail(errno.EIO, kind="flush", times=1)
    service.step()
    assert not small.flags.writeable
    assert "flush of the commit log failed" in small.flags.why
    with pytest.raises(FlushFailed):
        log.flush(0)
    calls = small.disk.calls
    clock.now += 60_000
    service.step()
    assert small.disk.calls == calls
    assert small.files.flushed_where == 0


def test_flushes_that_move_something_are_counted() -> None:
    small = SmallLog()
    log = log_flush(small)
    log.flush(0)
    small.append(10)
    log.flush(0)
    assert log.latencies.snapshot().count == 1


def test_the_pool_is_committed_then_flushed() -> None:
    small, clock = SmallLog(), Clock()
    pool = TransientStorePool(2, 1 << 16)
    small.files = MappedFileQueue(small.disk, list(small.files.folders), 1 << 16, borrow=pool.borrow)
    log = log_flush(small)
    woken: list[str] = []
    service = CommitRealTime(log, MessageStoreConfig(), clock, lambda: woken.append("flush"))
    service.step()
    end = small.append(100)
    service.step()
    assert (small.files.max_offset, woken) == (0, [])
    clock.now += 200
    assert service.step() == 200
    assert (small.files.max_offset, small.files.committed_where, woken) == (end, end, ["flush"])
    assert small.files.flushed_where == 0


def test_a_failed_commit_is_retried() -> None:
    small, clock = SmallLog(), Clock()
    pool = TransientStorePool(1, 1 << 16)
    small.files = MappedFileQueue(small.disk, list(small.files.folders), 1 << 16, borrow=pool.borrow)
    service = CommitRealTime(log_flush(small), MessageStoreConfig(), clock, lambda: None)
    end = small.append(100)
    small.disk.fail(errno.ENOSPC, kind="write", times=1)
    service.step()
    assert service.failure is not None
    clock.now += 200
    service.step()
    assert (service.failure, small.files.committed_where) == (None, end)
    assert small.flags.writeable


class Queues:
    """Records how its queues were flushed."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.flush_requests: list[int] = []
        self.fails = False

    def settle(self):
        return iter(())

    def dirty(self) -> list[int]:
        return list(range(self.count))

    def flush_queue(self, queue: int, least_pages: int) -> bool:
        del queue
        if self.fails:
            raise OSError(errno.EIO, "no")
        self.flush_requests.append(least_pages)
        return True


def test_a_round_over_many_queues_is_cut_into_steps() -> None:
    small, clock, queues = SmallLog(), Clock(), Queues(QUEUES_PER_STEP * 2 + 5)
    service = FlushConsumeQueue(queues, small.checkpoint, small.flags, MessageStoreConfig(), clock)
    small.checkpoint.logics = 5
    assert [service.step() for _ in range(2)] == [0, 0]
    assert (len(queues.flush_requests), small.checkpoint.value.logics_msg_timestamp) == (QUEUES_PER_STEP * 2, 0)
    assert service.step() == 1000
    assert (len(queues.flush_requests), small.checkpoint.value.logics_msg_timestamp) == (QUEUES_PER_STEP * 2 + 5, 5)


def test_queues_are_flushed_thoroughly_once_a_minute_and_the_checkpoint_learns_it() -> None:
    small, clock, queues = SmallLog(), Clock(), Queues()
    service = FlushConsumeQueue(queues, small.checkpoint, small.flags, MessageStoreConfig(), clock)
    small.checkpoint.logics = 5
    assert service.step() == 1000
    small.checkpoint.logics = 9
    clock.now += 59_999
    service.step()
    assert (queues.flush_requests, small.checkpoint.value.logics_msg_timestamp) == ([0, 2], 5)
    clock.now += 1
    service.step()
    assert (queues.flush_requests, small.checkpoint.value.logics_msg_timestamp) == ([0, 2, 0], 9)


def test_queues_that_cannot_be_flushed_stop_the_store() -> None:
    small, clock, queues = SmallLog(), Clock(), Queues()
    service = FlushConsumeQueue(queues, small.checkpoint, small.flags, MessageStoreConfig(), clock)
    queues.fails = True
    service.step()
    assert not small.flags.writeable
    queues.fails = False
    service.step()
    assert queues.flush_requests == []
    with pytest.raises(OSError, match="flush of the consume queues failed"):
        service.flush()


def test_a_failed_write_before_a_flush_is_retried() -> None:
    """A full disk stopped the store permanently, like a failed flush: waiting queue entries and the checkpoint are
    written in the same round.
    """
    small, clock, queues = SmallLog(), Clock(), Queues()
    service = FlushConsumeQueue(queues, small.checkpoint, small.flags, MessageStoreConfig(), clock)
    small.checkpoint.logics = 5
    small.disk.fail(errno.ENOSPC, path="*checkpoint", kind="[cw]*")
    service.step()
    assert small.flags.writeable
    assert "No space" in str(service.delayed)
    small.disk.heal()
    clock.now += 60_000
    service.step()
    assert service.delayed is None
    assert small.checkpoint.value.logics_msg_timestamp == 5


def test_the_checkpoint_is_written_where_it_changed() -> None:
    small = SmallLog()
    service = FlushCheckpoint(small.checkpoint)
    small.checkpoint.physic = 3
    assert service.step() == 1000
    calls = small.disk.calls
    service.step()
    assert small.disk.calls == calls


class Checkpoint:
    def __init__(self) -> None:
        self.index, self.flushed = 0, []

    def flush(self) -> None:
        self.flushed.append(self.index)


class File:
    def __init__(self, end_timestamp, *, is_full=True, error=None) -> None:
        self.end_timestamp, self.is_full, self.error = end_timestamp, is_full, error
        self.flushes = 0

    def flush(self) -> None:
        self.flushes += 1
        if self.error is not None:
            raise self.error


def service(checkpoint):
    return FlushIndex(cast("Any", checkpoint))


def test_without_a_thread_a_file_is_flushed_at_once():
    checkpoint, file = Checkpoint(), File(5)
    service(checkpoint).take(file)
    assert (file.flushes, checkpoint.flushed) == (1, [5])


def test_a_file_that_is_not_full_does_not_advance_the_checkpoint():
    checkpoint = Checkpoint()
    service(checkpoint).take(File(5, is_full=False))
    assert checkpoint.flushed == []


def test_with_a_thread_files_wait_for_its_rounds():
    checkpoint, rings, files = Checkpoint(), [], [File(5), File(7)]
    flush_index = service(checkpoint)
    flush_index.wake_service = lambda: rings.append(1)
    for file in files:
        flush_index.take(file)
    assert (len(rings), [file.flushes for file in files]) == (2, [0, 0])
    assert flush_index.step() == 0.0
    assert flush_index.step() == IDLE_MS
    assert checkpoint.flushed == [5, 7]


def test_after_a_failure_the_checkpoint_stays_before_the_failed_file():
    checkpoint = Checkpoint()
    flush_index = service(checkpoint)
    flush_index.wake_service = lambda: None
    flush_index.take(File(5, error=OSError(28, "No space left on device")))
    flush_index.take(File(7))
    flush_index.finish()
    assert checkpoint.flushed == []
    assert "No space left" in (flush_index.failure or "")
