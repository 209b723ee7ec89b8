"""The real and the simulated disk follow the same contract."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest
from simulated_disk import SimulatedDisk

from engine import system
from engine.errors import StoreLocked
from engine.mapped.disk import Disk, RealDisk, disk_use
from engine.system import portable

SIZE = 3 * 4096 + 100


@pytest.fixture(params=["real", "simulated"])
def disk(request):
    real_disk: Disk = RealDisk() if request.param == "real" else SimulatedDisk()
    yield real_disk
    real_disk.close()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "a store, with blanks – 仓库"


def test_a_new_file_has_its_parents_and_its_size_in_zeros(disk, root):
    file = disk.open(root / "commitlog" / "0", SIZE)
    assert disk.names(root / "commitlog") == [("0", SIZE)]
    assert (file.size, file.path) == (SIZE, str(root / "commitlog" / "0"))
    assert file.read(0, SIZE) == bytes(SIZE)


def test_an_existing_file_keeps_its_bytes_and_grows(disk, root):
    disk.write_file(root / "f", b"abc")
    file = disk.open(root / "f", 10)
    assert file.read(0, 10) == b"abc" + bytes(7)


def test_writes_are_visible_in_the_map_and_vice_versa(disk, root):
    file = disk.open(root / "f", SIZE)
    file.write(4090, b"0123456789")
    assert bytes(file.view[4090:4100]) == b"0123456789"
    file.view[5:8] = b"xyz"
    assert file.read(4, 5) == b"\0xyz\0"
    file.flush(0, SIZE)
    assert disk.open(root / "f", SIZE).read(5, 3) == b"xyz"


def test_reading_ends_with_the_file(disk, root):
    file = disk.open(root / "f", 10)
    file.write(8, b"yz")
    assert file.read(8, 100) == b"yz"
    assert file.read(10, 1) == b""
    assert file.read(-1, 1) == b""
    into = bytearray(5)
    assert file.read_into(memoryview(into), 8) == 2
    assert into == b"yz\0\0\0"


def test_extents_contain_all_written_bytes(disk, root):
    file = disk.open(root / "f", 1 << 20)
    file.write(512 << 10, b"x")
    assert any(start <= 512 << 10 < stop for start, stop in file.extents())
    assert all(start >= 600 << 10 for start, _ in file.extents(600 << 10))


def test_names_are_sorted_without_folders_and_folders_without_names(disk, root):
    for name in ("b", "a", "d/x", "c/x"):
        disk.write_file(root / name, b"12")
    assert disk.names(root) == [("a", 2), ("b", 2)]
    assert disk.folders(root) == ["c", "d"]
    assert disk.names(root / "none") == []
    assert disk.folders(root / "none") == []


def test_files_are_rewritten_renamed_and_removed(disk, root):
    disk.write_file(root / "a", b"long text", sync=True)
    disk.write_file(root / "a", b"short")
    assert disk.read_file(root / "a") == b"short"
    disk.replace(root / "a", root / "b")
    disk.sync_folder(root)
    assert disk.read_file(root / "a") is None
    assert disk.read_file(root / "b") == b"short"
    disk.delete(root / "b")
    disk.delete(root / "b")
    assert not disk.exists(root / "b")
    with pytest.raises(FileNotFoundError):
        disk.replace(root / "b", root / "c")


def test_only_an_empty_folder_is_removed(disk, root):
    disk.write_file(root / "topic" / "0" / "f", b"")
    assert not disk.remove_folder(root / "topic")
    assert not disk.remove_folder(root / "topic" / "0")
    disk.delete(root / "topic" / "0" / "f")
    assert disk.remove_folder(root / "topic" / "0")
    assert disk.remove_folder(root / "topic")
    assert disk.remove_folder(root / "topic")
    assert not disk.exists(root / "topic")


def test_the_time_of_writing_can_be_set(disk, root):
    disk.write_file(root / "f", b"")
    disk.set_modified(root / "f", 1_700_000_000_123)
    assert disk.modified(root / "f") == 1_700_000_000_123


def test_usage_is_a_share_in_full_percents(disk, root):
    disk.write_file(root / "f", b"")
    assert 0 < disk.usage(root) <= 1
    assert disk.usage(root) * 100 == pytest.approx(round(disk.usage(root) * 100))
    assert disk.usage(root / "none") == -1
    assert disk.total(root) > 0
    assert disk.total(root / "none") == 0


def test_a_deleted_file_is_gone_and_its_map_is_not(disk, root):
    file = disk.open(root / "f", 10)
    view = file.view
    file.reserve(0, 10)
    view[:3] = b"abc"
    file.delete()
    file.delete()
    assert not disk.exists(root / "f")
    assert bytes(view[:3]) == b"abc"
    file.close()


def test_the_lock_excludes_a_second_one_until_it_is_released(disk, root):
    lock = disk.lock(root / "lock")
    with pytest.raises(StoreLocked) as refused:
        disk.lock(root / "lock")
    assert refused.value.pid == os.getpid()
    assert disk.read_file(root / "lock") == b"lock"
    lock.release()
    lock.release()
    disk.lock(root / "lock").release()


def test_only_files_are_opened(tmp_path):
    with pytest.raises(OSError, match="regular file"):
        RealDisk().open(tmp_path, 10)


def test_an_unwritable_folder_is_an_error_with_its_path(tmp_path):
    """Errors of the environment are raised as the original OSError, with the path in it."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file") as refused:
        RealDisk().open(tmp_path / "file" / "below", 10)
    assert refused.value.errno == errno.ENOTDIR


def test_a_file_is_created_where_anonymous_files_are_not_supported(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "link_nameless_file", portable.link_nameless_file)
    RealDisk().open(tmp_path / "f", 4096)
    assert (tmp_path / "f").stat().st_size == 4096


def test_a_file_too_large_for_the_disk_leaves_no_file(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, hard))  # a file system in memory would accept any length
    try:
        with pytest.raises(OSError, match=r"too large: .*f"):
            RealDisk().open(tmp_path / "f", 1 << 62)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not Path(tmp_path / "f").exists()


def test_a_folder_moves_with_its_contents(disk, root):
    for name in ("0", "1"):
        disk.write_file(root / "a" / name / "f", name.encode())
    disk.move_folder(root / "a", root / "beside" / "b")
    assert disk.folders(root) == ["beside"]
    assert disk.folders(root / "beside" / "b") == ["0", "1"]
    assert disk.read_file(root / "beside" / "b" / "1" / "f") == b"1"
    assert not disk.exists(root / "a")
    with pytest.raises(FileNotFoundError):
        disk.move_folder(root / "a", root / "c")


def test_disk_use_is_a_share_or_unknown(tmp_path):
    assert 0 <= disk_use(tmp_path) <= 1
    assert disk_use(tmp_path / "nothing") == -1
