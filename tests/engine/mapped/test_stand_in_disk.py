"""Files that the system does not have read like its own, through descriptors of files in memory."""

from __future__ import annotations

import os

import pytest

from engine.mapped import stand_in_disk
from engine.mapped.stand_in_disk import StandInDisk


class DiskOfTexts(StandInDisk[bytes]):
    """Files whose content is their name."""

    def open(self, path):
        return self.stand_in(path, path.encode(), len(path)) if path.startswith("text ") else super().open(path)

    def file_bytes(self, file, size, position):
        return file[position : position + size]

    def file_status(self, file):
        return os.stat_result((0, 0, 0, 0, 0, 0, len(file), 0, 0, 0))

    def file_extents(self, file, position, size):
        return [(position, min(len(file), size))]

    def file_next_data(self, file, position, size):
        return position if position < min(len(file), size) else -1


@pytest.fixture
def disk():
    disk = DiskOfTexts()
    yield disk
    disk.close_stand_ins()


def test_a_descriptor_reads_its_own_file_also_when_copied(disk):
    first, second = disk.open("text one"), disk.open("text two")
    copy = os.dup(first)
    os.close(first)
    view = memoryview(bytearray(8))
    assert (disk.read(copy, 4, 5), disk.read(second, 4, 5), disk.read_into(copy, view, 5)) == (b"one", b"two", 3)
    assert bytes(view[:3]) == b"one"
    assert disk.descriptor_status(second).st_size == 8
    assert (disk.extents(second, 2, 99), disk.next_data(second, 2, 99)) == ([(2, 8)], 2)
    for descriptor in (copy, second):
        os.close(descriptor)


def test_a_disk_without_all_four_methods_cannot_be_made():
    class Unfinished(StandInDisk[bytes]):
        def file_bytes(self, file, size, position):
            return b""

    with pytest.raises(TypeError, match="file_status"):
        Unfinished()


def test_files_of_the_system_are_read_as_ever(disk, tmp_path):
    (tmp_path / "file").write_bytes(b"of the system")
    descriptor = disk.open(str(tmp_path / "file"))
    assert disk.read(descriptor, 6, 7) == b"system"
    assert disk.descriptor_status(descriptor).st_size == 13
    os.close(descriptor)


def test_an_open_descriptor_outlives_those_that_are_kept(disk, monkeypatch):
    """A reader of many files holds the first while others are opened and the kept descriptors are closed."""
    monkeypatch.setattr(stand_in_disk, "MAX_STAND_INS", 2)
    first = disk.open("text 0")
    for number in range(1, 6):
        os.close(disk.open(f"text {number}"))
    assert disk.read(first, 9, 0) == b"text 0"
    os.close(first)
