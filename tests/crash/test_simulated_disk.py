"""Disks after a simulated power loss, and calls that fail on demand."""

from __future__ import annotations

import errno
import random
import time
from pathlib import Path

import pytest
from simulated_disk import PowerLoss, SimulatedDisk

from engine.mapped.power_loss import PAGE, SECTOR

FILE = Path("/store/commitlog/0")
SIZE = 8 * PAGE


def bytes_after_power_loss(disk, seed=0, keep=None, path=FILE):
    return disk.after_power_loss(random.Random(seed), keep).read_file(path)


def test_only_flushed_bytes_survive_for_sure():
    disk = SimulatedDisk()
    file = disk.open(FILE, SIZE)
    file.write(0, b"flushed")
    file.flush(0, 7)
    file.write(PAGE, b"not flushed")
    assert bytes_after_power_loss(disk, keep=0.0) == b"flushed".ljust(SIZE, b"\0")
    assert bytes_after_power_loss(disk, keep=1.0)[PAGE : PAGE + 6] in (b"not fl", bytes(6))
    assert file.read(PAGE, 3) == b"not"


def test_pages_come_through_in_any_order_and_some_are_torn():
    disk = SimulatedDisk()
    file = disk.open(FILE, SIZE)
    file.flush(0, SIZE)
    file.view[:] = b"x" * SIZE
    later_without_earlier = torn = 0
    for seed in range(50):
        pages = [bytes_after_power_loss(disk, seed)[position : position + PAGE] for position in range(0, SIZE, PAGE)]
        complete = [page == b"x" * PAGE for page in pages]
        later_without_earlier += any(complete[n + 1] and not any(pages[n]) for n in range(7))
        for page in pages:
            sectors = {page[start : start + SECTOR] for start in range(0, PAGE, SECTOR)}
            assert sectors <= {b"x" * SECTOR, bytes(SECTOR)}
            torn += len(sectors) == 2
    assert later_without_earlier
    assert torn


def test_dirty_pages_may_reach_the_disk_by_themselves():
    disk = SimulatedDisk(write_back=random.Random(3))
    file = disk.open(FILE, SIZE)
    file.flush(0, SIZE)
    for number in range(40):
        file.write(number % 8 * PAGE, bytes([number]) * PAGE)
    saved = bytes_after_power_loss(disk, keep=0.0)
    assert any(saved)
    assert len({saved[position] for position in range(0, SIZE, PAGE)}) > 2, "pages of different ages stand side by side"


def test_a_name_survives_once_the_file_or_its_folder_was_synced():
    disk = SimulatedDisk()
    file = disk.open(FILE, SIZE)
    assert bytes_after_power_loss(disk, keep=0.0) is None
    assert bytes_after_power_loss(disk, keep=1.0) == bytes(SIZE)
    file.flush(0, 0)
    assert bytes_after_power_loss(disk, keep=0.0) == bytes(SIZE)
    disk.write_file(FILE.parent / "1", b"abc")
    disk.sync_folder(FILE.parent)
    assert bytes_after_power_loss(disk, keep=0.0, path=FILE.parent / "1") == b"", "its bytes were not flushed"


def test_names_come_through_in_the_order_in_which_they_were_made():
    disk = SimulatedDisk()
    for number in range(6):
        disk.open(FILE.parent / str(number), PAGE)
    disk.delete(FILE.parent / "0")
    found_names = set()
    for seed in range(80):
        disk_after = disk.after_power_loss(random.Random(seed))
        names = "".join(name for name, _ in disk_after.names(FILE.parent))
        assert names in ("", "0", "01", "012", "0123", "01234", "012345", "12345")
        found_names.add(names)
    assert len(found_names) > 5


def test_a_rename_happens_whole_or_not_at_all():
    disk = SimulatedDisk()
    disk.write_file(FILE, b"old", sync=True)
    disk.write_file(FILE.with_name("new"), b"new", sync=True)
    disk.replace(FILE.with_name("new"), FILE)
    files = set()
    for seed in range(30):
        disk_after = disk.after_power_loss(random.Random(seed))
        files.add((disk_after.read_file(FILE), disk_after.read_file(FILE.with_name("new"))))
    assert files == {(b"old", b"new"), (b"new", None)}


