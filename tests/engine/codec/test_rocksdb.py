"""Folders that RocksDB keeps for a broker are recognised and measured, not decoded."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.dledger import NamedFile
from engine.codec.rocksdb import Manifest, decode, first_sequence, rocks_folder

FILES_of_rocksdb = [
    NamedFile("CURRENT", 16),
    NamedFile("MANIFEST-000005", 400),
    NamedFile("000008.sst", 1000),
    NamedFile("000009.sst", 2000),
    NamedFile("000010.log", 300),
    NamedFile("OPTIONS-000007", 50),
    NamedFile("LOG", 70),
    NamedFile("IDENTITY", 36),
]


def test_queues_in_rocksdb_are_named_with_their_sizes():
    results = rocks_folder("consumequeue", FILES_of_rocksdb, b"MANIFEST-000005\n")
    assert (results.tables, results.table_bytes, results.write_ahead_logs, results.write_ahead_bytes) == (
        2,
        3000,
        1,
        300,
    )
    assert (results.manifest, results.is_valid, results.other_bytes) == ("MANIFEST-000005", True, 572)


CASES = [
    (["CURRENT", "MANIFEST-000001"], b"MANIFEST-000001\n", True),
    (["CURRENT", "MANIFEST-000001"], None, True),
    (["CURRENT", "MANIFEST-000001"], b"MANIFEST-000002\n", False),
    (["CURRENT", "MANIFEST-000001"], b"garbage", False),
    (["MANIFEST-000001", "000002.sst"], None, False),
    (["CURRENT", "000002.sst"], b"MANIFEST-000001\n", False),
]


@pytest.mark.parametrize(("names", "current", "is_valid"), CASES)
def test_validity(names, current, is_valid):
    results = rocks_folder("kvStore", [NamedFile(name, 1) for name in names], current)
    assert results.is_valid is is_valid


@pytest.mark.parametrize(
    "names", [[], ["CURRENT"], ["000001.sst"], ["00000000000000000000"], ["LOG", "LOCK"], ["TopicA", "TopicB"]]
)
def test_folders_without_a_rocksdb(names):
    assert rocks_folder("consumequeue", [NamedFile(name, 1) for name in names]) is None


@given(st.lists(st.text(max_size=12)), st.none() | st.binary(max_size=30))
def test_any_names_give_an_answer(names, current):
    rocks_folder("x", [NamedFile(name, 1) for name in names], current)
    results = rocks_folder("x", [*FILES_of_rocksdb, *(NamedFile(name, 1) for name in names)], current)
    assert results is not None


@pytest.mark.golden
def test_file_queues_of_real_stores_are_no_rocksdb(golden):
    for folder in ("consumequeue", "config", "index"):
        files = [NamedFile(path.name, path.stat().st_size) for path in (golden("broker-pop") / folder).iterdir()]
        assert rocks_folder(folder, files) is None


BLOCK_BYTES = 32 << 10


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def string(text: bytes) -> bytes:
    return varint(len(text)) + text


def new_file(number: int, size: int) -> bytes:
    fields = varint(2) + string(b"creation time") + varint(1)
    return b"".join(
        (varint(103), varint(0), varint(number), varint(size), string(b"a"), string(b"z"), varint(1), varint(9), fields)
    )


def in_family(number: int, *edits: bytes) -> bytes:
    return varint(200) + varint(number) + b"".join(edits)


def log_of(*edits: bytes) -> bytes:
    """Write edits as log records, split where a block ends."""
    data = bytearray()
    for edit in edits:
        is_first_piece, remaining_edit = True, edit
        while remaining_edit or is_first_piece:
            room = BLOCK_BYTES - len(data) % BLOCK_BYTES - 7
            if room < 0:
                data += bytes(room + 7)
                continue
            piece, remaining_edit = remaining_edit[:room], remaining_edit[room:]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[
                is_first_piece, not remaining_edit
            ]
            data += struct.pack("<IHB", 0, len(piece), kind) + piece
            is_first_piece = False
    return bytes(data)


EDITS = (
    varint(1) + string(b"leveldb.BytewiseComparator"),
    in_family(1, varint(201) + string(b"timer")),
    in_family(0, new_file(7, 700), new_file(8, 800)),
    in_family(1, new_file(9, 900), varint(2) + varint(10), varint(300) + varint(0)),
    in_family(0, varint(6) + varint(0) + varint(7)),
    varint((1 << 13) + 5) + string(b"a field of a later release"),
)


def test_edits_add_up_to_families_and_live_files():
    manifest = decode(log_of(*EDITS))
    assert manifest is not None
    assert manifest.families == {0: "default", 1: "timer"}
    assert manifest.bytes_by_family() == {"default": 800, "timer": 900}


def test_a_family_that_was_dropped_is_gone():
    manifest = decode(log_of(*EDITS, in_family(1, varint(202))))
    assert manifest is not None
    assert manifest.bytes_by_family() == {"default": 800}


def test_an_edit_longer_than_a_block_comes_in_pieces():
    many = in_family(0, *(new_file(number, 1) for number in range(100, 4100)))
    manifest = decode(log_of(many, in_family(0, new_file(5000, 3))))
    assert manifest is not None
    assert manifest.bytes_by_family() == {"default": 4003}


@pytest.mark.parametrize("data", [b"", b"m" * 30, log_of(varint(77)), log_of(varint(6) + varint(0))])
def test_bytes_without_a_manifest_give_no_edits(data):
    assert decode(data) is None


def test_fields_that_do_not_count_are_skipped():
    compact_pointer = varint(5) + varint(1) + string(b"key")
    next_file = varint(3) + varint(12)
    last_sequence = varint(4) + varint(99)
    blob_file = varint(400) + varint(1) * 3 + string(b"") * 2 + varint(1) + string(b"x") + varint(0)
    blob_garbage = varint(401) + varint(1) * 3 + varint(0)
    manifest = decode(log_of(*EDITS, compact_pointer + next_file + last_sequence + blob_file + blob_garbage))
    assert manifest is not None
    assert (manifest.bytes_by_family(), manifest.last_sequence) == ({"default": 800, "timer": 900}, 99)


def test_the_oldest_write_ahead_log_counts():
    logs = in_family(0, varint(2) + varint(14)), in_family(1, varint(2) + varint(10))
    manifest = decode(log_of(*EDITS, *logs))
    assert manifest is not None
    assert manifest.first_log_number == 10
    assert manifest.live_files() == {8: 800, 9: 900}


@pytest.mark.parametrize("edit", [varint(9) + b"\xff" * 10, varint(1) + varint(9) + b"short"])
def test_a_number_or_a_text_beyond_its_edit_gives_no_manifest(edit):
    assert decode(log_of(*EDITS, edit)) is None


def recycled(piece: bytes, kind: int) -> bytes:
    """A record of a log file that was used before: its kind is 4 higher, and the log's number follows."""
    return struct.pack("<IHBI", 0, len(piece), kind + 4, 7) + piece


