"""One index file: header, slots and entries, and the error for an invalid file."""

from __future__ import annotations

import pytest
from handmade_stores import SLOTS, HandmadeStore, jhash
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.index import Geometry, IndexEntry, IndexHeader, encode_entry
from engine.errors import CorruptUnit
from engine.inspection import open_store
from engine.inspection.index_reader import MAX_BAR_LENGTH, cell_of, count_slots, stored_count


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(6):
        store.put("Orders", keys=f"K{number}")
    return store.write(tmp_path / "store")


def test_entries_are_those_of_the_header_and_a_slot_leads_to_the_newest(root):
    with open_store(root) as store:
        (reader,) = store.index_files()
        count = reader.header.entries
        assert (reader.slots, reader.last_entry, stored_count(reader.file)) == (SLOTS, count, count)
        results = dict(reader.entries())
        assert list(results) == list(range(1, count + 1))
        expected = abs(jhash("Orders#K5"))
        number = reader.slot(expected % SLOTS)
        while results[number].key_hash != expected:
            number = results[number].prev
        assert store.log.unit_at(results[number].phy_offset).keys == ["K5"]
        assert reader.entry(number) == results[number]


def test_numbers_outside_the_file_are_none(root):
    with open_store(root) as store:
        (reader,) = store.index_files()
        assert reader.entry(0) is None
        assert reader.entry(10**6) is None
        assert list(reader.entries(3, 5))[-1][0] == 4


def test_a_file_shorter_than_a_header_is_an_error(root):
    file = min((root / "index").iterdir())
    file.write_bytes(bytes(12))
    with open_store(root) as store:
        (reader,) = store.index_files()
        with pytest.raises(CorruptUnit, match="expected a header of 40 bytes, found 12"):
            _ = reader.header
        assert stored_count(reader.file) == 0
        with pytest.raises(CorruptUnit, match="not known"):
            _ = reader.slots


def table(hashes: list[int], slots: int):
    """Return the bytes of an index file with these key hashes as ``read(position, size)``, with header and geometry."""
    geometry = Geometry(slots, len(hashes) + 1)
    body = b"".join(encode_entry(IndexEntry(value, 0, 0, 0)) for value in hashes)
    data = bytes(geometry.entry_position(1)) + body
    header = IndexHeader(0, 0, 0, 0, 0, len(hashes) + 1)
    return lambda position, size: data[position : position + size], header, geometry


@given(st.lists(st.integers(0, (1 << 31) - 1), max_size=60), st.integers(1, 40), st.integers(1, 12))
def test_every_entry_counts_for_its_slot_once(hashes: list[int], slots: int, cells: int) -> None:
    load = count_slots(*table(hashes, slots), cells)
    lengths = [sum(value % slots == slot for value in hashes) for slot in range(slots)]
    assert load.used == sum(length > 0 for length in lengths)
    assert load.longest == max(lengths)
    assert lengths[load.longest_slot] == load.longest
    assert sum(load.histogram) == slots
    assert load.histogram[MAX_BAR_LENGTH] == sum(length >= MAX_BAR_LENGTH for length in lengths)
    assert load.complete
    for slot in range(slots):
        assert 0 <= cell_of(slot, slots, len(load.cells)) < len(load.cells)


@given(st.integers(1, 10_000), st.integers(1, 900))
def test_cells_follow_the_slots_without_a_gap(slots: int, cells: int) -> None:
    count = min(cells, slots)
    actual_cells = [cell_of(slot, slots, count) for slot in range(slots)]
    assert actual_cells == sorted(actual_cells)
    assert set(actual_cells) == set(range(count))


def test_hashes_below_zero_are_counted_apart() -> None:
    load = count_slots(*table([3, -1, 3], 10))
    assert (load.bad, load.longest, load.entries) == (1, 2, 3)


def test_a_stopped_or_truncated_count_is_incomplete() -> None:
    read, header, geometry = table([1, 2, 3], 10)
    assert not count_slots(read, header, geometry, cancelled=lambda: True).complete
    large_header = IndexHeader(0, 0, 0, 0, 0, 100)
    reports: list[tuple[int, int]] = []
    load = count_slots(
        read, large_header, Geometry(10, 100), progress=lambda done, total: reports.append((done, total))
    )
    assert (load.entries, load.complete) == (3, False)
    assert reports == [(3, 99)]


@pytest.mark.golden
def test_a_real_file_has_as_many_used_slots_as_its_header_says(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        for reader in store.index_files():
            assert reader.geometry is not None
            load = count_slots(reader.file.read, reader.header, reader.geometry)
            assert load.used == reader.header.hash_slot_count
            assert load.entries == reader.header.entries
