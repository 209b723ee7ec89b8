"""MessageStore: opening, puts, dispatch, positions, and the state after closing."""

from __future__ import annotations

import doctest
import errno
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from columns_of import columns_of
from simulated_disk import SimulatedDisk

import engine.message_store
from engine.codec.encode import Message
from engine.config import MessageStoreConfig, from_mapping
from engine.errors import NotWriteable, StoreError, StoreLocked, UsageError
from engine.message_store import MessageStore
from engine.store.put_message import PutMessageStatus
from engine.store.put_raw_units import append_replicated

SMALL = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 20 * 50,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
ROOT = Path("/store")
OK = PutMessageStatus.PUT_OK


def config(**options: Any) -> MessageStoreConfig:
    return from_mapping({**SMALL, **options})[0]


def message(number: int, body: int = 100, **options: Any) -> Message:
    return Message("Orders", bytes([number % 256]) * body, queue_id=number % 3, keys=f"k{number}", tags="T", **options)


def put(store: MessageStore, count: int, start: int = 0) -> list[int]:
    offsets = []
    for number in range(start, start + count):
        result = store.put_message(message(number))
        assert result.status is OK
        assert result.append is not None
        offsets.append(result.append.physical_offset)
    return offsets


def test_the_example_of_the_module_works(tmp_path: Path) -> None:
    globs = {"path": tmp_path, "MessageStore": MessageStore, "Message": Message}
    text = doctest.DocTestParser().get_doctest(engine.message_store.__doc__ or "", globs, "example", None, 0)
    assert len(text.examples) == 2
    assert doctest.DocTestRunner(verbose=False).run(text).failed == 0


@pytest.mark.parametrize("release", ["5.3", "4.9"])
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_messages_survive_closing_and_opening(tmp_path: Path, release: Any, flush: str) -> None:
    settings = config(flushDiskType=flush)
    with MessageStore(tmp_path / "store", settings, release=release) as store:
        offsets = put(store, 700)
        assert store.wait_dispatched()
        positions = store.positions()
        assert (positions.dispatched, positions.confirm, positions.behind) == (positions.wrote, positions.wrote, 0)
        assert (positions.queue_max, positions.index_end) == (positions.wrote, offsets[-1])
        assert positions.put_latency.count == 700
        if flush == "SYNC_FLUSH":
            assert positions.flushed == positions.wrote
    assert not (tmp_path / "store" / "abort").exists()
    with MessageStore(tmp_path / "store", settings, release=release) as store:
        assert store.recovery_plan.exit == "normal"
        assert store.positions().wrote == positions.wrote
        assert [store.max_offset_in_queue("Orders", queue) for queue in (0, 1, 2, 3)] == [234, 233, 233, 0]
        unit = store.look_message_by_offset(offsets[600])
        assert unit is not None
        assert (unit.queue_offset, unit.body) == (200, bytes([600 % 256]) * 100)
        with store.query_message("Orders", "k300") as query_message:
            assert [unit.body for unit in query_message.units()] == [bytes([300 % 256]) * 100]
        got = store.get_message("g", "Orders", 1, 200, 5)
        assert got is not None
        with got:
            assert [unit.queue_offset for unit in got.units()] == [200, 201, 202, 203, 204]
        result = store.put_message(message(700))
        assert result.append is not None
        assert (result.append.physical_offset, result.append.queue_offset) == (positions.wrote, 233)


def test_without_services_every_step_is_explicit() -> None:
    disk = SimulatedDisk()
    store = MessageStore(ROOT, config(), disk=disk, services=False)
    put(store, 10)
    positions = store.positions()
    assert (positions.dispatched, positions.flushed, positions.behind) == (0, 0, positions.wrote)
    assert store.get_message("g", "Orders", 0, 0).status.name == "NO_MESSAGE_IN_QUEUE"  # type: ignore[union-attr]
    store.services.step("reput")
    assert store.positions().dispatched == positions.wrote
    assert store.flush() == positions.wrote
    assert store.positions().unflushed == 0
    store.close()
    store.close()
    assert not disk.exists(ROOT / "abort")


