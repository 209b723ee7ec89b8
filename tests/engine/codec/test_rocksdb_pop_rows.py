"""Rows of popped messages in a RocksDB, as brokers of 5.5.1 and 5.3.3 wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import rocksdb_pop_rows as pops
from engine.codec.rocksdb_pop_rows import PopRow

POPS = [
    (
        PopRow("billing", "OrderEvents", 1, 1, 1_795_952_059_157, 7_200_000, suspended=False),
        b"\x00\x00\x01\xa2'\x83\x80\x15billing@OrderEvents@\x00\x00\x00\x01@\x00\x00\x00\x00\x00\x00\x00\x01",
        (
            b'{"popTime":1795952059157,"groupId":"billing","topicId":"OrderEvents","queueId":1,"retryFlag":0,'
            b'"invisibleTime":7200000,"offset":1,"attemptTimes":0,"suspend":false}'
        ),
    ),
    (
        PopRow("billing", "OrderEvents", 0, 2, 1_795_952_134_453, 3_600_000),
        b"\x00\x00\x01\xa2'M\xb7\xb5billing@OrderEvents@\x00\x00\x00\x00@\x00\x00\x00\x00\x00\x00\x00\x02",
        (
            b'{"popTime":1795952134453,"groupId":"billing","topicId":"OrderEvents","queueId":0,"retryFlag":0,'
            b'"invisibleTime":3600000,"offset":2,"attemptTimes":0}'
        ),
    ),
]


@pytest.mark.parametrize(("row", "key", "value"), POPS)
def test_a_row_of_a_popped_message_is_the_bytes_of_a_broker(row, key, value):
    assert pops.encode(row) == (key, value)
    assert pops.decode(value) == row
    assert pops.visible_time_of(key) == row.visible_time == row.pop_time + row.invisible_time


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"7", b'{"topicId":"T"}', b'{"groupId":"g","topicId":"T","offset":"1"}', b"\xff\xfe"]
)
def test_a_value_of_another_form_is_no_popped_message(value):
    assert pops.decode(value) is None


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="@"), min_size=1, max_size=20)
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)


@given(st.builds(PopRow, NAMES, NAMES, INTS, LONGS, st.integers(0, 2**62), st.integers(0, 2**61), INTS, INTS))
def test_any_row_of_a_popped_message_comes_back(row):
    key, value = pops.encode(row)
    assert pops.decode(value) == row
    assert pops.visible_time_of(key) == row.visible_time