def test_the_first_write_of_a_write_ahead_log():
    batch = struct.pack("<QI", 4711, 1) + b"writes"
    assert first_sequence(log_of(batch, batch)) == 4711
    assert first_sequence(recycled(batch, 1)) == 4711
    assert first_sequence(log_of(batch[:11])) is None
    assert first_sequence(bytes(100)) is None
    assert first_sequence(b"") is None


def test_an_edit_torn_by_a_crash_is_ignored():
    log = log_of(*EDITS)
    manifest = decode(log + log_of(in_family(0, new_file(11, 1100)))[:-3])
    assert manifest == decode(log)


@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_bytes_give_an_answer(data, place):
    log = log_of(*EDITS)
    for manifest in (decode(data), decode(log[:place] + data + log[place:])):
        assert manifest is None or isinstance(manifest, Manifest)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "folder", "families"),
    [
        ("rocks-5.5.1", "consumequeue", {"default": 46509, "offset": 1621}),
        ("rocksdb-timer-index-5.5.1", "rocksdbstore", {"default": 105131, "timer": 1954}),
        ("clean-5.5.1", "rocksdbstore", {}),
        ("rocksdb-orders-5.5.1", "config/topics", {"default": 6868, "kvDataVersion": 2535}),
    ],
)
def test_manifests_of_brokers(golden, name, folder, families):
    place = golden(name) / folder
    manifest = decode(next(place.glob("MANIFEST-*")).read_bytes())
    assert manifest is not None
    assert manifest.bytes_by_family() == families
    live = {f"{number:06d}.sst" for files in manifest.files.values() for number in files}
    assert live == {path.name for path in place.glob("*.sst")}
