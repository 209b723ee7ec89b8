"""Units return from their columns byte for byte, with stand-ins for their bodies."""

from __future__ import annotations

import zlib
from itertools import islice

import numpy as np
import pytest

from engine.bench.data import units
from engine.capsule.container import compress
from engine.capsule.numbers import BadColumns
from engine.capsule.unit_columns import UnitRows, decode, encode
from engine.codec.message import check_frame
from engine.codec.stand_in_bodies import stand_ins

BASE = 1 << 40


def rows_of(data: bytes, kept: tuple[int, ...] = ()) -> tuple[UnitRows, bytes]:
    """Return the rows of ``data``, and what is read from their columns."""
    position, starts, bodies, lengths, crcs = 0, [], [], [], []
    expected = bytearray(data)
    while position < len(data):
        frame = check_frame(data, position, len(data))
        assert not isinstance(frame, str)
        start = position + frame.body
        crc = zlib.crc32(data[start : start + frame.body_length])
        if len(starts) not in kept and frame.body_length >= 4:
            expected[start : start + frame.body_length] = stand_ins([frame.body_length], [crc])[0]
        starts.append(position)
        bodies.append(start)
        lengths.append(frame.body_length)
        crcs.append(crc)
        position += frame.size
    keeps = np.array([n in kept or lengths[n] < 4 for n in range(len(starts))])
    columns = [np.array(column, np.int64) for column in (starts, bodies, lengths)]
    return UnitRows(np.frombuffer(data, np.uint8), *columns, np.array(crcs, np.uint32), keeps), bytes(expected)


def test_units_return_with_stand_ins():
    rows, expected = rows_of(b"".join(islice(units(0, 300, BASE), 50)), kept=(3, 7))
    encoded = encode(rows, BASE)
    assert decode(encoded, len(expected), BASE) == expected


@pytest.mark.golden
@pytest.mark.parametrize("name", ["ipv6-and-unicode-5.3.3", "propcrc-5.3.3"])
def test_units_of_real_stores_return(name, golden):
    data = min((golden(name) / "commitlog").iterdir()).read_bytes()
    end = 0
    while not isinstance(frame := check_frame(data, end, len(data)), str):
        end += frame.size
    rows, expected = rows_of(data[:end])
    assert decode(encode(rows, 0), end, 0) == expected


def test_a_unit_of_1_kib_takes_few_bytes():
    rows, _ = rows_of(b"".join(islice(units(1024, 1024, BASE), 2000)))
    assert len(compress(encode(rows, BASE))) / 2000 < 6.5


def test_other_bytes_are_refused():
    rows, expected = rows_of(b"".join(islice(units(10, 300, BASE), 20)))
    encoded = encode(rows, BASE)
    for length in range(0, len(encoded), 7):
        with pytest.raises(BadColumns):
            decode(encoded[:length], len(expected), BASE)
    with pytest.raises(BadColumns):
        decode(encoded, len(expected) - 1, BASE)
    for position in range(0, len(encoded), 11):
        changed = bytearray(encoded)
        changed[position] ^= 0xFF
        try:
            decode(bytes(changed), len(expected), BASE)
        except BadColumns:
            continue