def test_the_abort_file_exists_while_a_store_is_open_and_after_abandoning_it() -> None:
    disk = SimulatedDisk()
    store = MessageStore(ROOT, config(), disk=disk, services=False)
    assert disk.exists(ROOT / "abort")
    offsets = put(store, 10)
    store.abandon()
    assert disk.exists(ROOT / "abort")
    with MessageStore(ROOT, config(), disk=disk, services=False) as second_store:
        assert second_store.recovery_plan.exit == "abnormal"
        assert second_store.look_message_by_offset(offsets[-1]) is not None
        assert second_store.max_offset_in_queue("Orders", 0) == 4
    assert not disk.exists(ROOT / "abort")


def test_under_sync_flush_nothing_unflushed_is_dispatched() -> None:
    store = MessageStore(ROOT, config(flushDiskType="SYNC_FLUSH"), disk=SimulatedDisk(), services=False)
    put(store, 1)
    first_positions = store.positions()
    assert first_positions.flushed == first_positions.wrote
    waits_not = Message("Orders", b"x", properties={"WAIT": "false"})
    assert store.put_message(waits_not).status is OK
    store.services.step("reput")
    positions = store.positions()
    assert (positions.flushed, positions.confirm, positions.dispatched) == (
        first_positions.wrote,
        first_positions.wrote,
        first_positions.wrote,
    )
    assert positions.wrote > first_positions.wrote
    store.services.step("flush")
    store.services.step("reput")
    assert store.positions().dispatched == positions.wrote
    store.close()


def test_4_9_dispatches_unflushed_units() -> None:
    settings = config(flushDiskType="SYNC_FLUSH")
    store = MessageStore(ROOT, settings, disk=SimulatedDisk(), services=False, release="4.9")
    store.put_message(Message("Orders", b"x", properties={"WAIT": "false"}))
    store.services.step("reput")
    positions = store.positions()
    assert (positions.flushed, positions.dispatched) == (0, positions.wrote)
    store.close()


def test_a_failed_flush_stops_the_store_with_a_reason() -> None:
    disk = SimulatedDisk()
    store = MessageStore(ROOT, config(flushDiskType="SYNC_FLUSH"), disk=disk, services=False)
    put(store, 3)
    disk.fail(errno.EIO, kind="flush", times=1)
    late = store.put_message(message(3))
    assert (late.status, late.ok) == (PutMessageStatus.FLUSH_DISK_TIMEOUT, True)
    refused = store.put_message(message(4))
    assert (refused.status, refused.ok) == (PutMessageStatus.SERVICE_NOT_AVAILABLE, False)
    assert "flush of the commit log failed" in store.flags.why
    assert store.counters()["put.SERVICE_NOT_AVAILABLE"] == 1
    store.close()
    assert disk.exists(ROOT / "abort")


def test_a_closed_store_refuses_puts_and_reads(tmp_path: Path) -> None:
    store = MessageStore(tmp_path, config())
    store.close()
    assert store.put_message(message(1)).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert store.get_message("g", "Orders", 0, 0) is None


def test_two_stores_on_one_directory_exclude_each_other(tmp_path: Path) -> None:
    with MessageStore(tmp_path, config()), pytest.raises(StoreLocked):
        MessageStore(tmp_path, config())
    with MessageStore(tmp_path, config()):
        pass


@pytest.mark.parametrize("key", ["storeType", "enableDLegerCommitLog"])
def test_unsupported_kinds_of_stores_are_refused(tmp_path: Path, key: str) -> None:
    value: Any = {"storeType": "defaultRocksDB", "enableDLegerCommitLog": True}[key]
    with pytest.raises(StoreError, match=key):
        MessageStore(tmp_path, config(**{key: value}))
    with MessageStore(tmp_path, config()):  # the lock was released
        pass


def test_a_slave_refuses_puts(tmp_path: Path) -> None:
    with MessageStore(tmp_path, config(brokerRole="SLAVE")) as store:
        assert store.put_message(message(1)).status is PutMessageStatus.SERVICE_NOT_AVAILABLE


def test_a_slave_accepts_replicated_bytes_until_a_flag_forbids_it(tmp_path: Path) -> None:
    with MessageStore(tmp_path / "master", config()) as master:
        append = master.put_message(message(1)).append
        assert append is not None
        unit = master.parts.files.read(0, append.size)
    with MessageStore(tmp_path / "slave", config(brokerRole="SLAVE")) as store:
        assert append_replicated(store.parts.commit_log, 0, unit, 1) == len(unit)
        with pytest.raises(NotWriteable):
            store.parts.commit_log.append_raw(unit)
        store.flags.raise_flag(1 << 4, "the disk is full")
        with pytest.raises(NotWriteable):
            append_replicated(store.parts.commit_log, len(unit), unit, 1)
        assert store.put_message(message(1)).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
        store.flags.clear(1 << 4)
        assert store.put_message(message(1)).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
        assert append_replicated(store.parts.commit_log, len(unit), unit, 1) == 2 * len(unit)


