"""The files of one queue: appends across file ends, cuts, deletions at the front, and flushes."""

from __future__ import annotations

import threading

import pytest

from engine.mapped.disk import RealDisk
from engine.store.queue_files import QueueFiles


@pytest.fixture
def disk():
    real_disk = RealDisk()
    yield real_disk
    real_disk.close()


@pytest.fixture
def files(disk, tmp_path):
    queue_files = QueueFiles(disk, str(tmp_path / "q"), 40, threading.Lock())
    queue_files.create(0)
    yield queue_files
    queue_files.forget()


def test_appends_continue_in_the_next_file(files, tmp_path):
    files.append(b"a" * 30)
    files.append(b"b" * 30)
    assert (files.starts, files.end, files.last_is_full) == ((0, 40), 60, False)
    assert files.read(25, 30) == b"a" * 5 + b"b" * 10  # never over the end of a file
    assert sorted(path.name for path in (tmp_path / "q").iterdir()) == [f"{0:020d}", f"{40:020d}"]


def test_loaded_files_count_as_full(files, disk, tmp_path):
    files.append(b"a" * 50)
    files.flush()
    second_files = QueueFiles(disk, str(tmp_path / "q"), 40, threading.Lock())
    second_files.load()
    assert (second_files.starts, second_files.end, second_files.last_is_full) == ((0, 40), 80, True)
    second_files.forget()


def test_a_cut_removes_later_files_and_expiry_earlier_ones(files, tmp_path):
    files.append(b"a" * 100)
    files.cut(40, 50)
    assert (files.starts, files.end) == ((0, 40), 50)
    files.drop_first([0])
    assert (files.starts, files.min_offset) == ((40,), 40)
    assert [path.name for path in (tmp_path / "q").iterdir()] == [f"{40:020d}"]


def test_a_flush_returns_the_flushed_position(files):
    files.append(b"a" * 10)
    assert files.flushed < 10
    assert files.flush()
    assert files.flushed == 10
    files.distrust()
    assert files.flushed < 10


def test_bytes_are_written_within_and_lent(files):
    files.append(b"a" * 20)
    files.write(4, b"XY")
    assert bytes(files.lend(0, 8)) == b"aaaaXYaa"
    files.destroy()
    assert files.starts == ()
