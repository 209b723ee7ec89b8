"""Cleaning: which files are deleted when, in which steps, and the effects."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from simulated_disk import SimulatedDisk

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.message_store import MessageStore
from engine.store.put_message import PutMessageStatus

ROOT = Path("/store")
HOUR = 3_600_000
INTERVAL = 10_000
SMALL = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 20 * 10,
    "maxHashSlotNum": 100,
    "maxIndexNum": 30,
    "fileReservedTime": 72,
    "deleteWhen": "04",
}


class Clock:
    """A clock fixed at an hour of the day, local time, until the test moves it."""

    def __init__(self, hour: int = 12) -> None:
        noon = time.mktime((2026, 3, 10, hour, 0, 0, 0, 0, -1))
        self.now = int(noon * 1000)

    def __call__(self) -> int:
        return self.now


def opened(clock: Clock, disk: SimulatedDisk | None = None, **options: Any) -> tuple[MessageStore, SimulatedDisk]:
    disk = disk or SimulatedDisk(clock=clock)
    store = MessageStore(ROOT, from_mapping({**SMALL, **options})[0], disk=disk, clock=clock, services=False)
    return store, disk


def put(store: MessageStore, count: int) -> None:
    for number in range(count):
        assert store.put_message(Message("Orders", b"x" * 500, keys=f"k{number}")).ok
    store.wait_dispatched()
    store.flush()


def log_files(disk: SimulatedDisk) -> list[int]:
    return [int(name) for name, _ in disk.names(ROOT / "commitlog")]


def run(store: MessageStore) -> list[float]:
    """Return the pauses of one complete run."""
    pauses = []
    while not pauses or pauses[-1] != INTERVAL:
        pauses.append(store.services.step("clean"))
    return pauses


def test_old_files_are_deleted_at_their_hour_ten_at_a_time() -> None:
    clock = Clock()
    store, disk = opened(clock)
    put(store, 100)
    files_before = log_files(disk)
    assert len(files_before) > 14
    clock.now += 73 * HOUR
    clock.now += ((4 - time.localtime(clock.now / 1000).tm_hour) % 24 - 1) % 24 * HOUR
    assert run(store) == [INTERVAL]
    assert log_files(disk) == files_before
    clock.now += HOUR
    assert time.localtime(clock.now / 1000).tm_hour == 4
    pauses = run(store)
    assert pauses.count(100) >= 9
    assert log_files(disk) == files_before[10:]
    run(store)
    run(store)
    assert log_files(disk) == files_before[-1:]
    assert store.counters()["clean.logFiles"] == len(files_before) - 1
    store.abandon()


def test_queues_index_and_minimums_follow() -> None:
    clock = Clock()
    store, disk = opened(clock)
    put(store, 100)
    assert len(disk.names(ROOT / "index")) == 4
    clock.now += 100 * HOUR
    store.services.delete_expired_files()
    run(store)
    log_min = store.positions().min
    assert log_min == 10 * 4096
    first_offset = store.min_offset_in_queue("Orders", 0)
    result = store.get_message("g", "Orders", 0, first_offset, 1)
    assert result is not None
    with result:
        assert result.units()[0].physical_offset == log_min
    assert int(disk.names(ROOT / "consumequeue/Orders/0")[0][0]) == first_offset * 20 // 200 * 200
    assert len(disk.names(ROOT / "index")) == 2
    assert store.get_message("g", "Orders", 0, 0, 1).status.name == "OFFSET_TOO_SMALL"  # type: ignore[union-attr]
    store.abandon()


def test_a_manual_deletion_lasts_twenty_runs_and_respects_age() -> None:
    clock = Clock()
    store, disk = opened(clock)
    put(store, 30)
    files_before = log_files(disk)
    store.services.delete_expired_files()
    for _ in range(20):
        run(store)
    assert log_files(disk) == files_before
    clock.now += 100 * HOUR
    if time.localtime(clock.now / 1000).tm_hour == 4:
        clock.now += HOUR
    run(store)
    assert log_files(disk) == files_before
    store.services.delete_expired_files()
    run(store)
    assert log_files(disk) == files_before[-1:]
    store.abandon()


@pytest.mark.parametrize(
    ("used", "young_go", "full"), [(0.74, False, False), (0.80, False, False), (0.86, True, False), (0.91, True, True)]
)
def test_rules_of_a_disk_that_fills_up(
    monkeypatch: pytest.MonkeyPatch, used: float, young_go: bool, full: bool
) -> None:
    clock = Clock()
    store, disk = opened(clock)
    put(store, 30)
    monkeypatch.setattr(disk, "usage", lambda _path: used)
    files_before = log_files(disk)
    run(store)
    assert (log_files(disk) != files_before) == young_go
    status = store.put_message(Message("Orders", b"x")).status
    assert status is (PutMessageStatus.SERVICE_NOT_AVAILABLE if full else PutMessageStatus.PUT_OK)
    monkeypatch.setattr(disk, "usage", lambda _path: 0.5)
    run(store)
    assert store.put_message(Message("Orders", b"x")).ok
    store.abandon()


def test_over_three_quarters_of_the_disk_old_files_are_deleted_at_any_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    store, disk = opened(clock)
    put(store, 30)
    clock.now += 96 * HOUR
    run(store)
    files_before = log_files(disk)
    monkeypatch.setattr(disk, "usage", lambda _path: 0.76)
    run(store)
    assert log_files(disk) == files_before[-1:]
    store.abandon()


def test_a_referenced_file_is_deleted_after_its_release() -> None:
    clock = Clock()
    store, disk = opened(clock)
    put(store, 30)
    files_before = log_files(disk)
    lent = store.get_message("g", "Orders", 0, 0, 1)
    assert lent is not None
    clock.now += 100 * HOUR
    store.services.delete_expired_files()
    run(store)
    assert log_files(disk) == files_before
    assert bytes(lent.messages[0])[4:8] == bytes.fromhex("daa320a7")
    assert store.min_offset_in_queue("Orders", 0) > 0  # readers no longer see it
    lent.release()
    clock.now += 121_000
    run(store)
    assert files_before[0] not in log_files(disk)
    store.abandon()


def test_shared_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    store, disk = opened(clock, replicasPerDiskPartition=2)
    put(store, 30)
    monkeypatch.setattr(disk, "usage", lambda _path: 0.5)
    size = sum(4096 for _ in log_files(disk))
    monkeypatch.setattr(disk, "total", lambda _path: 2 * size * 100)
    files_before = log_files(disk)
    run(store)
    assert log_files(disk) == files_before
    monkeypatch.setattr(disk, "total", lambda _path: 2 * size)
    run(store)
    assert log_files(disk) == files_before[-1:]
    store.abandon()


def test_a_store_of_4_9_checks_the_disk_at_once() -> None:
    """On a nearly full disk a broker of 5.x accepts messages for a minute, one of 4.9 for a second."""
    disk = SimulatedDisk()
    store = MessageStore("/store", disk=disk, release="4.9", services=False)
    assert store.put_message(Message("T", b"before")).ok
    disk.used = 0.95
    assert store.services.step("space") == 10_000
    assert store.put_message(Message("T", b"refused")).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    disk.used = 0.5
    store.services.step("space")
    assert store.put_message(Message("T", b"again")).ok
    store.close()
    assert "space" not in MessageStore("/other", disk=SimulatedDisk(), services=False).services.names