def test_puts_of_many_messages_write_the_bytes_of_single_puts() -> None:
    def clock() -> int:
        return 1_700_000_000_000

    messages = [message(number, born_timestamp=5) for number in range(900)]
    columns = columns_of(messages)
    ways: list[Callable[[MessageStore], bool]] = [
        lambda store: all(store.put_message(item).ok for item in messages),
        lambda store: store.put_messages(messages).ok,
        lambda store: store.append_columns(columns).ok,
    ]
    disks = [SimulatedDisk() for _ in ways]
    for disk, way in zip(disks, ways, strict=True):
        with MessageStore(ROOT, config(), disk=disk, clock=clock, services=False) as store:
            assert way(store)
    for folder in ("commitlog", "consumequeue/Orders/0", "consumequeue/Orders/2"):
        names = disks[0].names(ROOT / folder)
        for disk in disks[1:]:
            assert names == disk.names(ROOT / folder)
            for name, _ in names:
                assert disks[0].read_file(ROOT / folder / name) == disk.read_file(ROOT / folder / name)


def test_the_transient_pool_is_committed_before_it_is_read() -> None:
    settings = config(transientStorePoolEnable=True, transientStorePoolSize=3)
    store = MessageStore(ROOT, settings, disk=SimulatedDisk(), services=False)
    put(store, 5)
    positions = store.positions()
    assert (positions.committed, positions.buffers_left) == (0, 2)
    assert positions.wrote > 0
    assert store.services.log.commit_all() == positions.wrote
    store.services.step("reput")
    assert store.positions().dispatched == positions.wrote
    assert store.positions().flushed == 0
    store.close()


def test_topics_are_deleted_with_their_queues() -> None:
    disk = SimulatedDisk()
    with MessageStore(ROOT, config(), disk=disk, services=False) as store:
        store.tables.create_topic("Orders", 3)
        put(store, 30)
        store.wait_dispatched()
        assert disk.folders(ROOT / "consumequeue") == ["Orders"]
        assert store.delete_topics(["Orders", "unknown"]) == 1
        assert disk.folders(ROOT / "consumequeue") == []
        assert store.tables.topics() == {}
        result = store.put_message(message(0))
        assert result.append is not None
        assert result.append.queue_offset == 0


def test_services_can_be_paused_and_stepped(tmp_path: Path) -> None:
    with MessageStore(tmp_path, config()) as store:
        assert set(store.services.names) == {
            "allocate",
            "reput",
            "flush",
            "queues",
            "checkpoint",
            "index",
            "clean",
            "persist",
        }
        store.services.pause("reput")
        put(store, 5)
        assert store.positions().dispatched == 0
        store.services.step("reput")
        assert store.positions().behind == 0
        store.services.resume("reput")
        put(store, 5)
        assert store.wait_dispatched()
        with pytest.raises(UsageError, match="expected a service of"):
            store.services.step("nothing")


def test_positions_are_consistent_while_threads_put(tmp_path: Path) -> None:
    with MessageStore(tmp_path, config(flushDiskType="SYNC_FLUSH", mappedFileSizeCommitLog=1 << 18)) as store:
        threads = [threading.Thread(target=put, args=(store, 100, 100 * n)) for n in range(4)]
        for thread in threads:
            thread.start()
        alive = True
        while alive:
            alive = any(thread.is_alive() for thread in threads)
            positions = store.positions()
            assert positions.dispatched <= positions.confirm
            assert positions.flushed <= positions.committed <= positions.wrote
        for thread in threads:
            thread.join()
        assert store.wait_dispatched()
        assert sum(store.max_offset_in_queue("Orders", queue) for queue in range(3)) == 400
        assert store.positions().put_latency.count == 400


def test_unused_preallocated_files_are_removed_at_closing(tmp_path: Path) -> None:
    with MessageStore(tmp_path, config()) as store:
        put(store, 1)
    assert [path.name for path in (tmp_path / "commitlog").iterdir()] == ["0" * 20]


