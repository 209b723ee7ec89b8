"""Rows of open transactions in a RocksDB, as brokers of 5.5.1 and 5.4.0 wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import rocksdb_transaction_rows as transactions
from engine.codec.rocksdb_transaction_rows import TransactionRow

TRANSACTIONS = [
    (
        TransactionRow(4_468, "PaymentEvents", "7F00000167CC71887A5792ADB2700009", 7, 373),
        b"\x00\x00\x00\x00\x00\x00\x11t@PaymentEvents@7F00000167CC71887A5792ADB2700009",
        b"\x00\x00\x00\x07\x00\x00\x01u",
    ),
    (
        TransactionRow(5_215, "PaymentEvents", "7F0000017190B44B4C6392AE451C000B", 0, 410),
        b"\x00\x00\x00\x00\x00\x00\x14_@PaymentEvents@7F0000017190B44B4C6392AE451C000B",
        b"\x00\x00\x00\x00\x00\x00\x01\x9a",
    ),
]


@pytest.mark.parametrize(("row", "key", "value"), TRANSACTIONS)
def test_a_row_of_an_open_transaction_is_the_bytes_of_a_broker(row, key, value):
    assert transactions.encode(row) == (key, value)
    assert transactions.decode(key, value) == row


def test_the_row_of_the_last_offset_is_no_message():
    assert transactions.decode(transactions.LAST_OFFSET_KEY, b"\x00" * 6 + b"\x15\x8f") is None
    assert transactions.decode_offset(b"\x00" * 6 + b"\x15\x8f") == 5_519
    assert transactions.decode_offset(None) is transactions.decode_offset(b"1") is None


def test_a_broker_cannot_read_the_row_of_a_unique_key_with_an_at_sign():
    """``TransRocksDBRecord`` splits the key at each ``@`` and skips the row: its producer is never asked."""
    _, key, value = TRANSACTIONS[0]
    assert transactions.decode(key + b"@x", value) is None


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="@"), min_size=1, max_size=20)
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)


@given(st.builds(TransactionRow, LONGS, NAMES, NAMES, INTS, INTS))
def test_any_row_of_a_transaction_comes_back(row):
    assert transactions.decode(*transactions.encode(row)) == row


@given(st.binary(max_size=60), st.binary(max_size=16))
def test_any_bytes_are_a_row_of_just_these_bytes_or_none(key, value):
    row = transactions.decode(key, value)
    assert row is None or (len(value) == 8 and key[8:].count(b"@") == 2)
