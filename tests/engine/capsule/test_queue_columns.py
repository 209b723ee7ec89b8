"""Queue entries return from their columns."""

from __future__ import annotations

import struct

import pytest
from handmade_facts import log_facts
from handmade_stores import HandmadeStore, healthy
from hypothesis import given
from hypothesis import strategies as st

from engine.capsule.numbers import BadColumns
from engine.capsule.queue_columns import decode, decode_from_units, encode, encode_from_units

HEALTHY = healthy()
UNIT = HEALTHY.units[0]
QUEUE = UNIT.topic.encode(), UNIT.queue_id
ENTRIES = HEALTHY.queue_bytes(UNIT.topic, UNIT.queue_id)


@given(st.lists(st.binary(min_size=20, max_size=20), min_size=1, max_size=20))
def test_any_entries_return(entries):
    data = b"".join(entries)
    assert decode(encode(data), len(data)) == data


def test_cut_columns_are_refused():
    data = bytes(range(200))
    encoded = encode(data)
    for length in range(len(encoded)):
        with pytest.raises(BadColumns):
            decode(encoded[:length], len(data))


def test_entries_that_follow_from_units_take_no_bytes():
    encoded = encode_from_units(ENTRIES, log_facts(HEALTHY), QUEUE)
    assert encoded is not None
    assert len(encoded) < 60 < len(ENTRIES)
    for unit_count in (1, 7, 100):
        assert decode_from_units(encoded, len(ENTRIES), log_facts(HEALTHY, unit_count), QUEUE) == ENTRIES


@given(st.lists(st.tuples(st.integers(0, len(ENTRIES) - 1), st.binary(min_size=1, max_size=20)), max_size=6))
def test_entries_that_differ_are_stored(changes):
    data = bytearray(ENTRIES)
    for position, piece in changes:
        data[position : position + len(piece)] = piece[: len(data) - position]
    facts = log_facts(HEALTHY)
    encoded = encode_from_units(bytes(data), facts, QUEUE)
    assert encoded is None or decode_from_units(encoded, len(data), facts, QUEUE) == bytes(data)


def test_entries_of_another_queue_or_in_another_order_return():
    """A light queue has the units of other queues, and one that was built again may have them twice."""
    entries = [struct.pack(">qiq", unit.offset, unit.size, unit.tags_code) for unit in HEALTHY.units]
    ext_addresses = [entry[:12] + struct.pack(">q", -(1 << 62) + 40 * n) for n, entry in enumerate(entries)]
    for rows in (entries[::3], entries[:20] * 2, ext_addresses, [*entries[:9], bytes(20), bytes(20)]):
        data, facts = b"".join(rows), log_facts(HEALTHY)
        encoded = encode_from_units(data, facts, (b"%LMQ%x", 0))
        assert encoded is not None
        assert decode_from_units(encoded, len(data), facts, (b"%LMQ%x", 0)) == data


def test_entries_without_units_follow_from_none():
    assert encode_from_units(struct.pack(">qiq", 1 << 40, 100, 0) * 9, log_facts(HEALTHY), QUEUE) is None
    assert encode_from_units(bytes(200), log_facts(HEALTHY), QUEUE) is None


def test_a_log_with_other_units_is_refused():
    """The bytes would be those of no store: a checksum says so."""
    encoded = encode_from_units(ENTRIES, log_facts(HEALTHY), QUEUE)
    assert encoded is not None
    other = HandmadeStore(log_size=1 << 16)
    for _ in HEALTHY.units:
        other.put(UNIT.topic, UNIT.queue_id, body=b"another length")
    with pytest.raises(BadColumns):
        decode_from_units(encoded, len(ENTRIES), log_facts(other), QUEUE)
    for length in range(len(encoded)):
        with pytest.raises(BadColumns):
            decode_from_units(encoded[:length], len(ENTRIES), log_facts(HEALTHY), QUEUE)
