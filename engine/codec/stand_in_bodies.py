"""Stand-ins for message bodies: filler bytes with the length and the CRC-32 of the body that they stand for.

A CRC depends on the register before its last four bytes in an invertible way, so four bytes behind any filler can give
any CRC. A stand-in has the CRC-32 of its body, so every checksum around it (BODYCRC, the property CRC of the unit, the
CRC of a DLedger entry) has the same verdict as with the body itself. Pure.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

FILLER: Final = b"."
MIN_STAND_IN_BYTES: Final = 4
"""Shorter bodies have no room for the four bytes; their checksum gives them away in any case."""

_POLYNOMIAL = 0xEDB88320
UInt32 = npt.NDArray[np.uint32]
UInt8 = npt.NDArray[np.uint8]


def _table() -> UInt32:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table.astype(np.uint32)


_TABLE = _table()
_INDEX_BY_TOP = np.zeros(256, np.uint32)
_INDEX_BY_TOP[_TABLE >> 24] = np.arange(256, dtype=np.uint32)
_filler_crcs: dict[int, int] = {}
_MAX_REMEMBERED = 1 << 16


def last_bytes(lengths: npt.NDArray[np.int64], crcs: UInt32) -> UInt8:
    """Return the last four bytes of the stand-ins for bodies of ``lengths`` (at least four each) with ``crcs``: one row
    each.
    """
    distinct, inverse = np.unique(lengths, return_inverse=True)
    registers = np.array([_filler_crc(int(length) - MIN_STAND_IN_BYTES) for length in distinct], np.uint32)
    words = (registers ^ np.uint32(0xFFFFFFFF))[inverse] ^ _before_four_zeros(crcs ^ np.uint32(0xFFFFFFFF))
    return words.astype("<u4").view(np.uint8).reshape(-1, 4)


def stand_ins(lengths: Sequence[int], crcs: Sequence[int]) -> list[bytes]:
    """Return the stand-ins for bodies of ``lengths`` bytes (at least four each) with the CRC-32s ``crcs``."""
    tails = last_bytes(np.array(lengths, np.int64), np.array(crcs, np.uint32)).tobytes()
    return [
        FILLER * (length - MIN_STAND_IN_BYTES) + tails[place : place + 4]
        for length, place in zip(lengths, range(0, len(tails), 4), strict=True)
    ]


def _before_four_zeros(registers: UInt32) -> UInt32:
    """Return the registers from which four zero bytes lead to ``registers``."""
    for _ in range(4):
        index = _INDEX_BY_TOP[registers >> 24]
        registers = ((registers ^ _TABLE[index]) << np.uint32(8)) | index
    return registers


def _filler_crc(count: int) -> int:
    crc = _filler_crcs.get(count)
    if crc is None:
        if len(_filler_crcs) >= _MAX_REMEMBERED:
            _filler_crcs.clear()
        crc = _filler_crcs[count] = zlib.crc32(FILLER * count)
    return crc


def set_crc(data: bytearray, position: int, crc: int) -> None:
    """Change the four bytes of ``data`` at ``position`` so that its CRC-32 is ``crc``."""
    register = crc ^ 0xFFFFFFFF
    for value in reversed(data[position + 4 :]):
        register = _before_byte(register) ^ value
    for _ in range(4):
        register = _before_byte(register)
    before = zlib.crc32(data[:position]) ^ 0xFFFFFFFF
    data[position : position + 4] = (before ^ register).to_bytes(4, "little")


def _before_byte(register: int) -> int:
    """Return the register from which one zero byte leads to ``register``."""
    index = int(_INDEX_BY_TOP[register >> 24])
    return (register ^ int(_TABLE[index])) << 8 & 0xFFFFFFFF | index
