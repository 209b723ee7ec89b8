"""Stand-ins for bodies have their length and their CRC-32."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from engine.codec.stand_in_bodies import last_bytes, set_crc, stand_ins


@pytest.mark.parametrize("body", [b"four", b"a body", bytes(100), b"\xff" * 5000])
def test_a_stand_in_has_the_length_and_the_crc_of_its_body(body):
    substitute = stand_ins([len(body)], [zlib.crc32(body)])[0]
    assert len(substitute) == len(body)
    assert zlib.crc32(substitute) == zlib.crc32(body)


def test_checksums_around_a_stand_in_are_those_around_the_body():
    body = b"x" * 50
    substitute = stand_ins([50], [zlib.crc32(body)])[0]
    assert zlib.crc32(b"head" + substitute + b"tail") == zlib.crc32(b"head" + body + b"tail")


def test_many_stand_ins_are_made_at_once():
    lengths, crcs = np.array([4, 9, 9], np.int64), np.array([1, 2, 0xFFFFFFFF], np.uint32)
    rows = last_bytes(lengths, crcs)
    bodies = stand_ins([4, 9, 9], [1, 2, 0xFFFFFFFF])
    assert [bytes(row) for row in rows] == [body[-4:] for body in bodies]
    assert [zlib.crc32(body) for body in bodies] == [1, 2, 0xFFFFFFFF]


def test_four_bytes_anywhere_give_any_crc():
    data = bytearray(b"a text whose middle is changed")
    set_crc(data, 11, 0x12345678)
    assert zlib.crc32(data) == 0x12345678
    assert (data[:11], data[15:]) == (b"a text whos", b"ddle is changed")
