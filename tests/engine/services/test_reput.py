"""The dispatch service: it dispatches in order, up to the confirmed offset, over damage, and again after a failure."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from simulated_disk import SimulatedDisk

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.message_store import MessageStore
from engine.services import reput

ROOT = Path("/store")
SMALL = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 20 * 50,
    "maxHashSlotNum": 100,
    "maxIndexNum": 4000,
}


def opened(disk: SimulatedDisk | None = None, **options: Any) -> MessageStore:
    return MessageStore(ROOT, from_mapping({**SMALL, **options})[0], disk=disk or SimulatedDisk(), services=False)


def put(store: MessageStore, count: int, body: int = 100) -> list[int]:
    offsets = []
    for number in range(count):
        prepared = 4 if number % 7 == 3 else 0
        message = Message("Orders", b"x" * body, queue_id=number % 2, keys=f"k{number}", sys_flag=prepared)
        result = store.put_message(message)
        assert result.append is not None
        offsets.append(result.append.physical_offset)
    return offsets


def until_still(store: MessageStore) -> int:
    rounds = 0
    while True:
        dispatched_before = store.positions().dispatched
        store.services.step("reput")
        if store.positions().dispatched == dispatched_before:
            return rounds
        rounds += 1


@pytest.mark.parametrize("bulk_from", [1, 1 << 40])
def test_singly_and_by_the_block_queues_and_index_are_the_same(monkeypatch: pytest.MonkeyPatch, bulk_from: int) -> None:
    monkeypatch.setattr(reput, "MIN_BULK_BYTES", bulk_from)
    monkeypatch.setattr(reput, "LOAD_COLUMNS_BYTES", bulk_from)
    disk = SimulatedDisk()
    with opened(disk) as store:
        put(store, 900)
        rounds = until_still(store)
        positions = store.positions()
        assert (positions.behind, positions.dispatched) == (0, positions.wrote)
        assert store.counters()["dispatch.units"] == 900
        assert rounds < 60
    assert _entries(disk) == [386, 385]


def _entries(disk: SimulatedDisk) -> list[int]:
    totals = []
    for queue in (0, 1):
        raw = b"".join(
            disk.read_file(ROOT / "consumequeue" / "Orders" / str(queue) / name) or b""
            for name, _ in disk.names(ROOT / "consumequeue" / "Orders" / str(queue))
        )
        sizes = [raw[position + 8 : position + 12] for position in range(0, len(raw), 20)]
        totals.append(sum(size != bytes(4) for size in sizes))
    return totals


def test_the_pause_grows_while_nothing_happens() -> None:
    store = opened()
    pauses = [store.services.step("reput") for _ in range(6)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == reput.MAX_PAUSE_MS
    store.abandon()


def test_damage_in_the_log_is_skipped_up_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimulatedDisk()
    store = opened(disk)
    offsets = put(store, 20)
    disk.open(ROOT / "commitlog" / f"{0:020d}", 1 << 16).write(offsets[10] + 4, b"\1\2\3\4")
    until_still(store)
    positions = store.positions()
    assert positions.dispatched == positions.wrote
    assert store.counters()["dispatch.units"] == 10
    assert store.counters()["dispatch.skippedBytes"] == positions.wrote - offsets[10]
    assert "dispatch skips" in caplog.text
    put(store, 1)
    until_still(store)
    assert store.counters()["dispatch.units"] == 11
    store.abandon()


def test_a_failing_queue_write_is_tried_thirty_times_then_the_store_stops() -> None:
    disk = SimulatedDisk()
    store = opened(disk)
    put(store, 3)
    disk.fail(errno.EIO, kind="write", path="*consumequeue*")
    for _ in range(reput.QUEUE_TRIES - 1):
        assert store.services.step("reput") == 1000
        assert store.flags.writeable
    store.services.step("reput")
    assert not store.flags.writeable
    assert "queue write error" in store.flags.why
    store.abandon()


def test_only_the_service_counts_the_tries() -> None:
    """A broker with waiting consumers dispatches after each put. While the disk was full, thirty puts were thirty
    attempts, and the store refused messages after a few milliseconds, until its restart.
    """
    disk = SimulatedDisk()
    store = opened(disk)
    put(store, 3)
    disk.fail(errno.ENOSPC, kind="write", path="*consumequeue*")
    for _ in range(2 * reput.QUEUE_TRIES):
        store.services.dispatch_now()
    assert store.flags.writeable
    assert [trouble.what for trouble in store.troubles()] == ["dispatch waits"]
    disk.heal()
    store.services.step("reput")
    assert store.troubles() == ()
    put(store, 1)
    store.services.dispatch_now()
    assert store.counters()["dispatch.units"] == 4
    store.close()


def test_a_temporary_failure_loses_nothing() -> None:
    disk = SimulatedDisk()
    store = opened(disk)
    put(store, 300)
    disk.fail(errno.ENOSPC, kind="write", path="*consumequeue*", after=3, times=2)
    while store.positions().behind:
        store.services.step("reput")
    assert store.flags.writeable
    assert store.max_offset_in_queue("Orders", 0) + store.max_offset_in_queue("Orders", 1) == sum(
        number % 7 != 3 for number in range(300)
    )
    store.close()
    assert not disk.exists(ROOT / "abort")


def test_waiting_without_progress_ends_at_the_timeout() -> None:
    store = opened(flushDiskType="SYNC_FLUSH")
    put(store, 1)
    assert store.wait_dispatched(1000)
    service = store._services.reput
    assert not service.wait_for(1 << 40, 5)
    store.abandon()


def test_dispatch_waits_for_an_uncommitted_pool_file() -> None:
    """If all buffers are borrowed, the next file is written directly, while the file before it waits for its commit."""
    store = opened(transientStorePoolEnable=True, transientStorePoolSize=1)
    put(store, 900)
    positions = store.positions()
    assert positions.buffers_left == 0
    until_still(store)
    assert store.positions().dispatched == 0
    store.services.log.commit_all()
    until_still(store)
    assert (store.positions().dispatched, store.counters()["dispatch.units"]) == (positions.wrote, 900)
    store.close()
