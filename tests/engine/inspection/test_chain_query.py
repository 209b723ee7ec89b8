"""A query of many keys finds the same as a walk along each chain, also in looping, wrong and truncated files."""

import random
import struct

import numpy as np
import pytest
from golden_stores import names

from engine.codec.index import Geometry, IndexEntry, IndexHeader, chain_continues, encode_entry, encode_header
from engine.codec.java import index_key_hash
from engine.codec.message import ROLLBACK, Unit
from engine.inspection import chain_query
from engine.inspection.chain_query import ENDED, UNREADABLE, UPWARDS, find_matches, hashes_of
from engine.inspection.index_reader import IndexReader
from engine.inspection.snapshot import open_store
from engine.mapped.read_only import DescriptorCache, ReadOnlyFile

GEOMETRY = Geometry(16, 200)


@pytest.fixture(params=["0", "1"], ids=["compiled", "plain"])
def _twin(request, monkeypatch):
    monkeypatch.setenv("STORESCOPE_PLAIN", request.param)


pytestmark = pytest.mark.usefixtures("_twin")


def write_index(path, hashes, count=None, seconds=lambda n: n):
    """Write an index file with one entry per hash, linked as a broker links them."""
    slots = [0] * GEOMETRY.slots
    data = bytearray(GEOMETRY.file_size)
    for number, key_hash in enumerate(hashes, 1):
        slot = key_hash % GEOMETRY.slots
        entry = IndexEntry(key_hash, 1000 * number, seconds(number), slots[slot])
        position = GEOMETRY.entry_position(number)
        data[position : position + 20] = encode_entry(entry)
        slots[slot] = number
    header = IndexHeader(1_000_000, 2_000_000, 0, 0, 16, len(hashes) + 1 if count is None else count)
    data[:40] = encode_header(header)
    data[40 : 40 + 64] = struct.pack(">16i", *slots)
    path.write_bytes(bytes(data[: GEOMETRY.file_size]))
    return reader(path)


def reader(path):
    file = ReadOnlyFile(str(path), 0, path.stat().st_size, DescriptorCache())
    return IndexReader(file, GEOMETRY, "given")


def patch(path, position, value):
    with path.open("r+b") as file:
        file.seek(position)
        file.write(value)


def offsets_by_steps(index, expected, begin, end, max_count):
    """Return commit-log offsets by the single-entry codec."""
    header, phy_offsets = index.header, []
    number = index.slot(expected % index.slots)
    while 0 < number <= header.index_count and len(phy_offsets) < max_count:
        entry = index.entry(number)
        if entry is None or entry.time_diff < 0:
            break
        time = header.begin_timestamp + entry.time_diff * 1000
        if entry.key_hash == expected and begin <= time <= end:
            phy_offsets.append(entry.phy_offset)
        if not chain_continues(entry.prev, number, header.index_count) or time < begin:
            break
        number = entry.prev
    return phy_offsets


def test_every_key_and_its_collisions(tmp_path):
    rng = random.Random(5)
    hashes = [rng.randrange(60) for _ in range(150)]
    index = write_index(tmp_path / "i", hashes)
    expected = np.arange(80, dtype=np.int32)
    for begin, end, max_count in ((-1, 1 << 60, 64), (1_040_000, 1_090_500, 64), (0, 1 << 60, 1)):
        matches = find_matches(index, expected, begin, end, max_count)
        for key in range(80):
            assert matches.offset[matches.key == key].tolist() == offsets_by_steps(index, key, begin, end, max_count)
        assert set(matches.state) == {ENDED}


def test_many_keys_read_the_slots_at_once_and_find_the_same(tmp_path, monkeypatch):
    index = write_index(tmp_path / "i", [random.Random(4).randrange(60) for _ in range(150)])
    expected = np.arange(80, dtype=np.int32)
    at_once = find_matches(index, expected)
    monkeypatch.setattr(chain_query, "BYTES_A_READ", 0)
    for bulk_column, single_column in zip(at_once, find_matches(index, expected), strict=True):
        assert bulk_column.tolist() == single_column.tolist()


def test_matches_are_counted_key_by_key_and_newest_first(tmp_path):
    index = write_index(tmp_path / "i", [7, 23, 7, 7])
    matches = find_matches(index, np.array([7, 23, 7, 9], np.int32))
    assert matches.key.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert matches.entry.tolist() == [4, 3, 1, 2, 4, 3, 1]


def test_more_matches_than_expected_find_room(tmp_path):
    index = write_index(tmp_path / "i", [3] * 199)
    matches = find_matches(index, np.full(50, 3, np.int32), max_matches=199)
    assert len(matches.key) == 50 * 199


def test_a_chain_that_loops_ends(tmp_path):
    path = tmp_path / "i"
    write_index(path, [5, 5, 5])
    patch(path, GEOMETRY.entry_position(1) + 16, struct.pack(">i", 3))
    matches = find_matches(reader(path), np.array([5], np.int32))
    assert (matches.entry.tolist(), matches.state.tolist()) == ([3, 2, 1], [UPWARDS])


def test_a_link_past_the_count_and_a_time_below_zero_end_a_chain(tmp_path):
    path = tmp_path / "i"
    write_index(path, [5, 5, 6, 6])
    patch(path, GEOMETRY.entry_position(2) + 16, struct.pack(">i", 150))
    patch(path, GEOMETRY.entry_position(4) + 12, struct.pack(">i", -1))
    matches = find_matches(reader(path), np.array([5, 6], np.int32))
    assert (matches.entry.tolist(), matches.state.tolist()) == ([2], [ENDED, ENDED])


@pytest.mark.parametrize(("size", "state"), [(40, UNREADABLE), (104, UNREADABLE), (104 + 45, UNREADABLE)])
def test_a_file_cut_short_after_it_was_opened(tmp_path, size, state):
    path = tmp_path / "i"
    index = write_index(path, [5, 5, 5])
    with path.open("r+b") as file:
        file.truncate(size)
    index.file.size = GEOMETRY.file_size
    matches = find_matches(index, np.array([5], np.int32))
    assert matches.state.tolist() == [state]


def test_a_file_with_no_entries(tmp_path):
    assert len(find_matches(write_index(tmp_path / "i", []), np.arange(5, dtype=np.int32)).key) == 0


@pytest.mark.parametrize("name", [name for name in names() if name.startswith(("clean", "crash-5", "ipv6"))])
def test_golden_index_files_hold_every_key_of_their_log(golden, name):
    with open_store(golden(name)) as store:
        units = [u for u in store.log.walk() if isinstance(u, Unit) and u.transaction_type != ROLLBACK][:500]
        for index in store.index_files():
            inside = [u for u in units if index.header.begin_phy_offset < u.offset < index.header.end_phy_offset]
            for unit in inside[:100]:
                for key in unit.keys:
                    assert hashes_of(unit.topic, [key]).tolist() == [index_key_hash(unit.topic, key)]
                    assert unit.offset in find_matches(index, hashes_of(unit.topic, [key]), max_matches=10_000).offset
