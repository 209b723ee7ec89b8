from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.index import Geometry, IndexEntry, IndexHeader, encode_entry
from engine.inspection import open_store
from engine.inspection.slot_load import LONGEST_BAR, cell_of, count_slots


def table(hashes: list[int], slots: int):
    """The bytes of an index file with these key hashes, as ``read(position, size)``, with header and geometry."""
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
    assert load.histogram[LONGEST_BAR] == sum(length >= LONGEST_BAR for length in lengths)
    assert load.complete
    for slot in range(slots):
        assert 0 <= cell_of(slot, slots, len(load.cells)) < len(load.cells)


@given(st.integers(1, 10_000), st.integers(1, 900))
def test_cells_follow_the_slots_without_a_gap(slots: int, cells: int) -> None:
    count = min(cells, slots)
    found = [cell_of(slot, slots, count) for slot in range(slots)]
    assert found == sorted(found)
    assert set(found) == set(range(count))


def test_hashes_below_zero_are_counted_apart() -> None:
    load = count_slots(*table([3, -1, 3], 10))
    assert (load.bad, load.longest, load.entries) == (1, 2, 3)


def test_a_count_that_is_stopped_or_cut_short_says_so() -> None:
    read, header, geometry = table([1, 2, 3], 10)
    assert not count_slots(read, header, geometry, cancelled=lambda: True).complete
    short = IndexHeader(0, 0, 0, 0, 0, 100)
    told: list[tuple[int, int]] = []
    load = count_slots(read, short, Geometry(10, 100), progress=lambda done, total: told.append((done, total)))
    assert (load.entries, load.complete) == (3, False)
    assert told == [(3, 99)]


@pytest.mark.golden
def test_a_real_file_has_as_many_used_slots_as_its_header_says(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        for reader in store.index_files():
            assert reader.geometry is not None
            load = count_slots(reader.file.read, reader.header, reader.geometry)
            assert load.used == reader.header.hash_slot_count
            assert load.entries == reader.header.entries
