"""Rows of timer messages in a RocksDB, as brokers of 5.5.1 and 5.4.0 wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import rocksdb_timer_rows as timers
from engine.codec.rocksdb_timer_rows import TimerRow

TIMERS = [
    (
        TimerRow(1_795_955_655_000, "7F00000167CC71887A5792ADAE6B0003", 346, 1_038),
        b"\x00\x00\x01\xa2'L\x81X7F00000167CC71887A5792ADAE6B0003",
        b"\x00\x00\x01Z\x00\x00\x00\x00\x00\x00\x04\x0e",
    ),
    (
        TimerRow(1_796_038_493_000, "7F0000017190B44B4C6392AE410C0005", 346, 1_730),
        b"\x00\x00\x01\xa2,<\x83H7F0000017190B44B4C6392AE410C0005",
        b"\x00\x00\x01Z\x00\x00\x00\x00\x00\x00\x06\xc2",
    ),
]


@pytest.mark.parametrize(("row", "key", "value"), TIMERS)
def test_a_timer_row_is_the_bytes_of_a_broker(row, key, value):
    assert timers.encode(row) == (key, value)
    assert timers.decode(key, value) == row
    assert timers.time_key(row.due_time) <= key < timers.time_key(row.due_time + 1) < timers.SCAN_KEY


def test_rows_with_names_are_no_messages():
    assert timers.decode(timers.SCAN_KEY, b"\x00" * 7 + b"\x08") is None
    assert timers.decode(timers.TIMELINE_KEY, b"\x00\x00\x01\xa2'\x15\xa2x") is None
    assert timers.decode_number(b"\x00\x00\x01\xa2'\x15\xa2x") == 1_795_952_059_000
    assert timers.decode_number(None) is timers.decode_number(b"1") is None
    assert timers.is_named(timers.SCAN_KEY)
    assert timers.is_named(timers.TIMELINE_KEY)
    assert not timers.is_named(TIMERS[0][1])


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="@"), min_size=1, max_size=20)
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)


@given(st.builds(TimerRow, LONGS, NAMES, INTS, LONGS))
def test_any_timer_row_comes_back(row):
    assert timers.decode(*timers.encode(row)) == row


@given(st.binary(max_size=60), st.binary(max_size=16))
def test_any_bytes_are_a_row_of_just_these_bytes_or_none(key, value):
    row = timers.decode(key, value)
    assert (row is not None) == (len(key) >= 8 and len(value) == 12)
    if row is not None:
        assert timers.time_key(row.due_time) == key[:8]
