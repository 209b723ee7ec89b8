"""Group commit: one flush serves all waiting producers, a lone producer flushes itself, and waits end at the
timeout.
"""

from __future__ import annotations

import errno
import linecache
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest
from log_files import SmallLog
from simulated_disk import SimulatedDisk

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.transient_pool import TransientStorePool
from engine.message_store import MessageStore
from engine.services import group_commit
from engine.services.flush import LogFlush
from engine.services.group_commit import IDLE_MS, GroupCommit
from engine.services.service_thread import SHORT_TURN_S, ThreadContention


def log_flush(small: SmallLog) -> LogFlush:
    return LogFlush(small.files, small.checkpoint, small.flags)


def grouped(small: SmallLog, timeout_ms: int = 5000, pool: bool = False) -> GroupCommit:
    return GroupCommit(LogFlush(small.files, small.checkpoint, small.flags), timeout_ms, pool=pool)


TRACED_CLASSES = "GroupCommit.", "_Waiter."


class GatedFiles(MappedFileQueue):
    """A log whose flush waits for a gate."""

    __slots__ = ("count", "entered", "gate")

    def __init__(self, small: SmallLog) -> None:
        super().__init__(small.disk, list(small.files.folders), small.files.file_size)
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.count = 0

    def flush(self, least_pages: int) -> bool:
        self.count += 1
        self.entered.release()
        assert self.gate.wait(60)
        return super().flush(least_pages)


def test_a_lone_producer_flushes_itself() -> None:
    small = SmallLog()
    group = grouped(small)
    end = small.append(100, 7)
    assert group.wait(end)
    assert (small.files.flushed_where, small.checkpoint.physic) == (end, 7)
    calls = small.disk.calls
    assert group.wait(end)
    assert small.disk.calls == calls


