"""CRC-32C has the values of its standard, and RocksDB's mask."""

import pytest

from engine.codec.crc32c import crc32c, masked


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_the_values_of_the_standard(data, crc):
    assert crc32c(data) == crc


def test_the_mask_of_rocksdb():
    crc = crc32c(b"foo")
    assert masked(crc) != crc
    rotated = (masked(crc) - 0xA282EAD8) & 0xFFFFFFFF
    assert (rotated >> 17 | rotated << 15) & 0xFFFFFFFF == crc
