"""Slots and entries of an index file return; links that follow from the hashes take no bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.capsule import index_columns
from engine.capsule.container import compress
from engine.capsule.numbers import BadColumns
from engine.codec.dtypes import INDEX_ENTRY

SLOTS = 7
ENTRIES = st.lists(st.binary(min_size=20, max_size=20), max_size=20)


def hashes(data: bytes) -> np.ndarray:
    return np.array([int.from_bytes(data[n : n + 4], "big", signed=True) for n in range(0, len(data), 20)], np.int32)


@given(ENTRIES, st.binary(min_size=4 * SLOTS, max_size=4 * SLOTS))
def test_anything_returns(entries, slots):
    data = b"".join(entries)
    links = index_columns.links_of(hashes(data), SLOTS)
    encoded = index_columns.encode_entries(data, links.previous)
    assert index_columns.decode_entries(encoded, links.previous) == data
    assert index_columns.hashes_of(encoded, len(entries)).tolist() == hashes(data).tolist()
    assert index_columns.decode_slots(index_columns.encode_slots(slots, links.slots), links.slots) == slots


def test_a_chain_follows_from_the_hashes():
    links = index_columns.links_of(np.array([0, 3, 10, -4, 4, 17], np.int32), SLOTS)
    assert links.previous.tolist() == [0, 0, 1, 0, 0, 2]
    assert links.slots.tolist() == [0, 0, 0, 5, 4, 0, 0]


def test_hashes_that_repeat_take_few_bytes():
    """In an index, the hashes of tags are between those of keys, which are all different."""
    random = np.random.default_rng(1)
    rows = np.zeros(6000, INDEX_ENTRY)
    rows["key_hash"] = random.integers(0, 1 << 31, 6000)
    rows["key_hash"][2::3] = random.choice(rows["key_hash"][2:120:3], 2000)
    encoded = index_columns.encode_entries(rows.tobytes(), np.zeros(6000, np.int32))
    assert index_columns.decode_entries(encoded, np.zeros(6000, np.int32)) == rows.tobytes()
    assert index_columns.hashes_of(encoded, 6000).tolist() == rows["key_hash"].tolist()
    assert len(compress(encoded)) / 2000 < 9.2  # two hashes of keys have 8
    changed = bytearray(encoded)
    for position in range(4, 6000, 501):
        changed[position] ^= 0xFF
        try:
            index_columns.decode_entries(bytes(changed), np.zeros(6000, np.int32))
            index_columns.hashes_of(bytes(changed), 6000)
        except BadColumns:
            continue


def test_cut_columns_are_refused():
    expected = np.zeros(10, np.int32)
    encoded = index_columns.encode_entries(bytes(range(200)), expected)
    for length in range(len(encoded)):
        with pytest.raises(BadColumns):
            index_columns.decode_entries(encoded[:length], expected)
