"""Index files: header and entries in both directions and in bulk, numbering, and the step along a chain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import index
from engine.codec import index as codec
from engine.codec.dtypes import INDEX_ENTRY, INDEX_SLOT
from engine.codec.index import Geometry, IndexEntry, IndexHeader, derive_geometry, next_header
from engine.codec.java import index_key_hash
from engine.files.layout import INDEX_ENTRIES, INDEX_SLOTS

HEADERS = [
    pytest.param(
        IndexHeader(1, 2, 3, 4, 5, 6),
        "0000000000000001000000000000000200000000000000030000000000000004" + "0000000500000006",
        id="small",
    ),
    pytest.param(IndexHeader(0, 0, 0, 0, 0, 1), "00" * 36 + "00000001", id="a new file"),
    pytest.param(IndexHeader(-1, -1, -1, -1, -1, -1), "ff" * 40, id="below zero"),
]


@pytest.mark.parametrize(("header", "wire"), HEADERS)
def test_writes_a_header(header, wire):
    assert index.encode_header(header).hex() == wire


@pytest.mark.parametrize(("header", "wire"), HEADERS)
def test_reads_a_header(header, wire):
    assert index.decode_header(b"\xee" + bytes.fromhex(wire), 1) == header


COUNTS = [(1, 0), (2, 1), (400, 399), (0, 0), (-7, 0)]


@pytest.mark.parametrize(("stored", "entries"), COUNTS)
def test_a_count_is_the_number_of_the_next_entry(stored, entries):
    assert IndexHeader(0, 0, 0, 0, 0, stored).entries == entries


ENTRIES = [
    pytest.param(IndexEntry(2746024, 1234, 5, 0), "0029e6a800000000000004d20000000500000000", id="first of its slot"),
    pytest.param(IndexEntry(0, 0, 0x7FFFFFFF, 20_000_000), "0000000000000000000000007fffffff01312d00", id="chained"),
    pytest.param(IndexEntry(-1, -1, -1, -1), "ff" * 20, id="below zero"),
]


@pytest.mark.parametrize(("entry", "wire"), ENTRIES)
def test_writes_an_entry(entry, wire):
    assert index.encode_entry(entry).hex() == wire


@pytest.mark.parametrize(("entry", "wire"), ENTRIES)
def test_reads_an_entry(entry, wire):
    assert index.decode_entry(b"\xee" + bytes.fromhex(wire), 1) == entry


@pytest.mark.parametrize(("entry", "wire"), ENTRIES)
def test_reads_entries_in_bulk(entry, wire):
    (row,) = np.frombuffer(bytes.fromhex(wire), INDEX_ENTRY).tolist()
    assert row == (entry.key_hash, entry.phy_offset, entry.time_diff, entry.prev)


@given(st.binary(min_size=20, max_size=100))
def test_bulk_and_single_agree_on_any_bytes(data):
    rows = np.frombuffer(data[: len(data) // 20 * 20], INDEX_ENTRY).tolist()
    assert [IndexEntry(*row) for row in rows] == [
        index.decode_entry(data, position) for position in range(0, len(data) - 19, 20)
    ]


def test_slots_are_big_endian():
    assert np.frombuffer(bytes.fromhex("00000001ffffffff"), INDEX_SLOT).tolist() == [1, -1]


def test_the_default_geometry_of_the_format_notes():
    geometry = Geometry(5_000_000, 20_000_000)
    assert geometry.file_size == 420_000_040
    slot = index_key_hash("TopicTest", "k1") % geometry.slots
    assert geometry.slot_position(slot) == 10_984_136
    assert geometry.entry_position(1) == 20_000_060


STEPS = [
    pytest.param(0, 5, 10, False, id="the end of a chain"),
    pytest.param(-1, 5, 10, False, id="below zero"),
    pytest.param(4, 5, 10, True, id="the next older"),
    pytest.param(7, 5, 10, True, id="forward, within the count"),
    pytest.param(10, 5, 10, True, id="the count itself"),
    pytest.param(11, 5, 10, False, id="past the count"),
    pytest.param(5, 5, 10, False, id="itself"),
]


@pytest.mark.parametrize(("prev", "entry", "count", "on"), STEPS)
def test_the_step_along_a_chain(prev, entry, count, on):
    assert index.chain_continues(prev, entry, count) is on


def test_an_entrys_time_is_floored_to_seconds_from_the_files_begin():
    header = IndexHeader(1_700_000_000_500, 0, 0, 0, 0, 2)
    assert index.entry_time(header, IndexEntry(1, 0, 3, 0)) == 1_700_000_003_500


WINDOWS = [
    pytest.param(0, 99, False, id="before"),
    pytest.param(0, 100, True, id="ends at the begin"),
    pytest.param(100, 200, True, id="the same"),
    pytest.param(99, 201, True, id="encloses"),
    pytest.param(120, 130, True, id="enclosed"),
    pytest.param(200, 300, True, id="begins at the end"),
    pytest.param(201, 300, False, id="after"),
    pytest.param(99, 200, True, id="ends at the end"),
]


@pytest.mark.parametrize(("begin", "end", "matched"), WINDOWS)
def test_the_window_of_a_query(begin, end, matched):
    assert index.time_matched(IndexHeader(100, 200, 0, 0, 0, 1), begin, end) is matched


DEFAULT = codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES)


class GrowingIndexFile:
    """A file of the default length. Its slots lead to ``ahead`` more entries of one key than its header counts."""

    size = DEFAULT.file_size

    def __init__(self, counted: int, ahead: int, key_hash: int = 7) -> None:
        header = codec.IndexHeader(1, 2, 3, 4, 1, counted + 1)
        self.parts = {0: codec.encode_header(header)}
        newest_entry = counted + ahead
        self.parts[DEFAULT.slot_position(key_hash)] = newest_entry.to_bytes(4, "big")
        for number in range(1, newest_entry + 1):
            self.parts[DEFAULT.entry_position(number)] = codec.encode_entry(
                codec.IndexEntry(key_hash, 100 * number, 0, number - 1)
            )
        self.most = 0

    def read(self, position: int, size: int) -> bytes:
        self.most = max(self.most, size)
        return self.parts.get(position, bytes(min(size, 64)))[:size]


def test_a_header_behind_its_slots_does_not_cause_a_read_of_the_whole_file() -> None:
    """Beside a fast writer, the newest entry's slot already led to an entry that the header did not count. Then every
    number of slots was tried over all 400 MiB of the file, and the window used a gigabyte for a moment.
    """
    for ahead in (0, 1, 50):
        file = GrowingIndexFile(20, ahead)
        assert derive_geometry(file)[0] == DEFAULT
        assert file.most <= codec.HEADER_SIZE


class LateEntryFile(GrowingIndexFile):
    """A file whose newest entry is counted shortly before its bytes can be read."""

    def __init__(self) -> None:
        super().__init__(20, 0)
        self.newest = DEFAULT.entry_position(20)
        self.looks = 0

    def read(self, position: int, size: int) -> bytes:
        if position == self.newest:
            self.looks += 1
            if self.looks == 1:
                self.most = max(self.most, size)
                return bytes(size)
        return super().read(position, size)


def test_an_entry_counted_before_its_bytes_exist_is_read_again() -> None:
    file = LateEntryFile()
    assert derive_geometry(file)[0] == DEFAULT
    assert file.looks == 2
    assert file.most <= codec.HEADER_SIZE


class MemoryIndexFile:
    """An index file in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.reads = 0

    def read(self, position: int, size: int) -> bytes:
        self.reads += 1
        return self.data[position : position + size]