def test_a_file_written_anew_is_old_cut_or_partly_new():
    disk = SimulatedDisk()
    disk.write_file(FILE, b"old", sync=True)
    disk.write_file(FILE, b"a longer text")
    observed = {bytes_after_power_loss(disk, seed) for seed in range(200)}
    assert {b"old", b"", b"a longer text"} < observed
    assert all(text == b"old" or b"a longer text".startswith(text) for text in observed)


def test_a_file_that_was_removed_may_come_back_until_its_folder_is_synced():
    disk = SimulatedDisk()
    disk.write_file(FILE, b"x", sync=True)
    disk.delete(FILE)
    assert bytes_after_power_loss(disk, keep=0.0) == b"x"
    disk.sync_folder(FILE.parent)
    assert bytes_after_power_loss(disk, keep=0.0) is None


def test_the_power_fails_at_the_given_call_and_stays_off():
    disk = SimulatedDisk(crash_at=3)
    file = disk.open(FILE, SIZE)
    file.write(0, b"a")
    with pytest.raises(PowerLoss):
        file.flush(0, 1)
    for call in (
        lambda: file.read(0, 1),
        lambda: file.write(0, b""),
        lambda: disk.names(FILE.parent),
        lambda: disk.exists(FILE),
    ):
        with pytest.raises(PowerLoss):
            call()
    assert bytes_after_power_loss(disk, keep=0.0) is None


def test_the_power_can_be_cut_by_hand():
    disk = SimulatedDisk()
    disk.cut_power()
    with pytest.raises(PowerLoss):
        disk.open(FILE, SIZE)


def test_every_call_is_reported_before_it_reaches_the_disk():
    reports = []
    disk = SimulatedDisk(on_call=lambda number, kind, path: reports.append((number, kind, Path(path).name)))
    file = disk.open(FILE, SIZE)
    file.reserve(0, SIZE)
    file.write(0, b"a")
    file.flush(0, 1)
    file.flush(0, 1)
    disk.delete(FILE)
    assert reports == list(enumerate_from_1(["create", "reserve", "write", "flush", "flush", "flush", "delete"]))
    assert disk.calls == 7


def enumerate_from_1(kinds):
    return ((number, kind, "0") for number, kind in enumerate(kinds, 1))


def test_calls_fail_on_demand():
    disk = SimulatedDisk()
    disk.fail(errno.ENOSPC, kind="write", path="*/commitlog/*", after=1, times=1)
    file = disk.open(FILE, SIZE)
    file.write(0, b"a")
    with pytest.raises(OSError, match="No space left") as refused:
        file.write(0, b"bbcc")
    assert refused.value.filename == str(FILE)
    assert file.read(0, 4) == b"bb\0\0", "a full disk takes a part"
    file.write(0, b"c")
    disk.fail(errno.EROFS)
    with pytest.raises(OSError, match="Read-only"):
        disk.write_file(FILE, b"")
    with pytest.raises(OSError, match="Read-only"):
        disk.open(FILE.with_name("1"), SIZE)
    disk.heal()
    disk.write_file(FILE, b"")
    assert not disk.exists(FILE.with_name("1"))


def test_a_flush_can_take_its_time():
    disk = SimulatedDisk()
    disk.slow(30)
    file = disk.open(FILE, SIZE)
    begun = time.monotonic()
    file.flush(0, 0)
    assert time.monotonic() - begun >= 0.03


def test_the_disk_found_afterwards_is_another_one():
    disk = SimulatedDisk(clock=lambda: 5)
    disk.write_file(FILE, b"a", sync=True)
    disk_after = disk.after_power_loss(random.Random(1))
    disk_after.write_file(FILE, b"b", sync=True)
    assert disk.read_file(FILE) == b"a"
    assert disk_after.modified(FILE) == 5
    assert disk_after.folders(Path("/")) == ["store"]
    assert disk_after.folders(Path("/store")) == ["commitlog"]
