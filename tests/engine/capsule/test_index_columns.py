"""Slots and entries of an index file return; links that follow from the hashes take no bytes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from handmade_facts import log_facts
from handmade_stores import HandmadeStore, jhash
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


def keyed_store(*, tag_entries: bool) -> HandmadeStore:
    handmade = HandmadeStore(tag_entries=tag_entries)
    for number in range(40):
        keys = " ".join(f"key-{number}-{n}" for n in range(number % 4))
        handmade.put(f"Topic{number % 3}", keys=keys or None, tags="TagA" if number % 2 else None, step=700)
    return handmade


def entries_of(handmade: HandmadeStore) -> bytes:
    """Return the entries of all keys, entry 0 first, without links."""
    begin = handmade.units[0].store_timestamp
    rows = [
        (abs(jhash(f"{unit.topic}#{key}")), unit.offset, (unit.store_timestamp - begin) // 1000, 0)
        for unit in handmade.units
        for key in unit.keys
    ]
    return bytes(20) + b"".join(struct.pack(">iqii", *row) for row in rows)


WITH_TAGS = keyed_store(tag_entries=True)
ENTRIES_WITH_TAGS, FACTS_WITH_TAGS = entries_of(WITH_TAGS), log_facts(WITH_TAGS)


@pytest.mark.parametrize("tag_entries", [False, True])
def test_entries_follow_from_the_keys_of_units(tag_entries):
    handmade = keyed_store(tag_entries=tag_entries)
    data, facts = entries_of(handmade), log_facts(handmade)
    begin = handmade.units[0].store_timestamp
    for piece in (data, data[20 * 6 :], data[20 * 7 : -40]):
        nothing = np.zeros(len(piece) // 20, np.int32)
        encoded = index_columns.encode_from_units(piece, nothing, facts, begin)
        assert encoded is not None
        assert len(encoded) < 180 < len(piece)
        for unit_count in (1, 100):
            assert index_columns.decode_from_units(encoded, nothing, log_facts(handmade, unit_count)) == piece
            expected = hashes(piece).tolist()
            actual = index_columns.hashes_from_units(encoded, len(nothing), log_facts(handmade, unit_count))
            assert actual.tolist() == expected


@given(
    st.lists(st.tuples(st.integers(0, 1900), st.binary(min_size=1, max_size=20)), max_size=6), st.integers(-1, 1 << 40)
)
def test_entries_that_differ_from_the_keys_are_stored(changes, begin):
    data, facts = bytearray(ENTRIES_WITH_TAGS), FACTS_WITH_TAGS
    for position, piece in changes:
        data[position : position + len(piece)] = piece[: len(data) - position]
    data = data[: len(data) // 20 * 20]
    nothing = np.zeros(len(data) // 20, np.int32)
    encoded = index_columns.encode_from_units(bytes(data), nothing, facts, begin)
    assert encoded is None or index_columns.decode_from_units(encoded, nothing, facts) == bytes(data)


def test_keys_of_other_units_are_refused():
    handmade = keyed_store(tag_entries=False)
    data, nothing = entries_of(handmade), np.zeros(len(entries_of(handmade)) // 20, np.int32)
    encoded = index_columns.encode_from_units(data, nothing, log_facts(handmade), 1)
    assert encoded is not None
    other = keyed_store(tag_entries=False)
    other.log[:] = other.log.replace(b"key-", b"kex-")
    with pytest.raises(BadColumns):
        index_columns.decode_from_units(encoded, nothing, log_facts(other))
    for length in range(len(encoded)):
        with pytest.raises(BadColumns):
            index_columns.decode_from_units(encoded[:length], nothing, log_facts(handmade))
