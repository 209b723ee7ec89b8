"""The CRC of bodies: CRC-32 without its highest bit, as Java has it."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from engine.codec.crc import MASK, crc31, crc32


@given(st.binary(max_size=300))
def test_it_is_the_standard_one_without_the_sign(data):
    assert crc31(data) == zlib.crc32(data) & 0x7FFFFFFF
    assert crc32(data) & MASK == crc31(data)


def test_known_bytes():
    assert crc31(b"") == 0
    assert crc31(b"123456789") == 0xCBF43926 & 0x7FFFFFFF
    assert crc31(memoryview(bytearray(b"123456789"))) == crc31(b"123456789")
