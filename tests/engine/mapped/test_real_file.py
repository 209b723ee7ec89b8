"""Descriptors are closed and reopened, without losing written bytes or errors."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from engine import system
from engine.mapped import real_file
from engine.mapped.disk import RealDisk


def numbered(disk, root, count):
    return [disk.open(root / str(number), 4096) for number in range(count)]


def test_forty_times_as_many_files_as_descriptors(tmp_path):
    disk = RealDisk(open_files=5)
    files = numbered(disk, tmp_path, 200)
    for turn in range(3):
        for number, file in enumerate(files):
            file.write(turn * 4, number.to_bytes(4, "big"))
            assert disk.open_files <= 5
    for number, file in enumerate(files):
        file.flush(0, 12)
        assert file.read(0, 12) == number.to_bytes(4, "big") * 3
    assert disk.open_files <= 5
    disk.close()
    assert disk.open_files == 0
    assert files[7].read(0, 4) == (7).to_bytes(4, "big")
    disk.close()


def test_more_maps_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(real_file.OpenFiles.__init__, "__defaults__", (256, 3))
    disk = RealDisk()
    files = numbered(disk, tmp_path, 8)
    for file in files:
        file.view[0:1] = b"m"
    assert sum(file.is_mapped for file in files) == 3
    assert all(file.read(0, 1) == b"m" for file in files)
    assert bytes(files[0].view[:1]) == b"m"
    disk.close()


def test_a_write_lost_while_its_descriptor_was_closed_fails_the_flush(tmp_path):
    """The kernel may forget a failed write-back together with the file. Then the file has its old bytes, and a new
    descriptor would report success. A queue would lose entries that the checkpoint calls flushed.
    """
    disk = RealDisk(open_files=1)
    file, other_file = numbered(disk, tmp_path, 2)
    file.write(0, b"first")
    file.write(5, b"second")
    other_file.write(0, b"x")  # takes the only descriptor
    with (tmp_path / "0").open("r+b") as outside_writer:
        outside_writer.write(bytes(11))
    with pytest.raises(OSError, match="not written back") as error:
        file.flush(0, 11)
    assert error.value.errno == errno.EIO
    with pytest.raises(OSError, match="not written back"):
        file.flush(0, 11)
    other_file.flush(0, 1)
    disk.close()


def test_scattered_writes_are_flushed_before_their_descriptor_is_closed(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(system, "sync_data", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino))
    disk = RealDisk(open_files=1)
    file, other_file = numbered(disk, tmp_path, 2)
    file.write(100, b"a")
    file.write(0, b"b")
    other_file.read(0, 1)
    assert flushed == [(tmp_path / "0").stat().st_ino]
    disk.close()


def test_an_error_on_closing_is_reported_by_the_flush(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, "Input/output error")

    disk = RealDisk(open_files=1)
    file, other_file = numbered(disk, tmp_path, 2)
    file.write(100, b"a")
    file.write(0, b"b")
    with monkeypatch.context() as patch:
        patch.setattr(system, "sync_data", fail)
        other_file.read(0, 1)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error") as raises:
            file.flush(0, 101)
        assert raises.value.filename == str(tmp_path / "0")
    disk.close()


def test_a_failed_flush_fails_permanently(tmp_path, monkeypatch):
    """After a failed fsync the kernel may mark the lost pages clean, and a second fsync would succeed wrongly."""

    def fail(_):
        raise OSError(errno.EIO, "Input/output error")

    disk = RealDisk()
    file = disk.open(tmp_path / "f", 4096)
    file.write(0, b"a")
    with monkeypatch.context() as patch:
        patch.setattr(system, "sync_data", fail)
        with pytest.raises(OSError, match="Input/output error"):
            file.flush(0, 1)
    with pytest.raises(OSError, match="Input/output error"):
        file.flush(0, 1)
    disk.close()


def test_the_first_flush_makes_the_new_folders_durable_and_later_ones_do_not(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(system, "sync_folder", synced.append)
    disk = RealDisk()
    file = disk.open(tmp_path / "consumequeue" / "T" / "0" / "f", 4096)
    file.flush(0, 1)
    assert synced == [str(tmp_path / below) for below in ("consumequeue/T/0", "consumequeue/T", "consumequeue", "")]
    file.flush(0, 1)
    assert len(synced) == 4
    disk.open(tmp_path / "consumequeue" / "T" / "0" / "f", 4096).flush(0, 1)
    assert len(synced) == 4
    disk.close()


def test_writing_and_reading_from_many_threads_with_few_descriptors(tmp_path):
    disk = RealDisk(open_files=2)
    files = numbered(disk, tmp_path, 12)
    wrong = []

    def work(number):
        for turn in range(100):
            file = files[(number + turn) % 12]
            position = number * 8
            file.write(position, turn.to_bytes(8, "big"))
            if file.read(position, 8) != turn.to_bytes(8, "big"):
                wrong.append((number, turn))
            if turn % 25 == 0:
                file.flush(0, 100)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert disk.open_files <= 8
    disk.close()


def test_writes_through_file_and_map_are_not_reported_as_lost(tmp_path):
    """An index file's zeros were written to the file, its entries through the map. Copying with many open files then
    failed with an error about lost bytes, although none were lost.
    """
    disk = RealDisk(open_files=1)
    file, other_file = numbered(disk, tmp_path, 2)
    file.write(0, bytes(100))
    file.view[10:13] = b"abc"
    file.write(100, b"d")
    file.view[100:101] = b"e"
    other_file.write(0, b"x")
    file.flush(0, 101)
    assert file.read(10, 91) == b"abc" + bytes(87) + b"e"
    disk.close()
