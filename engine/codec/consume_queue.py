"""Consume queue unit, 20 bytes (docs/formats/consume-queue.md#entry), and the meanings of its tagsCode
(docs/formats/consume-queue.md#ext).

Pure: bytes in, records out. Reading many at once goes through ``dtypes.CQ_UNIT``; this module is for one unit at a
time.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

_UNIT = struct.Struct(">qiq")
CQ_UNIT_SIZE = 20
PREFILLED_SIZE = 0x7FFFFFFF
MAX_EXT_ADDRESS = -(1 << 31) - 1
EXT_BASE = -(1 << 63)

State = Literal["entry", "prefilled", "empty"]


@dataclass(frozen=True, slots=True)
class CqUnit:
    """Position and size of a message in the commit log (bytes), and the code of its tag."""

    physical_offset: int
    size: int
    tags_code: int  # Java's 32-bit string hash, sign-extended: compare the low 32 bits only

    @property
    def state(self) -> State:
        """``empty`` where the queue ends, ``prefilled`` in front of a queue that began at an offset above 0."""
        if self.physical_offset < 0 or self.size <= 0:
            return "empty"
        return "prefilled" if self.size == PREFILLED_SIZE and self.physical_offset == 0 else "entry"


def encode(unit: CqUnit) -> bytes:
    """Return the 20 bytes of ``unit``."""
    return _UNIT.pack(unit.physical_offset, unit.size, unit.tags_code)


def decode(buf: bytes | bytearray | memoryview, position: int = 0) -> CqUnit:
    """Return the unit at ``buf[position]``; raises ``struct.error`` if fewer than 20 bytes remain."""
    return CqUnit(*_UNIT.unpack_from(buf, position))


def is_ext_address(tags_code: int) -> bool:
    """Return True if a stored tagsCode is the address of a unit in the ext file."""
    return tags_code <= MAX_EXT_ADDRESS


def ext_offset(address: int) -> int:
    """Return the byte offset in the ext queue that an address stands for."""
    return address - EXT_BASE


def same_tag(tags_code: int, other_tags_code: int) -> bool:
    """Compare two tag codes as RocketMQ does: by their low 32 bits."""
    return (tags_code ^ other_tags_code) & 0xFFFFFFFF == 0
