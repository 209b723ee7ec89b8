"""Rows of an index in a RocksDB, as a broker of 5.5.1 wrote them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import rocksdb_index_rows as rows
from engine.codec.rocksdb_index_rows import IndexKeyRow, IndexRow

HOUR = 1_795_831_200_000
KEY_ROW = (
    b"\x00\x00\x01\xa2\x1f\xe1y\x00@CartUpdates@K@K351@7F0000012B2F5FFD2B278BAE277D015E@\x00\x00\x00\x00\x00\x03\xed\xa4",
    b"\x00\x00\x01\xa2 \x16\x0f}",
)
TAG_ROW = (
    b"\x00\x00\x01\xa2\x1f\xe1y\x00@CartUpdates@T@BB@7F0000012B2F5FFD2B278BAE2752014C@\x00\x00\x00\x00\x00\x03\xc0\xd5",
    b"\x00\x00\x01\xa2 \x16\x0fV",
)
UNIQUE_ROW = (
    b"\x00\x00\x01\xa2\x1f\xe1y\x00@CartUpdates@U@7F0000012B2F5FFD2B278BAE2655010C@\x00\x00\x00\x00\x00\x02\xf17",
    b"\x00\x00\x01\xa2 \x16\x0eV",
)


def test_rows_lie_in_the_range_of_their_key():
    for (key, _), index_type, text in (
        (KEY_ROW, "K", "K351"),
        (TAG_ROW, "T", "T#BB"),
        (UNIQUE_ROW, "U", "7F0000012B2F5FFD2B278BAE2655010C"),
    ):
        start, stop = rows.key_range(HOUR + 5, "CartUpdates", index_type, text)
        assert start <= key < stop
        other_start, other_stop = rows.key_range(HOUR, "CartUpdates", index_type, text[:-1])
        assert not other_start <= key < other_stop
    assert rows.hour_of(KEY_ROW[0]) == HOUR == rows.hour_of(rows.hour_key(HOUR + rows.HOUR_MS - 1))
    assert rows.hour_key(HOUR) < KEY_ROW[0] < rows.END_OF_HOURS < rows.LAST_OFFSET_KEY


def test_a_row_leads_to_its_unit():
    assert rows.decode(*KEY_ROW) == IndexRow(257_444, 1_795_834_646_397)
    assert rows.decode_offset(b"\x00\x00\x00\x00\x00\x06+\xf0") == 404_464
    assert rows.decode(b"lastOffsetPy", KEY_ROW[1]) is None
    assert rows.decode(KEY_ROW[0], b"1234") is None
    assert rows.decode_offset(b"") is None


ENDINGS = st.binary(min_size=8, max_size=8)


@given(
    st.binary(max_size=60) | st.builds(lambda front, end: front + b"@" + end, st.binary(max_size=40), ENDINGS),
    ENDINGS | st.binary(max_size=10),
)
def test_any_row_is_decoded_from_its_last_bytes_or_refused(key, value):
    row = rows.decode(key, value)
    assert (row is not None) == (len(key) >= 17 and key[-9:-8] == b"@" and len(value) == 8)
    if row is not None:
        assert (
            b"".join(number.to_bytes(8, "big", signed=True) for number in dataclasses.astuple(row)) == key[-8:] + value
        )


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (KEY_ROW, IndexKeyRow("CartUpdates", "K", "K351", "7F0000012B2F5FFD2B278BAE277D015E", 257_444)),
        (TAG_ROW, IndexKeyRow("CartUpdates", "T", "T#BB", "7F0000012B2F5FFD2B278BAE2752014C", 245_973)),
        (
            UNIQUE_ROW,
            IndexKeyRow(
                "CartUpdates",
                "U",
                "7F0000012B2F5FFD2B278BAE2655010C",
                "7F0000012B2F5FFD2B278BAE2655010C",
                192_823,
            ),
        ),
    ],
)
def test_the_key_of_a_row_names_topic_key_and_unit(row, expected):
    assert rows.decode_key(row[0]) == expected
    assert rows.encode_key(expected, HOUR + 5) == row[0]
    assert rows.decode_key(rows.LAST_OFFSET_KEY) is None
    assert rows.decode_key(row[0][:-9] + b"#" + row[0][-8:]) is None
