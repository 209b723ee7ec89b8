"""A full disk, a broken one, a slow one, no rights, a second engine, a clock that jumps, and a crowd.

In all these surroundings a store answers with a status or an ``OSError``, continues if possible, names the reason if
not, and its messages acknowledged under SYNC_FLUSH survive a power loss afterwards.
"""

from __future__ import annotations

import errno
import logging
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import replace

import pytest
from power_loss import MODES, ROOT, SMALL, Clock, PutLedger, StoreLifetime, check, verify
from simulated_disk import SimulatedDisk
from unprivileged_user import as_nobody

from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.errors import StoreLocked
from engine.message_store import MessageStore
from engine.store.get_message import GetMessageStatus
from engine.store.put_message import PutMessageStatus

pytestmark = pytest.mark.crash
STEPS = 30
WRITES = "[!fdr]*"  # every kind of call but flushes and removals
SYNC = replace(MessageStoreConfig(), **{**SMALL, **MODES["sync"]})
WATCHDOG_SECONDS = 200


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def opened(disk, config=SYNC, clock=None, **how):
    return MessageStore(ROOT, config, disk=disk, clock=clock or Clock(), services=False, **how)


FAULTS = [
    pytest.param(errno.ENOSPC, WRITES, 1, id="the disk is full for a moment"),
    pytest.param(errno.ENOSPC, WRITES, None, id="the disk is full from then on"),
    pytest.param(errno.EIO, "write*", 1, id="a write fails"),
    pytest.param(errno.EIO, "flush", 1, id="a flush fails"),
    pytest.param(errno.EIO, "*", None, id="the disk is gone"),
]


@pytest.mark.parametrize("mode", ["sync", "pool"])
@pytest.mark.parametrize(("number", "kind", "times"), FAULTS)
def test_whichever_call_fails_nothing_acknowledged_is_lost(mode, number, kind, times, request):
    runs = 8 * request.config.getoption("--power-runs")
    for calls_before_fault in range(0, 8 * runs, 8):
        rng = random.Random(calls_before_fault)
        clock, ledger = Clock(), PutLedger()
        disk = SimulatedDisk(clock=clock, on_call=lambda _, kind, path, ledger=ledger: ledger.note_call(kind, path))
        life = StoreLifetime(mode, calls_before_fault, disk, ledger, clock)
        life.open().close()  # opening itself may fail as it likes
        disk.fail(number, kind=kind, after=calls_before_fault + rng.randrange(8), times=times)
        life.run_or_fail(STEPS)
        flushed = life.flushed
        disk.heal()
        ledger.keep(verify(disk.after_power_loss(rng), life, flushed, rng).units)


def test_a_flush_that_fails_stops_the_store_with_the_reason():
    disk = SimulatedDisk()
    store = opened(disk)
    put_before = store.put_message(Message("T", b"before"))
    assert put_before.status is PutMessageStatus.PUT_OK
    disk.fail(errno.EIO, kind="flush", path="*/commitlog/*", times=1)
    assert store.put_message(Message("T", b"lost")).status is PutMessageStatus.FLUSH_DISK_TIMEOUT
    for _ in range(3):  # the disk is well again, but nobody knows what it has thrown away
        assert store.put_message(Message("T", b"refused")).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert "Input/output error" in store.flags.why
    assert store.positions().flushed == put_before.append.end_offset
    with store.get_message("g", "T", 0, 0) as message:
        assert message.status is not GetMessageStatus.OFFSET_FOUND_NULL
    store.close()
    assert disk.exists(store.paths.abort), "the next start has to look"
    reopened = opened(disk.after_power_loss(random.Random(1), keep=0.0))
    assert reopened.look_message_by_offset(0).body == b"before"
    assert reopened.positions().wrote == put_before.append.end_offset


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_a_full_disk_refuses_puts_and_takes_them_again_when_there_is_room(flush):
    disk = SimulatedDisk()
    store = opened(disk, replace(SYNC, **MODES[flush]))
    assert store.put_message(Message("T", b"first")).ok
    disk.fail(errno.ENOSPC, kind="[cr]*")
    body = bytes(3000)
    statuses = [store.put_message(Message("T", body)).status for _ in range(4)]
    assert statuses[0] is PutMessageStatus.PUT_OK, "there is room in the file"
    assert statuses[-1] is PutMessageStatus.CREATE_MAPPED_FILE_FAILED
    disk.heal()
    last_put = store.put_message(Message("T", b"last"))
    assert last_put.ok
    store.close()
    assert opened(disk).look_message_by_offset(last_put.append.physical_offset).body == b"last"


