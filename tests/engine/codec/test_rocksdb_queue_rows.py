"""Rows of consume queues in a RocksDB: keys, entries, bounds, and the end of dispatch."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import rocksdb_queue_rows as rows
from engine.codec.rocksdb_queue_rows import BoundRow, QueueRow

ENTRY_KEY = bytes.fromhex("00000006 01 546f70696341 01 00000003 01 0000000000000097")
ENTRY_VALUE = bytes.fromhex("00000000000004d8 000001eb 000000000027a807 000001a21ffe6b35")
BOUND_KEY = bytes.fromhex("00000006 01 546f70696341 01 6d6178 01 00000002")
BOUND_VALUE = bytes.fromhex("00000000000e8f26 000000000000007e")
"""Bytes of the golden store rocks-5.5.1."""


def test_an_entry_of_a_real_broker():
    assert rows.entry_key("TopicA", 3, 151) == ENTRY_KEY
    assert rows.queue_offset_of(ENTRY_KEY) == 151
    row = QueueRow(1240, 491, 2_598_919, 1_795_833_097_013)
    assert rows.decode_entry(ENTRY_VALUE) == row
    assert rows.encode_entry(row) == ENTRY_VALUE


def test_a_bound_of_a_real_broker():
    assert rows.bound_key("TopicA", 2, "max") == BOUND_KEY
    row = BoundRow("TopicA", 2, "max", 954_150, 126)
    assert rows.decode_bound(BOUND_KEY, BOUND_VALUE) == row
    assert rows.encode_bound(row) == BOUND_VALUE


def test_the_end_of_dispatch_is_no_bound():
    assert rows.decode_bound(rows.CHECKPOINT_KEY, bytes(8)) is None
    assert rows.decode_dispatched(struct.pack(">q", 954_437)) == 954_437
    assert rows.decode_dispatched(b"1234567") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", BOUND_VALUE),
        (BOUND_KEY[:-1], BOUND_VALUE),
        (BOUND_KEY, BOUND_VALUE[:-1]),
        (BOUND_KEY.replace(b"max", b"mid"), BOUND_VALUE),
        (BOUND_KEY.replace(b"\x01max", b"\x02max"), BOUND_VALUE),
        (b"\xff" + BOUND_KEY[1:], BOUND_VALUE),
    ],
)
def test_other_rows_are_no_bounds(key, value):
    assert rows.decode_bound(key, value) is None


@given(st.text(st.characters(exclude_categories=("Cs",))), st.integers(0, 2**31 - 1), st.integers(0, 2**62))
def test_keys_of_a_queue_are_sorted_and_lie_together(topic, queue_id, offset):
    keys = [rows.entry_key(topic, queue_id, offset), rows.entry_key(topic, queue_id, offset + 1)]
    assert keys[0] < keys[1] < rows.end_of_entries(topic, queue_id)
    assert all(key.startswith(rows.entry_prefix(topic, queue_id)) for key in keys)
    assert rows.queue_offset_of(keys[0]) == offset


@given(st.binary(max_size=40), st.binary(max_size=20))
def test_any_bytes_are_a_row_of_that_form_or_none(key, value):
    bound = rows.decode_bound(key, value)
    assert bound is None or (rows.bound_key(bound.topic, bound.queue_id, bound.bound), rows.encode_bound(bound)) == (
        key,
        value,
    )
    assert (rows.decode_dispatched(value) is None) == (len(value) != 8)
