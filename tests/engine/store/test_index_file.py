"""Writing one index file: keys chained newest first, the header for readers, and a cut
(docs/formats/index-file.md#layout, #insert).
"""

from __future__ import annotations

import mmap
import os

import pytest

from engine.codec import index as codec
from engine.mapped.disk import RealDisk
from engine.store.index_file import IndexFile

GEOMETRY = codec.Geometry(5, 9)


@pytest.fixture
def disk():
    real_disk = RealDisk()
    yield real_disk
    real_disk.close()


def opened(disk, path, previous_file=None):
    return IndexFile(disk.open(path, GEOMETRY.file_size), path.name, GEOMETRY, previous_file)


def entries(file):
    raw = bytes(file._view)
    return [codec.decode_entry(raw, GEOMETRY.entry_position(n)) for n in range(1, file.header.index_count)]


def test_keys_of_a_slot_are_chained_and_the_header_has_the_newest(disk, tmp_path):
    file = opened(disk, tmp_path / "1")
    file.begin()
    for number in range(3):
        file.put_key(7, 100 * number, 1_000_000 + 1000 * number)
    assert [(entry.phy_offset, entry.prev) for entry in entries(file)] == [(0, 0), (100, 1), (200, 2)]
    assert (file.end_phy_offset, file.end_timestamp, file.room, file.is_full) == (200, 1_002_000, 5, False)
    file.close()


def test_a_file_is_reopened_unchanged_and_finally_full(disk, tmp_path):
    file = opened(disk, tmp_path / "1")
    file.begin()
    file.put_key(1, 10, 5_000)
    file.close()
    repeated = opened(disk, tmp_path / "1")
    assert (repeated.header.index_count, repeated.end_phy_offset) == (2, 10)
    while not repeated.is_full:
        repeated.put_key(2, 20, 6_000)
    assert repeated.header.index_count == GEOMETRY.entries
    repeated.close()


def test_a_new_file_is_not_read_through_its_map(disk, tmp_path):
    """dispatch on a full tmpfs ended by SIGBUS: it read the header of a new file, which had no blocks, through the map.
    Here every byte of the map ends the process that reads it.
    """
    file = disk.open(tmp_path / "1", GEOMETRY.file_size)
    process = os.fork()
    if not process:
        with (tmp_path / "1").open("r+b") as opened_file:
            file.map = memoryview(mmap.mmap(opened_file.fileno(), GEOMETRY.file_size, prot=0))
        IndexFile(file, "1", GEOMETRY)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_a_new_file_begins_with_the_end_of_the_previous_one(disk, tmp_path):
    first_file = opened(disk, tmp_path / "1")
    first_file.begin()
    first_file.put_key(1, 640, 5_000)
    second_file = opened(disk, tmp_path / "2", first_file)
    second_file.begin()
    assert (second_file.header.begin_phy_offset, second_file.end_timestamp) == (640, 5_000)
    first_file.close()
    second_file.close()


def test_a_cut_of_the_log_is_permanent_in_the_header(disk, tmp_path):
    file = opened(disk, tmp_path / "1")
    file.begin()
    file.put_key(1, 640, 5_000)
    file.cut(1000)
    assert file.end_phy_offset == 640
    file.cut(300)
    file.close()
    repeated = opened(disk, tmp_path / "1")
    assert repeated.end_phy_offset == 300
    repeated.close()