def index_file(geometry: Geometry, hashes: list[int]) -> MemoryIndexFile:
    """Make an index file with an entry for each hash, linked into the chains of its slots."""
    data = bytearray(geometry.file_size)
    data[: codec.HEADER_SIZE] = codec.encode_header(IndexHeader(1, 2, 3, 4, 1, len(hashes) + 1))
    heads: dict[int, int] = {}
    for number, key_hash in enumerate(hashes, 1):
        slot = key_hash % geometry.slots
        entry = codec.encode_entry(IndexEntry(key_hash, 100 * number, 0, heads.get(slot, 0)))
        data[geometry.entry_position(number) : geometry.entry_position(number) + len(entry)] = entry
        data[geometry.slot_position(slot) : geometry.slot_position(slot) + 4] = number.to_bytes(4, "big")
        heads[slot] = number
    return MemoryIndexFile(bytes(data))


HASHES = [index_key_hash("Orders", f"order-{number % 37}") for number in range(90)]


@pytest.mark.parametrize("geometry", [Geometry(100, 400), Geometry(17, 91), Geometry(200_000, 210_000)])
def test_the_number_of_slots_is_derived_from_the_chains(geometry: Geometry) -> None:
    """The number of slots is not stored in the file. The last of these files is tried in bulk."""
    assert derive_geometry(index_file(geometry, HASHES))[0] == geometry