@pytest.mark.parametrize("dense", [False, True])
def test_switch_interval_is_short_while_a_put_waits_among_busy_threads(
    dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight busy readers left dozens of some thousand puts a second: after each flush the producer waited long for the
    interpreter lock.
    """
    small = SmallLog()
    group, interval_before = grouped(small), sys.getswitchinterval()
    monkeypatch.setattr(ThreadContention, "is_dense", dense)
    intervals: list[float] = []
    flush = MappedFileQueue.flush

    def watched(files: MappedFileQueue, least_pages: int) -> bool:
        intervals.append(sys.getswitchinterval())
        return flush(files, least_pages)

    monkeypatch.setattr(MappedFileQueue, "flush", watched)
    assert group.wait(small.append(100))
    assert intervals == [pytest.approx(SHORT_TURN_S if dense else interval_before)]
    assert sys.getswitchinterval() == interval_before


def test_the_service_s_thread_tells_the_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(ThreadContention, "wakes", lambda _: texts.append("wakes"))
    monkeypatch.setattr(ThreadContention, "sleeps", lambda _, seconds: texts.append(f"sleeps {seconds}"))
    small = SmallLog()
    group = grouped(small)
    small.append(100)
    assert group.step() == IDLE_MS
    assert texts == ["wakes", "sleeps 0.01"]


def test_one_flush_serves_all_that_wait() -> None:
    small = SmallLog()
    files = small.files = GatedFiles(small)
    group = grouped(small)
    with ThreadPoolExecutor(9) as threads:
        leader = threads.submit(group.wait, small.append(100))
        assert files.entered.acquire(timeout=60)
        waiters = [threads.submit(group.wait, small.append(100)) for _ in range(8)]
        while group.waiting < 8:
            pass
        files.gate.set()
        assert leader.result(60)
        assert all(waiter.result(60) for waiter in waiters)
    assert files.count == 1
    assert group.waiting == 0


def test_waiters_beyond_the_flush_lead_the_next_one() -> None:
    small = SmallLog(size=4096)
    files = small.files = GatedFiles(small)
    group = grouped(small)
    with ThreadPoolExecutor(3) as threads:
        leader = threads.submit(group.wait, small.append(4096))
        assert files.entered.acquire(timeout=60)
        waiters = [threads.submit(group.wait, small.append(100)) for _ in range(2)]
        while group.waiting < 2:
            pass
        files.gate.set()
        assert leader.result(60)
        assert [waiter.result(60) for waiter in waiters] == [True, True]
    assert files.count == 2
    assert small.files.flushed_where == 4096 + 200


def test_a_follower_waits_at_most_the_timeout() -> None:
    small = SmallLog()
    files = small.files = GatedFiles(small)
    group = grouped(small, timeout_ms=30)
    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(group.wait, small.append(100))
        assert files.entered.acquire(timeout=60)
        assert not threads.submit(group.wait, small.append(100)).result(60)
        assert group.waiting == 0
        files.gate.set()
        assert not leader.result(60)  # its own flush took longer than the timeout


def test_a_slow_disk_is_left_to_the_service() -> None:
    small = SmallLog(disk=SimulatedDisk())
    group = grouped(small, timeout_ms=40)
    rung: list[bool] = []
    group.wake_service = lambda: rung.append(True)
    small.disk.slow(20, "flush")
    assert group.wait(small.append(100))
    assert not group.wait(small.append(100))  # no other thread flushes for it here
    assert rung
    group.step()
    assert small.files.flushed_where == small.files.wrote_offset


def test_a_failed_flush_answers_all_waiters_and_stops_the_store() -> None:
    small = SmallLog()
    files = small.files = GatedFiles(small)
    group = grouped(small)
    with ThreadPoolExecutor(3) as threads:
        leader = threads.submit(group.wait, small.append(100))
        assert files.entered.acquire(timeout=60)
        waiters = [threads.submit(group.wait, small.append(100)) for _ in range(2)]
        while group.waiting < 2:
            pass
        small.disk.fail(errno.EIO, kind="flush")
        files.gate.set()
        assert [waiting.result(60) for waiting in (leader, *waiters)] == [False, False, False]
    assert not small.flags.writeable
    assert not group.wait(small.files.wrote_offset)


def test_a_service_round_flushes_bytes_without_a_waiter() -> None:
    small = SmallLog()
    group = grouped(small)
    end = small.append(100)
    assert group.step() == 10
    assert small.files.flushed_where == end


def test_with_a_pool_the_leader_commits_first() -> None:
    small = SmallLog()
    pool = TransientStorePool(1, 1 << 16)
    small.files = MappedFileQueue(small.disk, list(small.files.folders), 1 << 16, borrow=pool.borrow)
    group = grouped(small, pool=True)
    end = small.append(100)
    assert group.wait(end)
    assert (small.files.committed_where, small.files.flushed_where) == (end, end)


class SignalInterrupt(BaseException):
    """The exception of a signal handler."""


def interrupted_at(number: int, work: Callable[[], object]) -> bool:
    """Run ``work`` and interrupt it before the ``number``-th line of group commit; return False if it has fewer
    lines.
    """
    remaining_lines = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal remaining_lines
        code = frame.f_code
        if code.co_filename != group_commit.__file__ or not code.co_qualname.startswith(TRACED_CLASSES):
            return None
        # Python takes an interrupt where a call returns, never between the end of a with-block and its __exit__
        if event == "line" and not linecache.getline(group_commit.__file__, frame.f_lineno).lstrip().startswith(
            "with "
        ):
            remaining_lines -= 1
            if remaining_lines == 0:
                raise SignalInterrupt
        return trace

    trace_before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except SignalInterrupt:
        return True
    finally:
        sys.settrace(trace_before)
    return False


def idle(group: GroupCommit, small: SmallLog) -> bool:
    """Check that no waiter remains, and that the next put is served."""
    return group.wait(small.append(10)) and group.waiting == 0 and group._leader is None


def test_a_leader_may_be_interrupted_anywhere() -> None:
    small = SmallLog()
    group, number = grouped(small, timeout_ms=500), 1
    while interrupted_at(number, lambda: group.wait(small.append(10))):
        assert idle(group, small), f"interrupted before line {number}"
        number += 1
    assert number > 20


def test_a_round_of_the_service_may_be_interrupted_anywhere() -> None:
    small = SmallLog()
    group, number = grouped(small, timeout_ms=500), 1

    def work() -> None:
        small.append(10)
        group.step()

    while interrupted_at(number, work):
        assert idle(group, small), f"interrupted before line {number}"
        number += 1
    assert number > 20


@pytest.mark.parametrize("served", [True, False])
def test_a_follower_may_be_interrupted_anywhere(served: bool) -> None:
    """A waiter that was interrupted stayed in the queue and was made the leader, although it no longer ran. Every later
    put then waited for the full timeout and got FLUSH_DISK_TIMEOUT, forever.
    """
    number, went_on = 1, True
    while went_on:
        small = SmallLog(size=4096)
        files = small.files = GatedFiles(small)
        group = grouped(small, timeout_ms=60_000)  # longer than the timeouts below, so a lost wake-up fails the test
        with ThreadPoolExecutor(4) as threads:
            leader = threads.submit(group.wait, small.append(100 if served else 4096))
            assert files.entered.acquire(timeout=60)
            end = small.append(10)
            follower = threads.submit(interrupted_at, number, lambda end=end, group=group: group.wait(end))
            while group.waiting < 1 and not follower.done():
                pass
            waiters = [threads.submit(group.wait, small.append(10)) for _ in range(2)]
            while group.waiting < 2 and not follower.done():
                pass
            files.gate.set()
            went_on = follower.result(60)
            assert leader.result(60)
            assert [waiter.result(60) for waiter in waiters] == [True, True], f"interrupted before line {number}"
        assert idle(group, small), f"interrupted before line {number}"
        number += 1
    assert number > 10


class SignalAlarm(Exception):
    """The exception of this test's signal handler."""


def test_a_signal_that_ends_a_wait_for_the_disk_harms_no_later_put(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = from_mapping({"mappedFileSizeCommitLog": 1 << 16, "flushDiskType": "SYNC_FLUSH"})[0]
    gate, entered = threading.Event(), threading.Event()
    main, waiter_class = threading.current_thread(), group_commit._Waiter

    class AlarmBell:
        """A waiter's lock that raises the alarm while the test's own thread waits for it."""

        def __init__(self, bell: Any) -> None:
            self.bell = bell
            self.release = bell.release

        def acquire(self, timeout: float = -1) -> bool:
            if threading.current_thread() is main:
                signal.raise_signal(signal.SIGALRM)
            return bool(self.bell.acquire(timeout=timeout))

    def waiting(end: int) -> Any:
        sample = waiter_class(end)
        sample.bell = AlarmBell(sample.bell)  # type: ignore[assignment]
        return sample

    def ring(*_: object) -> None:
        raise SignalAlarm

    handler_before = signal.signal(signal.SIGALRM, ring)
    try:
        with MessageStore("/store", settings, disk=SimulatedDisk()) as store:
            log = store._services.log
            flush = log.flush

            def flush_at_gate(least_pages: int = 0) -> bool:
                entered.set()
                assert gate.wait(60)
                return flush(least_pages)

            monkeypatch.setattr(log, "flush", flush_at_gate)
            monkeypatch.setattr(group_commit, "_Waiter", waiting)
            leader = threading.Thread(target=lambda: store.put_message(Message("T", b"leads")), daemon=True)
            leader.start()
            assert entered.wait(60)
            with pytest.raises(SignalAlarm):
                store.put_message(Message("T", b"is interrupted"))
            gate.set()
            leader.join(60)
            monkeypatch.undo()
            for _ in range(3):
                assert store.put_message(Message("T", b"later")).status.name == "PUT_OK"
    finally:
        signal.signal(signal.SIGALRM, handler_before)
