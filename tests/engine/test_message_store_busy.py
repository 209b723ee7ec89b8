"""Many threads use one store: no acknowledged message is lost, no thread waits forever, and every read is complete."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from simulated_disk import SimulatedDisk

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.message_store import MessageStore

PRODUCERS, READERS, EACH = 64, 8, 12
WATCHDOG = 120.0
SMALL: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 20 * 100,
    "maxHashSlotNum": 500,
    "maxIndexNum": 4000,
}

AT_ANY_DISK = {"cleanFileForciblyEnable": False}
"""No file goes before its time where the disk of whoever runs the tests is nearly full."""


class ThreadContention:
    """Threads joined under a watchdog. The first error of any thread is raised at the end."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.threads: list[threading.Thread] = []

    def add(self, work: Any, *arguments: Any) -> None:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:  # noqa: BLE001  told by the test's thread
                self.errors.append(error)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def join(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join(WATCHDOG)
            assert not thread.is_alive(), "a thread hangs"
        if self.errors:
            raise self.errors[0]


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_sixty_four_put_while_eight_read_and_cleaning_runs(tmp_path: Path, flush: str) -> None:
    """Every acknowledged message is at the returned offset, and in its queue in log order."""
    settings = from_mapping({**SMALL, "flushDiskType": flush, "fileReservedTime": 1, **AT_ANY_DISK})[0]
    acknowledged: list[tuple[int, int, int, bytes]] = []
    over = threading.Event()
    crowd = ThreadContention()
    with MessageStore(tmp_path, settings) as store:

        def produce(number: int) -> None:
            for position in range(EACH):
                body = f"{number}-{position}-".encode() * 20
                result = store.put_message(Message("Orders", body, queue_id=number % 4, keys=f"k{number}"))
                assert result.status.name == "PUT_OK"
                assert result.append is not None
                acknowledged.append((result.append.physical_offset, number % 4, result.append.queue_offset, body))

        def read(number: int) -> None:
            offset = 0
            while not over.is_set():
                got = store.get_message("g", "Orders", number % 4, offset, 32)
                assert got is not None
                with got:
                    for unit in got.units(crc=True):
                        assert unit.queue_offset == offset
                        assert unit.crc == "ok"
                        offset += 1
                store.positions()

        def clean() -> None:
            while not over.is_set():
                store.services.delete_expired_files()
                store.services.step("clean")

        for number in range(PRODUCERS):
            crowd.add(produce, number)
        producers = list(crowd.threads)
        for number in range(READERS):
            crowd.add(read, number)
        crowd.add(clean)
        crowd.join(producers)
        assert store.wait_dispatched()
        over.set()
        crowd.join(crowd.threads)
        assert len(acknowledged) == PRODUCERS * EACH
        for physical_offset, _, queue_offset, body in acknowledged:
            unit = store.look_message_by_offset(physical_offset)
            assert unit is not None
            assert (unit.queue_offset, unit.body) == (queue_offset, body)
        for queue in range(4):
            entries = sorted(entry for entry in acknowledged if entry[1] == queue)
            assert [entry[2] for entry in entries] == list(range(len(entries)))
            assert store.max_offset_in_queue("Orders", queue) == len(entries)
    assert not (tmp_path / "abort").exists()


def test_a_slow_disk_blocks_no_put_beyond_the_timeout() -> None:
    disk = SimulatedDisk()
    settings = from_mapping({**SMALL, "flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": 60})[0]
    crowd = ThreadContention()
    names: list[str] = []
    with MessageStore("/store", settings, disk=disk) as store:
        disk.slow(150, "flush")

        def produce() -> None:
            for _ in range(3):
                names.append(store.put_message(Message("Orders", b"x")).status.name)

        for _ in range(4):
            crowd.add(produce)
        crowd.join(crowd.threads)
        disk.heal()
        assert store.flush() == store.positions().wrote
        assert store.put_message(Message("Orders", b"x")).ok
    assert set(names) <= {"PUT_OK", "FLUSH_DISK_TIMEOUT"}
    assert "FLUSH_DISK_TIMEOUT" in names
    assert not disk.exists(Path("/store/abort"))


def test_a_jumping_clock_causes_no_disorder() -> None:
    times = iter([1_700_000_000_000 + step for step in (0, 5000, -60_000, 10, 86_400_000, 0) for _ in range(400)])
    last_time = [0]

    def clock() -> int:
        last_time[0] = next(times, last_time[0])
        return last_time[0]

    disk = SimulatedDisk()
    settings = from_mapping(SMALL)[0]
    with MessageStore("/store", settings, disk=disk, clock=clock, services=False) as store:
        for number in range(500):
            assert store.put_message(Message("Orders", b"x" * 50, keys=f"k{number}")).ok
            if number % 50 == 0:
                for name in store.services.names:
                    store.services.step(name)
        assert store.wait_dispatched()
        assert store.max_offset_in_queue("Orders", 0) == 500
    with MessageStore("/store", settings, disk=disk, clock=clock, services=False) as store:
        assert store.recovery_plan.exit == "normal"
        assert store.max_offset_in_queue("Orders", 0) == 500
        with store.query_message("Orders", "k499") as query_message:
            assert len(query_message.units()) == 1


def test_puts_are_refused_on_a_full_disk_and_accepted_again_later() -> None:
    disk = SimulatedDisk()
    for kind in ("reserve", "create"):
        disk.fail(errno.ENOSPC, kind=kind, path="*commitlog*", after=5)
    settings = from_mapping(SMALL)[0]
    store = MessageStore("/store", settings, disk=disk, services=False)
    received = refused = 0
    while refused < 5:
        result = store.put_message(Message("Orders", b"x" * 1000))
        received += result.ok
        refused += not result.ok
        assert received < 1000
    assert received > 10
    disk.heal()
    assert store.put_message(Message("Orders", b"x" * 1000)).ok
    assert store.wait_dispatched()
    assert store.max_offset_in_queue("Orders", 0) == received + 1
    store.close()
    assert not disk.exists(Path("/store/abort"))
