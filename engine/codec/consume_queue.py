"""Consume queue unit, 20 bytes (docs/formats/consume-queue.md#entry), and what its tagsCode may stand for
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
    """Where a message lies in the commit log, how long it is (bytes), and its tag."""

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
    """The 20 bytes of ``unit``."""
    return _UNIT.pack(unit.physical_offset, unit.size, unit.tags_code)


def decode(buf: bytes | bytearray | memoryview, at: int = 0) -> CqUnit:
    """The unit at ``buf[at]``; raises ``struct.error`` where fewer than 20 bytes are left."""
    return CqUnit(*_UNIT.unpack_from(buf, at))


def is_ext_address(tags_code: int) -> bool:
    """Whether a stored tagsCode is the address of a unit in the ext file."""
    return tags_code <= MAX_EXT_ADDRESS


def ext_offset(address: int) -> int:
    """Byte offset in the ext queue that an address stands for."""
    return address - EXT_BASE


def same_tag(one: int, other: int) -> bool:
    """RocketMQ's comparison of tag codes: the low 32 bits."""
    return (one ^ other) & 0xFFFFFFFF == 0
