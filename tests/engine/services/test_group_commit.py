"""Group commit: one flush serves all that wait, a lone producer flushes itself, nobody waits beyond the time-out."""

from __future__ import annotations

import errno
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from log_files import SmallLog

from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.simulated_disk import SimulatedDisk
from engine.mapped.transient_pool import TransientStorePool
from engine.services.flush import LogFlush
from engine.services.group_commit import IDLE_MS, GroupCommit
from engine.services.short_turns import INTERVAL, Crowd


def made(small: SmallLog, timeout_ms: int = 5000, pool: bool = False) -> GroupCommit:
    return GroupCommit(LogFlush(small.files, small.checkpoint, small.flags), timeout_ms, pool=pool)


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
        assert self.gate.wait(20)
        return super().flush(least_pages)


def test_a_lone_producer_flushes_itself() -> None:
    small = SmallLog()
    group = made(small)
    end = small.append(100, 7)
    assert group.wait(end)
    assert (small.files.flushed_where, small.checkpoint.physic) == (end, 7)
    calls = small.disk.calls
    assert group.wait(end)
    assert small.disk.calls == calls


@pytest.mark.parametrize("dense", [False, True])
def test_turns_are_short_while_somebody_waits_in_a_crowd(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight readers that never paused left dozens of some thousand puts a second: each flush ended with a long wait
    for the interpreter.
    """
    small = SmallLog()
    group, before = made(small), sys.getswitchinterval()
    monkeypatch.setattr(Crowd, "is_dense", dense)
    seen: list[float] = []
    flush = MappedFileQueue.flush

    def watched(files: MappedFileQueue, least_pages: int) -> bool:
        seen.append(sys.getswitchinterval())
        return flush(files, least_pages)

    monkeypatch.setattr(MappedFileQueue, "flush", watched)
    assert group.wait(small.append(100))
    assert seen == [pytest.approx(INTERVAL if dense else before)]
    assert sys.getswitchinterval() == before


def test_the_service_s_thread_tells_the_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Crowd, "wakes", lambda _: told.append("wakes"))
    monkeypatch.setattr(Crowd, "sleeps", lambda _, seconds: told.append(f"sleeps {seconds}"))
    small = SmallLog()
    group = made(small)
    small.append(100)
    assert group.step() == IDLE_MS
    assert told == ["wakes", "sleeps 0.01"]


def test_one_flush_serves_all_that_wait() -> None:
    small = SmallLog()
    files = small.files = GatedFiles(small)
    group = made(small)
    with ThreadPoolExecutor(9) as threads:
        first = threads.submit(group.wait, small.append(100))
        assert files.entered.acquire(timeout=20)
        others = [threads.submit(group.wait, small.append(100)) for _ in range(8)]
        while group.waiting < 8:
            pass
        files.gate.set()
        assert first.result(20)
        assert all(other.result(20) for other in others)
    assert files.count == 1
    assert group.waiting == 0


def test_those_whom_the_flush_did_not_reach_lead_the_next_one() -> None:
    small = SmallLog(size=4096)
    files = small.files = GatedFiles(small)
    group = made(small)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(group.wait, small.append(4096))
        assert files.entered.acquire(timeout=20)
        others = [threads.submit(group.wait, small.append(100)) for _ in range(2)]
        while group.waiting < 2:
            pass
        files.gate.set()
        assert first.result(20)
        assert [other.result(20) for other in others] == [True, True]
    assert files.count == 2
    assert small.files.flushed_where == 4096 + 200


def test_a_follower_waits_no_longer_than_the_time_out() -> None:
    small = SmallLog()
    files = small.files = GatedFiles(small)
    group = made(small, timeout_ms=30)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(group.wait, small.append(100))
        assert files.entered.acquire(timeout=20)
        assert not threads.submit(group.wait, small.append(100)).result(20)
        assert group.waiting == 0
        files.gate.set()
        assert not first.result(20)  # its own flush took longer than the time-out


def test_a_slow_disk_is_left_to_the_service() -> None:
    small = SmallLog(disk=SimulatedDisk())
    group = made(small, timeout_ms=40)
    rung: list[bool] = []
    group.ring = lambda: rung.append(True)
    small.disk.slow(20, "flush")
    assert group.wait(small.append(100))
    assert not group.wait(small.append(100))  # nobody flushes for it here
    assert rung
    group.step()
    assert small.files.flushed_where == small.files.wrote_offset


def test_a_failed_flush_answers_everybody_and_stops_the_store() -> None:
    small = SmallLog()
    files = small.files = GatedFiles(small)
    group = made(small)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(group.wait, small.append(100))
        assert files.entered.acquire(timeout=20)
        others = [threads.submit(group.wait, small.append(100)) for _ in range(2)]
        while group.waiting < 2:
            pass
        small.disk.fail(errno.EIO, kind="flush")
        files.gate.set()
        assert [waiting.result(20) for waiting in (first, *others)] == [False, False, False]
    assert not small.flags.writeable
    assert not group.wait(small.files.wrote_offset)


def test_a_round_of_the_service_flushes_what_nobody_waits_for() -> None:
    small = SmallLog()
    group = made(small)
    end = small.append(100)
    assert group.step() == 10
    assert small.files.flushed_where == end


def test_with_a_pool_the_leader_commits_first() -> None:
    small = SmallLog()
    pool = TransientStorePool(1, 1 << 16)
    small.files = MappedFileQueue(small.disk, list(small.files.folders), 1 << 16, borrow=pool.borrow)
    group = made(small, pool=True)
    end = small.append(100)
    assert group.wait(end)
    assert (small.files.committed_where, small.files.flushed_where) == (end, end)
