"""The CRC of bodies: CRC-32 without its highest bit, as Java has it."""

from __future__ import annotations

import importlib.util
import sys
import zlib

from hypothesis import given
from hypothesis import strategies as st

from engine.codec import crc
from engine.codec.crc import MASK, crc31, crc32, hex_crc


@given(st.binary(max_size=300))
def test_the_crc_is_the_standard_one_without_the_sign_bit(data):
    assert crc31(data) == zlib.crc32(data) & 0x7FFFFFFF
    assert crc32(data) & MASK == crc31(data)


def test_known_bytes():
    assert crc31(b"") == 0
    assert crc31(b"123456789") == 0xCBF43926 & 0x7FFFFFFF
    assert crc31(memoryview(bytearray(b"123456789"))) == crc31(b"123456789")


def test_the_crc_is_written_with_eight_digits():
    assert [hex_crc(value) for value in (0x0D1FA485, 0, -1)] == ["0x0D1FA485", "0x00000000", "0xFFFFFFFF"]


def test_without_the_faster_library_the_values_are_the_same(monkeypatch):
    """``isal`` is an extra. A plain installation uses the standard library's CRC."""
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    spec = importlib.util.spec_from_file_location("crc_without_isal", crc.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.crc32 is zlib.crc32
    assert module.crc31(b"123456789") == crc31(b"123456789")