def test_page_cache_content_of_a_killed_process_is_flushed_before_it_is_readable() -> None:
    """Recovery treated the log's end as flushed: a reader could see messages that a power loss then removed."""
    disk = SimulatedDisk()
    store = MessageStore(ROOT, config(), disk=disk, services=False)
    offsets = put(store, 1000)
    store.abandon()
    second_store = MessageStore(ROOT, config(), disk=disk, services=False)
    assert second_store.positions().flushed == second_store.positions().wrote
    second_store.abandon()
    bare = disk.after_power_loss(random.Random(1), keep=0.0)
    with MessageStore(ROOT, config(), disk=bare, services=False) as message_store:
        assert message_store.look_message_by_offset(offsets[-1]) is not None
        assert sum(message_store.max_offset_in_queue("Orders", queue) for queue in range(3)) == 1000


def test_warnings_are_not_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import logging, engine.message_store\nlogging.getLogger('engine.services.reput').warning('nobody asked')\n"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], timeout=60)
    assert capfd.readouterr() == ("", "")


def test_a_message_is_found_by_its_unique_key_and_by_its_offset_id() -> None:
    with MessageStore(ROOT, config(), disk=SimulatedDisk(), services=False) as store:
        results = [store.put_message(message(number, unique_key=f"U{number}")) for number in range(8)]
        store.services.step("reput")
        query = store.query_by_unique_key("Orders", "U3")
        assert query is not None
        assert (query.unique_key, query.body) == ("U3", bytes([3]) * 100)
        assert store.query_by_unique_key("Orders", "U9") is None
        assert store.query_by_unique_key("Others", "U3") is None
        appended = results[5].append
        assert appended is not None
        same = store.query_by_offset_id(appended.msg_id)
        assert same is not None
        assert (same.offset, same.body, same.keys) == (appended.physical_offset, bytes([5]) * 100, ["k5"])
        assert store.query_by_offset_id("no id") is None


@pytest.mark.parametrize("release", ["4.9", "5.3"])
def test_recovery_of_4_9_dispatches_delayed_messages_without_their_time(release: Any) -> None:
    """4.9 reads its delay levels after recovery, so a queue that lagged in a crash got tags codes instead of delivery
    times, as in the real store. Ours wrote the times.
    """
    disk = SimulatedDisk()
    store = MessageStore(ROOT, config(), disk=disk, release=release, services=False)
    put_first = store.put_message(Message("Orders", b"x", properties={"DELAY": "3", "TAGS": "T"})).append
    assert put_first is not None
    store.abandon()
    with MessageStore(ROOT, config(), disk=disk, release=release, services=False) as second_store:
        queue = second_store._parts.queues.queue("SCHEDULE_TOPIC_XXXX", 2)
        assert queue is not None
        (code,) = queue.read(0, 1)["tags_code"].tolist()
    assert code == (ord("T") if release == "4.9" else put_first.store_timestamp + 10_000)


def test_queue_entries_of_a_killed_process_are_flushed_again() -> None:
    """Queue entries present after a kill counted as flushed. A power loss removed them, although the checkpoint had
    moved past them.
    """
    disk = SimulatedDisk()
    with MessageStore(ROOT, config(), disk=disk, services=False) as store:
        put(store, 30)
    store = MessageStore(ROOT, config(), disk=disk, services=False)
    put(store, 30)
    store.wait_dispatched()
    store.flush()
    store.abandon()
    second_store = MessageStore(ROOT, config(), disk=disk, services=False)
    second_store.parts.queues.flush()
    after_power_loss = disk.after_power_loss(random.Random(1), 0.0)
    for queue in second_store.parts.queues:
        for start in queue.files.starts:
            path = queue.files.path(start)
            assert after_power_loss.read_file(path) == disk.read_file(path)
    second_store.abandon()


def test_stores_and_results_have_a_useful_repr(tmp_path: Path) -> None:
    """``print(store)`` and ``print(store.query_message(...))`` printed a memory address."""
    with MessageStore(tmp_path / "store", release="5.3") as store:
        assert store.put_message(Message("Orders", b"tea", keys="order-1")).status is PutMessageStatus.PUT_OK
        assert store.wait_dispatched()
        end = store.positions().wrote
        assert repr(store) == f"MessageStore({str(tmp_path / 'store')!r}, release 5.3, 0 to {end})"
        with store.query_message("Orders", "order-1") as result:
            assert repr(result) == "QueryMessageResult(1 messages at [0])"
        assert "put_latency=Histogram(1 durations" in repr(store.positions())
    assert repr(store).endswith("release 5.3, closed)")
