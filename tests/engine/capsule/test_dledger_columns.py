"""Entries and index rows of a DLedger log return from their columns byte for byte."""

from __future__ import annotations

import random
import struct
from itertools import islice

import numpy as np
import pytest

from engine.bench.data import units
from engine.capsule.container import compress
from engine.capsule.dledger_columns import decode_entries, decode_index, encode_entries, encode_index
from engine.capsule.numbers import BadColumns
from engine.capsule.unit_columns import UnitRows
from engine.codec.crc import crc32
from engine.codec.dledger import EntryHeader, IndexRow, encode_header, encode_index_row
from engine.codec.message import check_frame
from engine.codec.stand_in_bodies import stand_ins

BASE = 1 << 40
FIRST_INDEX = 700


def entries(count: int, body_bytes: int = 300) -> tuple[UnitRows, bytes, bytes]:
    """Return the rows of entries, what is read from their columns, and the rows of the index."""
    data, expected, index_rows = bytearray(), bytearray(), bytearray()
    columns: list[tuple[int, int, int, int]] = []
    for number, unit in enumerate(islice(units(body_bytes, body_bytes, 0), count)):
        position = len(data)
        entry = unit[:28] + struct.pack(">q", BASE + position + 48) + unit[36:]
        index, term = FIRST_INDEX + number, 3 + number // 20
        header = EntryHeader(1, 48 + len(entry), index, term, BASE + position, 0, 0, 0, len(entry))
        frame = check_frame(entry, 0, len(entry))
        assert not isinstance(frame, str)
        body = slice(frame.body, frame.body + frame.body_length)
        crc = crc32(entry[body])
        columns.append((position + 48, position + 48 + frame.body, frame.body_length, crc))
        data += encode_header(header) + entry
        expected += encode_header(header) + entry[: body.start]
        expected += stand_ins([frame.body_length], [crc])[0] + entry[body.stop :]
        index_rows += encode_index_row(IndexRow(1, header.position, header.size, header.index, header.term))
    start, body_start, length, crcs = (np.array(column, np.int64) for column in zip(*columns, strict=True))
    rows = UnitRows(
        np.frombuffer(bytes(data), np.uint8), start, body_start, length, crcs.astype(np.uint32), np.zeros(count, bool)
    )
    return rows, bytes(expected), bytes(index_rows)


def test_entries_return_with_stand_ins():
    rows, expected, _ = entries(50)
    assert decode_entries(encode_entries(rows, BASE), len(expected), BASE) == expected


@pytest.mark.parametrize("place", range(0, 48, 4))
def test_a_damaged_header_returns(place):
    rows, expected, _ = entries(30)
    header = int(rows.start[17]) - 48
    damaged, expected_bytes = bytearray(rows.data.tobytes()), bytearray(expected)
    for data in (damaged, expected_bytes):
        data[header + place : header + place + 4] = b"\xff\x80\x01\x7f"
    changed = rows._replace(data=np.frombuffer(bytes(damaged), np.uint8))
    assert decode_entries(encode_entries(changed, BASE), len(expected), BASE) == bytes(expected_bytes)


def test_headers_and_index_take_few_bytes():
    rows, _, index_rows = entries(2000, 1024)
    assert len(compress(encode_entries(rows, BASE))) / 2000 < 6.5
    assert len(compress(encode_index(index_rows))) / 2000 < 1


@pytest.mark.parametrize("count", [0, 1, 40])
def test_index_rows_return_also_with_rows_that_are_not_written(count):
    index_rows = entries(40)[2][: 32 * count] + bytes(320) + random.Random(1).randbytes(64)
    assert decode_index(encode_index(index_rows), len(index_rows)) == index_rows


def test_other_bytes_are_refused():
    rows, expected, index_rows = entries(20)
    encoded, encoded_index = encode_entries(rows, BASE), encode_index(index_rows)
    for length in range(0, len(encoded), 7):
        with pytest.raises(BadColumns):
            decode_entries(encoded[:length], len(expected), BASE)
    for length in range(0, len(encoded_index), 7):
        with pytest.raises(BadColumns):
            decode_index(encoded_index[:length], len(index_rows))
    with pytest.raises(BadColumns):
        decode_entries(encoded, len(expected) - 1, BASE)
    for position in range(0, len(encoded), 11):
        changed = bytearray(encoded)
        changed[position] ^= 0xFF
        try:
            decode_entries(bytes(changed), len(expected), BASE)
        except BadColumns:
            continue
