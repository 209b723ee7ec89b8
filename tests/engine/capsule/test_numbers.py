"""Columns are read as they were written, whatever they contain."""

from __future__ import annotations

import random
import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.capsule.container import compress
from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
UNIQUE = [f"7F0000010B2C18B4AAC2{n * 7:08X}{n:04X}".encode() for n in range(9)]
RANDOM = random.Random(1)
UUIDS = [str(uuid.UUID(int=RANDOM.getrandbits(128), version=4)).encode() for _ in range(2000)]
TEXTS = [
    [b"same"] * 5,
    [b"Tag%c" % letter for letter in b"ABABABABAB"],
    [b"order-%08d" % n for n in range(40)],
    [b"order-%d" % n for n in range(95, 130)],
    [b"01", b"1", b"001"],
    UNIQUE,
    UNIQUE[:4] + [b"7F0000010B2C18B4AAC1" + key[20:] for key in UNIQUE[:4]],
    [b"%d" % 10**30, b"%d" % 10**31],
    [b"", b"\x00\xff", b"longer than the others"],
    [b""] * 3 + [b"x"],
    UUIDS,
    [text.upper() + b" order" for text in UUIDS],
]


@given(st.lists(INT64, max_size=30))
def test_numbers_return(values):
    out = ColumnWriter()
    out.numbers(np.array(values, np.int64))
    assert ColumnReader(out.result()).numbers(len(values)).tolist() == values


@pytest.mark.parametrize("values", TEXTS)
def test_texts_of_every_form_return(values):
    out = ColumnWriter()
    out.texts(values)
    assert ColumnReader(out.result()).texts(len(values)) == values


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=12))
def test_any_texts_return(values):
    out = ColumnWriter()
    out.texts(values)
    assert ColumnReader(out.result()).texts(len(values)) == values


def test_a_random_uuid_takes_its_122_random_bits():
    """As hexadecimal digits it took 17 bytes. A capsule of messages with such keys was larger than 2 % of the log."""
    out = ColumnWriter()
    out.texts(UUIDS)
    assert len(compress(out.result())) < 15.6 * len(UUIDS)


def test_numbers_that_grow_evenly_take_few_bytes():
    out = ColumnWriter()
    out.numbers(np.arange(1000, dtype=np.int64) * 1_000_000)
    assert len(set(out.result()[10:])) < 10


@given(st.binary(max_size=40))
def test_other_bytes_are_refused_or_read_but_never_crash(data):
    columns = ColumnReader(data)
    try:
        columns.texts(3)
        columns.numbers(4)
        columns.blob()
    except BadColumns:
        pass
