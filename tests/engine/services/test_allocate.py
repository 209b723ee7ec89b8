"""Log files are created before they are needed."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from log_files import ROOT, SmallLog

from engine.mapped.mapped_file import MappedFile
from engine.services.allocate import AllocateMappedFile
from engine.services.service_thread import ServiceThread

SIZE = 4096


@contextmanager
def running(service: AllocateMappedFile) -> Iterator[ServiceThread]:
    thread = ServiceThread(service)
    service.wake_service = thread.wakeup
    thread.start()
    yield thread
    thread.stop()
    assert thread.join(60)


def created_files(small: SmallLog, count: int) -> list[str]:
    deadline = time.monotonic() + 60
    while True:
        names = [name for name, _ in small.disk.names(ROOT / "commitlog")]
        if len(names) >= count or time.monotonic() > deadline:
            return names


def test_without_a_thread_the_file_is_made_at_once() -> None:
    small = SmallLog(SIZE)
    service = AllocateMappedFile(small.files.create, SIZE)
    file = service.allocate(0)
    assert file is not None
    assert [name for name, _ in small.disk.names(ROOT / "commitlog")] == [f"{0:020d}"]


def test_the_next_file_is_there_before_it_is_needed() -> None:
    small = SmallLog(SIZE)
    service = AllocateMappedFile(small.files.create, SIZE)
    with running(service):
        first_file = service.allocate(0)
        assert first_file is not None
        assert created_files(small, 2) == [f"{0:020d}", f"{SIZE:020d}"]
        second_file = service.allocate(SIZE)
        assert second_file is not None
        assert second_file.start_offset == SIZE
        assert len(created_files(small, 3)) == 3
    assert service.close() == 1
    assert len(small.disk.names(ROOT / "commitlog")) == 2


def test_a_file_that_is_not_made_in_time_is_none() -> None:
    small = SmallLog(SIZE)
    gate = threading.Event()

    def slow(start: int) -> MappedFile:
        assert gate.wait(60)
        return small.files.create(start)

    service = AllocateMappedFile(slow, SIZE, wait_seconds=0.05)
    with running(service):
        assert service.allocate(0) is None
        gate.set()
        deadline = time.monotonic() + 60
        while service.allocate(0) is None:
            assert time.monotonic() < deadline


def test_a_full_disk_gives_none_with_a_reason_and_may_recover() -> None:
    small = SmallLog(SIZE)
    service = AllocateMappedFile(small.files.create, SIZE)
    small.disk.fail(errno.ENOSPC)
    assert service.allocate(0) is None
    assert service.failure is not None
    assert "cannot be made" in service.failure
    small.disk.heal()
    assert service.allocate(0) is not None
    assert service.failure is None


def test_no_file_is_made_after_a_failed_one() -> None:
    """The following file was requested, too. If it were created alone, a crash would leave a log with a gap."""
    small = SmallLog(SIZE)
    service = AllocateMappedFile(small.files.create, SIZE)
    with running(service):
        small.disk.fail(errno.ENOSPC, kind="create", times=1)
        assert service.allocate(0) is None
    assert small.disk.names(ROOT / "commitlog") == []
    with running(service):
        assert service.allocate(0) is not None
        assert created_files(small, 2) == [f"{0:020d}", f"{SIZE:020d}"]


def test_without_a_buffer_in_the_pool_none_is_made() -> None:
    small = SmallLog(SIZE)
    service = AllocateMappedFile(small.files.create, SIZE, may_allocate=lambda: False)
    assert service.allocate(0) is None
    with running(service):
        assert service.allocate(0) is None
    assert small.disk.names(ROOT / "commitlog") == []


def test_room_is_made_beside_the_writing() -> None:
    """Disk blocks are allocated ahead once per step for a file that fills quickly. On a full disk the writer gets
    the error.
    """

    class HurriedFiles:
        def __init__(self, full: bool) -> None:
            self.full, self.done = full, threading.Event()

        def reserve_ahead(self) -> None:
            self.done.set()
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")

    small = SmallLog(SIZE)
    service = AllocateMappedFile(small.files.create, SIZE)
    alone = HurriedFiles(full=False)
    service.reserve_ahead(cast("MappedFile", alone))
    assert not alone.done.is_set(), "without a thread nothing is done ahead"
    with running(service):
        for full in (False, True, False):
            file = HurriedFiles(full)
            service.reserve_ahead(cast("MappedFile", file))
            assert file.done.wait(60)
        assert service.allocate(0) is not None
