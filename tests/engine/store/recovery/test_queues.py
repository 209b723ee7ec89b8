"""The ext files of a queue in recovery: where they end, and what a cut drops."""

from __future__ import annotations

import struct
from dataclasses import replace

import agree
import handmade_stores
import pytest
from handmade_stores import HandmadeStore, write_queue

from engine.codec import cq_ext
from engine.codec.consume_queue import EXT_BASE
from engine.codec.cq_ext import MIN_UNIT_BYTES, CqExtUnit, encode
from engine.config import MessageStoreConfig
from engine.inspection import open_store, recovery
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.store.recovery.plan import ExtCut
from engine.store.recovery.queues import RecoveredExt

FILE_SIZE = 200
EXT_UNIT = encode(CqExtUnit(0, MIN_UNIT_BYTES + 1, 7, 1, b"\1"))


@pytest.fixture
def ext(tmp_path):
    """Two ext files: six units in the first, three in the second."""
    for number, count in ((0, 6), (1, 3)):
        (tmp_path / f"{number * FILE_SIZE:020}").write_bytes((EXT_UNIT * count).ljust(FILE_SIZE, b"\0"))
    return RecoveredExt(FileSequence([tmp_path], DescriptorCache(), FILE_SIZE))


def test_the_end_is_behind_the_last_unit_of_the_last_file(ext):
    ext.recover(0)
    assert ext.end == FILE_SIZE + 3 * len(EXT_UNIT)
    assert ext.cut("Orders", 0) is None


def test_units_behind_the_queues_last_address_are_cut_and_later_files_deleted(ext):
    ext.recover(EXT_BASE + 2 * len(EXT_UNIT))
    assert ext.end == 3 * len(EXT_UNIT)
    cut = ext.cut("Orders", 0)
    assert cut is not None
    assert (cut.end_offset, cut.bytes_dropped) == (3 * len(EXT_UNIT), 6 * len(EXT_UNIT))
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
    assert cut.bytes_dropped == 9 * len(EXT_UNIT)


EXT_SIZE = 64
UNIT = 28  # each file has two units, an end mark and six bytes


def ext_bytes(count):
    """Return a queue's ext files by their start offsets: ``count`` units, two per file."""
    files = {}
    for number in range(count):
        start = number // 2 * EXT_SIZE
        data = files.setdefault(start, bytearray(EXT_SIZE))
        position = number % 2 * UNIT
        data[position : position + UNIT] = cq_ext.encode(
            cq_ext.CqExtUnit(start + position, UNIT, number, 0, b"\x01" * 8)
        )
        if number % 2:
            struct.pack_into(">h", data, 2 * UNIT, cq_ext.END_MARK)
    return files


def address(number):
    return cq_ext.EXT_BASE + number // 2 * EXT_SIZE + number % 2 * UNIT


def store_with_ext(root, count=5, written=5, first_offset=0, abort=False):
    """Make one queue of ``count`` entries that point into an ext queue; only ``written`` of them are in the queue's
    file.
    """
    store = HandmadeStore(first_offset=first_offset)
    for _ in range(count):
        store.put("Orders", 0, body=b"x" * 300)
    store.write(root, queues=False, abort=abort)
    data = b"".join(
        struct.pack(">qiq", unit.offset, unit.size, address(number))
        for number, unit in enumerate(store.units[:written])
    )
    write_queue(root / "consumequeue" / "Orders" / "0", data, handmade_stores.QUEUE_SIZE)
    folder = root / "consumequeue_ext" / "Orders" / "0"
    folder.mkdir(parents=True)
    for start, ext_byte in ext_bytes(count).items():
        (folder / f"{start:020d}").write_bytes(ext_byte)
    return store, folder


def cuts(root, release="5.3", config=None):
    with open_store(root, config) as store:
        plan = recovery.plan(store, release)
    return plan.ext_cuts, plan


@pytest.mark.parametrize("release", ["5.3", "4.9"])
@pytest.mark.parametrize("count", [1, 4, 5])
def test_ext_files_that_end_where_the_queue_ends_lose_nothing(tmp_path, release, count):
    store_with_ext(tmp_path, count, count)
    results, plan = cuts(tmp_path, release)
    assert results == ()
    assert plan.record()["extCuts"] == []


@pytest.mark.parametrize("release", ["5.3", "4.9"])
def test_units_behind_the_last_address_of_the_queue_are_cut(tmp_path, release):
    _, folder = store_with_ext(tmp_path, count=6, written=5)
    results, plan = cuts(tmp_path, release)
    assert results == (ExtCut("Orders", 0, 2 * EXT_SIZE + UNIT, UNIT + 2, ()),)
    assert plan.files_deleted == ()
    assert plan.bytes_to_read > EXT_SIZE
    assert folder.is_dir()


