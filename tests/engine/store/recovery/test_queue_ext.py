"""The ext files beside a queue in recovery: where they end, and what a cut drops."""

from __future__ import annotations

import pytest

from engine.codec.consume_queue import EXT_BASE
from engine.codec.cq_ext import MIN_UNIT_BYTES, CqExtUnit, encode
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.store.recovery.queue_ext import RecoveredExt

FILE_SIZE = 200
UNIT = encode(CqExtUnit(0, MIN_UNIT_BYTES + 1, 7, 1, b"\1"))


@pytest.fixture
def ext(tmp_path):
    """Two ext files: six units in the first, three in the second."""
    for number, count in ((0, 6), (1, 3)):
        (tmp_path / f"{number * FILE_SIZE:020}").write_bytes((UNIT * count).ljust(FILE_SIZE, b"\0"))
    return RecoveredExt(FileSequence([tmp_path], DescriptorCache(), FILE_SIZE))


def test_the_end_is_behind_the_last_unit_of_the_last_file(ext):
    ext.recover(0)
    assert ext.end == FILE_SIZE + 3 * len(UNIT)
    assert ext.cut("Orders", 0) is None


def test_units_behind_the_queues_last_address_are_cut_and_later_files_deleted(ext):
    ext.recover(EXT_BASE + 2 * len(UNIT))
    assert ext.end == 3 * len(UNIT)
    cut = ext.cut("Orders", 0)
    assert cut is not None
    assert (cut.end_offset, cut.bytes_dropped) == (3 * len(UNIT), 6 * len(UNIT))
    assert [path.rpartition("/")[2] for path in cut.files_deleted] == [f"{FILE_SIZE:020}"]


def test_files_before_the_first_address_are_deleted(ext):
    ext.recover(0)
    ext.forget_before(EXT_BASE + FILE_SIZE + 1)
    assert [file.start_offset for file in ext.files] == [FILE_SIZE]


def test_an_empty_log_takes_every_file(ext):
    ext.destroy()
    assert (ext.files, ext.end) == ([], 0)
    cut = ext.cut("Orders", 0)
    assert cut is not None
    assert cut.bytes_dropped == 9 * len(UNIT)
