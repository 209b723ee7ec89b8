"""Bytes with bodies taken out are read with stand-ins in their places."""

from __future__ import annotations

import zlib

import pytest

from engine.capsule import elided
from engine.capsule.numbers import BadColumns
from engine.codec.stand_in_bodies import stand_ins

DATA = b"head" + b"the first body" + b"middle" + b"second" + b"end"
BODIES = [elided.LeftOutBody(4, 14, zlib.crc32(b"the first body")), elided.LeftOutBody(24, 6, zlib.crc32(b"second"))]


def test_everything_but_the_bodies_returns():
    encoded = elided.encode(DATA, BODIES)
    assert b"first" not in encoded
    expected = b"head" + stand_ins([14], [BODIES[0].crc])[0] + b"middle" + stand_ins([6], [BODIES[1].crc])[0] + b"end"
    assert elided.decode(encoded, len(DATA)) == expected
    assert elided.decode(elided.encode(DATA, []), len(DATA)) == DATA


@pytest.mark.parametrize("size", [0, 5, len(DATA) - 1, len(DATA) + 1])
def test_another_length_is_refused(size):
    with pytest.raises(BadColumns):
        elided.decode(elided.encode(DATA, BODIES), size)


def test_cut_bytes_are_refused():
    encoded = elided.encode(DATA, BODIES)
    for length in range(len(encoded)):
        with pytest.raises(BadColumns):
            elided.decode(encoded[:length], len(DATA))