def test_a_read_only_file_system_is_an_error_and_stays_unchanged():
    disk = SimulatedDisk()
    store = opened(disk)
    store.put_message(Message("T", b"a"))
    store.close()
    bytes_before = {path: bytes(node.live) for path, node in disk._nodes.items()}
    disk.fail(errno.EROFS)
    with pytest.raises(OSError, match="Read-only file system"):
        opened(disk)
    assert {path: bytes(node.live) for path, node in disk._nodes.items()} == bytes_before
    disk.heal()
    assert opened(disk).look_message_by_offset(0).body == b"a"


def test_a_store_without_rights_is_an_error(tmp_path):
    store = MessageStore(tmp_path / "store", SYNC, services=False)
    store.put_message(Message("T", b"a"))
    store.close()
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    tmp_path.parent.chmod(0o755)

    def attempt():
        try:
            MessageStore(tmp_path / "store", SYNC, services=False)
        except PermissionError as error:
            return str(error)
        return "opened"

    try:
        assert "Permission denied" in as_nobody(attempt)
    finally:
        for path in (tmp_path, *tmp_path.rglob("*")):
            path.chmod(0o755)
    with MessageStore(tmp_path / "store", SYNC, services=False) as second_store:
        assert second_store.look_message_by_offset(0).body == b"a"


def test_a_second_engine_on_the_directory_is_refused_and_changes_nothing(tmp_path):
    with MessageStore(tmp_path / "store", SYNC) as store:
        store.put_message(Message("T", b"a"))
        for _ in range(2):
            with pytest.raises(StoreLocked, match="this process"):
                MessageStore(tmp_path / "store", SYNC)
        program = "import sys; from engine.message_store import MessageStore; MessageStore(sys.argv[1])"
        ended = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "store")], capture_output=True, text=True, timeout=60
        )
        assert "StoreLocked" in ended.stderr
        assert store.put_message(Message("T", b"b")).status is PutMessageStatus.PUT_OK
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    with MessageStore(tmp_path / "store", SYNC), MessageStore(tmp_path / "copy", SYNC) as copy:
        assert copy.positions().wrote == store.positions().wrote


def test_a_slow_disk_makes_a_put_late_and_not_lost():
    disk = SimulatedDisk()
    config = replace(SYNC, sync_flush_timeout=20)
    store = MessageStore(ROOT, config, disk=disk, clock=Clock())
    disk.slow(60, "flush")
    results = [store.put_message(Message("T", b"%d" % number)) for number in range(4)]
    assert all(result.ok for result in results)
    assert PutMessageStatus.FLUSH_DISK_TIMEOUT in {result.status for result in results}
    disk.heal()
    store.close()
    end = results[-1].append.end_offset
    assert opened(disk.after_power_loss(random.Random(1), keep=0.0)).positions().wrote == end


@pytest.mark.parametrize("mode", MODES)
def test_a_clock_that_jumps_loses_nothing(mode, request):
    """Store times run back and forth: recovery chooses its first file by them."""
    for seed in range(3 * request.config.getoption("--power-runs")):
        rng = random.Random(seed)
        clock, ledger = Clock(), PutLedger()
        disk = SimulatedDisk(clock=clock, on_call=lambda _, kind, path, ledger=ledger: ledger.note_call(kind, path))
        life = StoreLifetime(mode, seed, disk, ledger, clock, jumps=True)
        life.run(3 * STEPS, close=False)
        flushed = life.flushed
        verify(disk.after_power_loss(rng), life, flushed, rng)
        life.store.close()
        check(opened(disk, life.config, clock), ledger, life.flushed)


PUTTING, READING, EACH = 64, 8, 25


