"""The CRC that RocketMQ stores: CRC-32 (IEEE 802.3) with the top bit masked away (``crc31`` of the format notes)."""

from __future__ import annotations

from collections.abc import Callable

try:
    from isal.isal_zlib import crc32 as _crc32
except ImportError:  # an optional extra: the standard library gives the same results, slower
    from zlib import crc32 as _crc32

MASK = 0x7FFFFFFF

crc32: Callable[[bytes | bytearray | memoryview], int] = _crc32
"""The full CRC-32, for loops in which a call is expensive: ``crc32(data) & MASK``."""


def crc31(data: bytes | bytearray | memoryview) -> int:
    """Return CRC-32 of ``data`` & 0x7FFFFFFF; 0 for empty data."""
    return _crc32(data) & MASK


def hex_crc(value: int) -> str:
    """Return ``value`` as messages write it: ``0x0D1FA485``."""
    return f"0x{value & 0xFFFFFFFF:08X}"
