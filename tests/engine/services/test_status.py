"""The status of running services: single flushes, waiting puts, paused services and their waiting work."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from log_files import SmallLog
from simulated_disk import SimulatedDisk

from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.mapped.power_loss import PowerLoss
from engine.message_store import MessageStore
from engine.services.flush import MAX_REMEMBERED_FLUSHES, LogFlush
from engine.services.group_commit import GroupCommit
from engine.services.service_thread import ServiceThread
from engine.services.status import read_activity
from engine.store.put_message import PutMessageStatus


def test_each_flush_that_moved_something_leaves_a_mark() -> None:
    small = SmallLog()
    log = LogFlush(small.files, small.checkpoint, small.flags)
    ends = [small.append(100)]
    log.flush()
    log.flush()
    ends.append(small.append(50))
    log.flush()
    assert [(mark.number, mark.to_offset, mark.bytes, mark.waiters) for mark in log.marks] == [
        (1, ends[0], 100, 0),
        (2, ends[1], 50, 0),
    ]
    for _ in range(MAX_REMEMBERED_FLUSHES):
        small.append(1)
        log.flush()
    assert (len(log.marks), log.marks[-1].number) == (MAX_REMEMBERED_FLUSHES, MAX_REMEMBERED_FLUSHES + 2)


def test_a_put_that_flushes_itself_counts_as_waiting() -> None:
    small = SmallLog()
    log = LogFlush(small.files, small.checkpoint, small.flags)
    group = GroupCommit(log, 5000)
    assert group.wait(small.append(100))
    small.append(100)
    group.step()
    assert [mark.waiters for mark in log.marks] == [1, 0]


def test_while_group_commit_is_paused_only_a_step_flushes() -> None:
    small = SmallLog()
    log = LogFlush(small.files, small.checkpoint, small.flags)
    group = GroupCommit(log, 20_000)
    group.hold(True)
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(group.wait, small.append(100)) for _ in range(2)]
        while group.waiting < 2:
            pass
        assert small.files.flushed_where == 0
        group.step()
        assert [item.result(20) for item in waiting] == [True, True]
    assert log.marks[-1].waiters == 2
    group.hold(False)
    assert group.wait(small.append(100))


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_store_reports_paused_services_and_waiting_work(tmp_path: Path, flush: str) -> None:
    config = MessageStoreConfig(flush_disk_type=flush, sync_flush_timeout=20, mapped_file_size_commit_log=1 << 20)
    with MessageStore(tmp_path, config) as store:
        store.services.pause("flush")
        result = store.put_message(Message("T", b"one"))
        assert (result.status is PutMessageStatus.FLUSH_DISK_TIMEOUT) == (flush == "SYNC_FLUSH")
        activity_before = read_activity(store.parts, store.services)
        assert (activity_before.services["flush"].paused, activity_before.services["reput"].paused) == (True, False)
        assert (activity_before.last_file, activity_before.file_size, activity_before.flushes) == (0, 1 << 20, ())
        store.flush()
        activity_after = read_activity(store.parts, store.services)
        assert activity_after.flushes[-1].to_offset == store.positions().wrote
        store.wait_dispatched()
        assert read_activity(store.parts, store.services).dispatched_units == 1
        store.services.step("flush")
        rounds = read_activity(store.parts, store.services).services["flush"].rounds
        assert rounds == activity_before.services["flush"].rounds + 1
        store.services.resume("flush")
        assert not read_activity(store.parts, store.services).services["flush"].paused
        second_statuses = (
            store.put_message(Message("T", b"two")).status for _ in range(200)
        )  # a busy machine takes over 20 ms
        assert PutMessageStatus.PUT_OK in second_statuses


def test_a_pool_reports_its_last_commit_and_its_contents(tmp_path: Path) -> None:
    config = MessageStoreConfig(transient_store_pool_enable=True, mapped_file_size_commit_log=1 << 20)
    with MessageStore(tmp_path, config) as store:
        store.services.pause("commit")
        result = store.put_message(Message("T", b"in the pool"))
        assert result.append is not None
        file = store.parts.files.files[0]
        unit = file.appended(0, result.append.size + 100)
        assert (len(unit), b"in the pool" in unit, file.read(0, 100)) == (result.append.size, True, b"")
        assert read_activity(store.parts, store.services).committed == (0, 0)
        store.services.log.commit_all()
        assert read_activity(store.parts, store.services).committed[1] == result.append.size
        assert file.appended(0, result.append.size) == unit == file.read(0, result.append.size)


def test_a_power_loss_ends_a_service_silently() -> None:
    class FailingService:
        name = "losing"

        def step(self) -> float:
            raise PowerLoss

    names: list[str] = []
    thread = ServiceThread(FailingService(), lambda name, _error: names.append(name))
    thread.start()
    assert thread.join(60)
    assert names == []


def test_a_failure_is_reported_until_it_ends() -> None:
    disk = SimulatedDisk()
    config = MessageStoreConfig(mapped_file_size_commit_log=4096)
    store = MessageStore("/store", config, disk=disk, services=False)
    assert store.put_message(Message("T", b"first")).ok
    store.tables.commit_consumer_offset("g", "T", 0, 1)
    disk.fail(errno.ENOSPC, kind="[crw]*")
    assert not store.put_message(Message("T", bytes(3980))).ok
    store.services.step("reput")
    store.services.step("persist")
    store.services.step("checkpoint")
    reported = {trouble.what: trouble.why for trouble in store.troubles()}
    assert reported.keys() == {
        "the log cannot grow",
        "dispatch waits",
        "tables are not saved",
        "the checkpoint is not written",
    }
    assert all("No space left on device" in why for why in reported.values())
    disk.heal()
    disk.used = 0.95
    for service in ("clean", "persist", "reput", "checkpoint"):
        store.services.step(service)
    (full,) = [item for item in store.troubles() if item.what != "the log cannot grow"]
    assert full.what == "messages are refused, disk full"
    assert "95%" in full.why
    disk.used = 0.5
    store.services.step("clean")
    assert store.put_message(Message("T", b"last")).ok
    assert store.troubles() == ()
    store.close()


def test_a_failed_append_is_reported_until_one_succeeds() -> None:
    disk = SimulatedDisk()
    store = MessageStore("/store", disk=disk, services=False)
    disk.fail(errno.ENOSPC, kind="reserve")
    assert not store.put_message(Message("T", b"refused")).ok
    assert [trouble.what for trouble in store.troubles()] == ["messages cannot be stored"]
    disk.heal()
    assert store.put_message(Message("T", b"stored")).ok
    assert store.troubles() == ()
    store.close()