def test_a_few_damaged_links_do_not_hide_the_number_of_slots() -> None:
    geometry = Geometry(100, 400)
    file = index_file(geometry, HASHES)
    data = bytearray(file.data)
    for number in (5, 9):
        position = geometry.entry_position(number)
        data[position : position + 4] = b"\xff" * 4
    assert derive_geometry(MemoryIndexFile(bytes(data)))[0] == geometry


def test_a_file_without_a_derivable_geometry_has_a_reason() -> None:
    geometry = Geometry(100, 400)
    file = index_file(geometry, HASHES)
    no_newest, no_chains = bytearray(file.data), bytearray(file.data)
    newest = geometry.entry_position(len(HASHES))
    no_newest[newest : newest + 4] = b"\xff" * 4
    for number in range(1, len(HASHES)):
        position = geometry.entry_position(number)
        no_chains[position : position + 4] = b"\xff" * 4
    # one entry of hash 0 in slot 0, and zeros at the position that a file with more slots would use
    vague = index_file(Geometry(5, 3), [0])
    for data, reason in (
        (b"", "the file has 0 bytes, a header has 40"),
        (file.data[:39], "the file has 39 bytes, a header has 40"),
        (file.data + b"x", f"no numbers of slots and entries give a length of {file.size + 1:,} bytes"),
        (index_file(geometry, []).data, "the file has no entries to try a number of slots against"),
        (bytes(no_newest), f"no number of slots agrees with the chains in a file of {file.size:,} bytes"),
        (bytes(no_chains), f"no number of slots agrees with the chains in a file of {file.size:,} bytes"),
        (file.data[: codec.HEADER_SIZE + 8], "no number of slots agrees with the chains in a file of 48 bytes"),
        (vague.data, "several numbers of slots agree with the chains: 5, 10"),
    ):
        assert derive_geometry(MemoryIndexFile(data)) == (None, reason)


class SparseIndexFile(GrowingIndexFile):
    """A file of the default length that is almost all zeros. It counts the reads."""

    reads = 0

    def read(self, position: int, size: int) -> bytes:
        if size > codec.HEADER_SIZE:
            self.reads += 1
            return b""
        return super().read(position, size)


@pytest.mark.parametrize("spoil", ["hash", "slot", "loop", "other slot", "short"])
def test_the_default_geometry_is_assumed_only_if_the_newest_entry_agrees(spoil: str) -> None:
    file = SparseIndexFile(20, 2)
    newest, ahead, slot = DEFAULT.entry_position(20), DEFAULT.entry_position(22), DEFAULT.slot_position(7)
    if spoil == "hash":
        file.parts[newest] = codec.encode_entry(IndexEntry(-5, 1, 0, 0))
    elif spoil == "slot":
        file.parts[slot] = b"\0\0"
    elif spoil == "loop":
        file.parts[ahead] = codec.encode_entry(IndexEntry(7, 1, 0, 22))
    elif spoil == "other slot":
        file.parts[ahead] = codec.encode_entry(IndexEntry(8, 1, 0, 21))
    else:
        file.parts[newest] = b"\0" * 19
    assert derive_geometry(file)[0] is None
    assert file.reads == 1


def test_a_new_file_begins_at_the_end_of_the_full_one() -> None:
    assert next_header(IndexHeader(1, 20, 3, 40, 5, 6)) == IndexHeader(20, 20, 40, 40, 0, 1)
    assert next_header(IndexHeader(1, -20, 3, -40, 5, 6)) == IndexHeader(0, 0, 0, 0, 0, 1)
