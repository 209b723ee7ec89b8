"""The walk of recovery: from a start file to the first unit that fails (docs/formats/recovery.md#log)."""

from __future__ import annotations

import os
import struct

import pytest
from broken_stores import zero_log_from
from handmade_stores import LOG_SIZE, HandmadeStore
from planted_faults import patch

from engine.errors import CannotRead
from engine.inspection import open_store
from engine.rules.unit_check import Rules
from engine.store.recovery import walk
from engine.store.recovery.walk import NO_FILE, OUT_OF_MEMORY, LogWalk


class RecordingSink:
    """Records the rows and requests that a walk hands on."""

    def __init__(self):
        self.offsets = []

    def take_rows(self, columns, topics, rows):
        self.offsets += columns.offset[:rows].tolist()

    def take(self, place, request):
        self.offsets.append(place)


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for _ in range(80):
        store.put()
    return store


def walked(root, first_file=0, **rules):
    sink = RecordingSink()
    with open_store(root) as store:
        return LogWalk(store.log.sequence.files, Rules(**rules), sink).run(first_file), sink.offsets


def test_every_unit_from_the_start_file_on_over_blanks(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    results, offsets = walked(root)
    assert offsets == [unit.offset for unit in small_store.units]
    assert (results.end_offset, results.last_unit, results.units) == (small_store.end, small_store.units[-1].offset, 80)
    _, later = walked(root, 1)
    assert later == [unit.offset for unit in small_store.units if unit.offset >= LOG_SIZE]


def test_a_wrong_body_ends_the_walk_only_if_crcs_are_checked(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    unit = small_store.units[30]
    patch(root / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}", unit.offset % LOG_SIZE + 88, b"X")
    results, offsets = walked(root)
    assert (results.end_offset, len(offsets)) == (unit.offset, 30)
    assert walked(root, crc=False)[0].units == 80


def test_the_dispatch_thread_skips_unreadable_bytes_to_the_next_file(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    broken = next(unit for unit in small_store.units if unit.offset > 2000)
    patch(root / "commitlog" / f"{0:020d}", broken.offset, bytes(8))
    sink = RecordingSink()
    with open_store(root) as store:
        LogWalk(store.log.sequence.files, Rules(), sink).run_dispatch(0, small_store.end)
    assert sink.offsets == [
        unit.offset for unit in small_store.units if unit.offset < broken.offset or unit.offset >= LOG_SIZE
    ]


def test_zeros_are_the_end(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    zero_log_from(root, small_store.units[50].offset)
    assert walked(root)[0].end_offset == small_store.units[50].offset


def log_file(root, number):
    return root / "commitlog" / f"{number * LOG_SIZE:020d}"


def dispatched(root, end, **rules):
    sink = RecordingSink()
    with open_store(root) as store:
        log_walk = LogWalk(store.log.sequence.files, Rules(**rules), sink)
        return log_walk.run_dispatch(0, end, cross=False), sink.offsets


def test_the_dispatch_thread_stalls_where_no_file_has_the_next_byte(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    log_file(root, 1).unlink()
    results, offsets = dispatched(root, small_store.end)
    assert (results.end_offset, results.reason) == (LOG_SIZE, NO_FILE)
    assert offsets == [unit.offset for unit in small_store.units if unit.offset < LOG_SIZE]
    results, _ = dispatched(root, LOG_SIZE)
    assert (results.end_offset, results.reason) == (LOG_SIZE, "")


def test_the_dispatch_thread_of_4_9_ends_at_an_impossible_length(small_store, tmp_path):
    """4.9 allocates an array of that length before it checks the remaining bytes. Later releases continue with the
    next file.
    """
    root = small_store.write(tmp_path / "s")
    patch(log_file(root, 0), small_store.units[2].offset, b"\x7f\xff\xff\xff")
    results, _ = dispatched(root, small_store.end, release="4.9")
    assert (results.end_offset, results.reason) == (small_store.units[2].offset, OUT_OF_MEMORY)
    assert dispatched(root, small_store.end, release="5.3")[0].end_offset == small_store.end


def test_a_blank_at_the_end_of_the_last_file_and_a_log_without_files_end_the_walk(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    for path in sorted((root / "commitlog").iterdir())[1:]:
        path.unlink()
    assert walked(root)[0].reason == "the last file ends with a blank unit"
    log_file(root, 0).unlink()
    assert walked(root)[0].reason == "there are no files"


def test_a_unit_of_another_file_is_refused_only_where_offsets_are_checked(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    unit = small_store.units[5]
    patch(log_file(root, 0), unit.offset + 28, struct.pack(">q", 1 << 40))
    results, offsets = walked(root, own_offset=True)
    assert (results.end_offset, len(offsets)) == (unit.offset, 5)
    assert results.reason == "the message's PHYSICALOFFSET is 1,099,511,627,776, in another file"
    assert walked(root)[0].units == 80


@pytest.mark.parametrize("block", [64, 200, 1000])
def test_block_ends_do_not_change_the_result(small_store, tmp_path, monkeypatch, block):
    root = small_store.write(tmp_path / "s")
    expected = walked(root)
    monkeypatch.setattr(walk, "BLOCK", block)
    monkeypatch.setattr(walk, "ROWS", 3)
    assert walked(root) == expected


def test_a_unit_larger_than_any_read_is_not_read(small_store, tmp_path, monkeypatch):
    root = small_store.write(tmp_path / "s")
    monkeypatch.setattr(walk, "BLOCK", 64)
    monkeypatch.setattr(walk, "MAX_READ_BYTES", 64)
    results, offsets = walked(root)
    assert (results.end_offset, results.reason, offsets) == (0, "the file is shorter than it was", [])


def test_a_file_that_shrinks_during_the_walk_cannot_be_read(small_store, tmp_path):
    """Otherwise recovery would take the cut for the end of the log."""
    root = small_store.write(tmp_path / "s")
    with open_store(root) as store:
        files = store.log.sequence.files
        assert files[0].size == LOG_SIZE
        os.truncate(log_file(root, 0), small_store.units[3].offset + 20)
        with pytest.raises(CannotRead, match="shorter than it was"):
            LogWalk(files, Rules(), RecordingSink()).run(0)