def test_files_behind_the_cut_are_deleted_and_named(tmp_path):
    _, folder = store_with_ext(tmp_path, count=6, written=1)
    removed = tuple(str(folder / f"{start:020d}") for start in (EXT_SIZE, 2 * EXT_SIZE))
    results, plan = cuts(tmp_path)
    assert results == (ExtCut("Orders", 0, UNIT, UNIT + 2 + 2 * (2 * UNIT + 2), removed),)
    assert plan.files_deleted == removed
    assert plan.record()["extCuts"] == [
        {"topic": "Orders", "queueId": 0, "endOffset": UNIT, "bytesDropped": 146, "filesDeleted": list(removed)}
    ]


def test_a_cut_at_a_file_s_start_keeps_the_file(tmp_path):
    """A broker tests whether the file begins after the cut. A file that begins exactly at the cut becomes the
    append file.
    """
    _, folder = store_with_ext(tmp_path, count=3, written=2)
    (folder / f"{0:020d}").write_bytes(bytes(ext_bytes(2)[0])[: 2 * UNIT] + bytes(EXT_SIZE - 2 * UNIT))
    head = struct.pack(">hqqh", EXT_SIZE - UNIT, 1, 0, EXT_SIZE - UNIT - 20)
    first_file = folder / f"{0:020d}"
    first_file.write_bytes(first_file.read_bytes()[:UNIT] + head + bytes(EXT_SIZE - UNIT - 20))
    (cut,) = cuts(tmp_path)[0]
    assert (cut.end_offset, cut.bytes_dropped, cut.files_deleted) == (EXT_SIZE, UNIT, ())


@pytest.mark.parametrize("position", [0, UNIT])
def test_damage_ends_the_walk_and_an_address_that_holds_no_unit_cuts_nothing(tmp_path, position):
    """A broker looks up the last address, but there is no unit after the end that it has just found."""
    _, folder = store_with_ext(tmp_path, count=2, written=2)
    file = folder / f"{0:020d}"
    data = bytearray(file.read_bytes())
    data[position : position + 2] = bytes(2)
    file.write_bytes(data)
    (cut,) = cuts(tmp_path)[0]
    assert cut.end_offset == position
    assert cut.files_deleted == ()


def test_a_length_behind_the_file_s_end_ends_the_walk(tmp_path):
    _, folder = store_with_ext(tmp_path, count=1, written=1)
    file = folder / f"{0:020d}"
    data = bytearray(file.read_bytes())
    struct.pack_into(">h", data, UNIT, 32767)
    file.write_bytes(data)
    assert cuts(tmp_path)[0] == (ExtCut("Orders", 0, UNIT, 2, ()),)


def test_a_queue_without_addresses_keeps_the_units_as_the_walk_finds_them(tmp_path):
    store_with_ext(tmp_path, count=5, written=0)
    results, _ = cuts(tmp_path)
    assert results == ()


def test_a_queue_cut_by_the_log_s_end_keeps_its_ext_units(tmp_path):
    """RocketMQ forgets the address when it cuts at the log's end. The next start cuts the ext files, not this one."""
    sample, _ = store_with_ext(tmp_path, abort=True)
    file = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    data[sample.units[3].offset :] = bytes(len(data) - sample.units[3].offset)
    file.write_bytes(data)
    results, plan = cuts(tmp_path)
    assert plan.queues[0].max_offset == 3
    assert results == ()


@pytest.mark.parametrize("release", ["5.3", "4.9"])
def test_files_before_the_first_entry_of_the_log_are_deleted(tmp_path, release):
    store, folder = store_with_ext(tmp_path, count=18, written=18)
    assert store.end > handmade_stores.LOG_SIZE
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    first_number = next(number for number, unit in enumerate(store.units) if unit.offset >= handmade_stores.LOG_SIZE)
    begins = address(first_number) - cq_ext.EXT_BASE
    removed = {str(folder / f"{start:020d}") for start in ext_bytes(18) if start + EXT_SIZE < begins}
    (cut,), plan = cuts(tmp_path, release)
    assert removed
    assert set(cut.files_deleted) == removed
    assert removed <= set(plan.files_deleted)


def test_an_empty_log_destroys_the_ext_files_with_the_queue(tmp_path):
    _, folder = store_with_ext(tmp_path)
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    (results,), plan = cuts(tmp_path)
    assert (results.end_offset, len(results.files_deleted)) == (0, 3)
    assert {path for path in plan.files_deleted if "_ext" in path} == {str(path) for path in folder.iterdir()}


def test_a_broker_without_ext_files_leaves_them_alone(tmp_path):
    store_with_ext(tmp_path, count=6, written=1)
    off = replace(MessageStoreConfig(), given=frozenset({"brokerRole"}))
    assert cuts(tmp_path, config=off)[0] == ()
    on = replace(off, enable_consume_queue_ext=True)
    assert cuts(tmp_path, config=on)[0]


def test_the_cut_is_printed(tmp_path):
    store_with_ext(tmp_path, count=6, written=5)
    status, out, _ = agree.command("recover", "--plan", tmp_path)
    assert status == 0
    assert "Cut: the ext files of Orders/0 at 156, 30 B dropped" in out