def test_a_crowd_puts_and_reads_while_files_are_cleaned_away(tmp_path):
    """Every acknowledged message that was not deleted is at its place, and no thread waits for ever."""
    clock = Clock()
    clock.now = time.time_ns() // 1_000_000  # the age of files is told by their own times
    config = replace(
        SYNC,
        mapped_file_size_commit_log=1 << 16,
        file_reserved_time=1,
        delete_commit_log_files_interval=0,
        sync_flush_timeout=60_000,  # a busy machine is no slow disk
    )
    store = MessageStore(tmp_path / "store", config, clock=clock)
    acknowledged: list[tuple[bytes, int, int, int]] = []
    wrong: list[str] = []
    done = threading.Event()

    def put(thread):
        for number in range(EACH):
            body = b"%d-%d " % (thread, number) + bytes(thread * 10)
            result = store.put_message(Message("T", body, thread % 4, keys=f"{thread}-{number}"))
            while result.status is PutMessageStatus.OS_PAGE_CACHE_BUSY:  # the clock jumped while somebody appended
                result = store.put_message(Message("T", body, thread % 4, keys=f"{thread}-{number}"))
            if result.status is not PutMessageStatus.PUT_OK:
                wrong.append(f"{result}")
                return
            appended = result.append
            acknowledged.append((body, thread % 4, appended.queue_offset, appended.physical_offset))

    def read(thread):
        rng = random.Random(thread)
        while not done.is_set():
            min_offset = store.min_offset_in_queue("T", thread % 4)
            with store.get_message("g", "T", thread % 4, min_offset + rng.randrange(100)) as message:
                for unit in message.units():
                    if unit.topic != "T" or unit.queue_id != thread % 4:
                        wrong.append(f"{unit}")
            with store.query_message("T", f"{rng.randrange(PUTTING)}-{rng.randrange(EACH)}") as message:
                message.units()
            store.positions()
            time.sleep(0.001)  # an answer goes out; eight loops without a pause keep the interpreter

    def clean():
        while not done.is_set():
            clock.now += 3_700_000
            store.services.delete_expired_files()
            store.services.step("clean")
            time.sleep(0.02)

    producers = [threading.Thread(target=guarded, args=(put, wrong, thread), daemon=True) for thread in range(PUTTING)]
    other_threads = [
        threading.Thread(target=guarded, args=(read, wrong, thread), daemon=True) for thread in range(READING)
    ]
    other_threads.append(threading.Thread(target=guarded, args=(clean, wrong), daemon=True))
    for thread in (*other_threads, *producers):
        thread.start()
    join(producers)
    done.set()
    join(other_threads)
    assert not wrong, wrong[:3]
    assert len(acknowledged) == PUTTING * EACH
    assert store.wait_dispatched(60_000)
    for body, _, _, offset in acknowledged:
        unit_at_offset = store.look_message_by_offset(offset)
        if unit_at_offset is None:  # cleaning goes on: twenty runs were asked for
            assert offset < store.positions().min
        else:
            assert unit_at_offset.body == body
    assert_consecutive(acknowledged)
    deleted = store.counters()["clean.logFiles"]
    store.close()
    assert deleted > 0, "cleaning ran beside"
    second_store = MessageStore(tmp_path / "store", config, clock=clock, services=False)
    assert second_store.recovery_plan.exit == "normal"
    places = [place for place in acknowledged if place[3] >= second_store.positions().min]
    assert places
    assert all(second_store.look_message_by_offset(offset).body == body for body, _, _, offset in places)
    second_store.close()


def assert_consecutive(acknowledged):
    """Assert that the queue offsets of each queue are 0, 1, 2 … in the order of the log."""
    queues = defaultdict(list)
    for _, queue_id, queue_offset, offset in acknowledged:
        queues[queue_id].append((offset, queue_offset))
    for places in queues.values():
        assert [queue_offset for _, queue_offset in sorted(places)] == list(range(len(places)))


def guarded(work, wrong, *args):
    """Run a thread's work and note the exception that ended it."""
    try:
        work(*args)
    except BaseException as error:  # noqa: BLE001 - told by the test
        wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")


def join(threads):
    """Wait until all threads end; fail if they do not."""
    until = time.monotonic() + WATCHDOG_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "threads wait for one another"
