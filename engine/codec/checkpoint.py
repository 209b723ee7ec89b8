"""The checkpoint page, 4096 bytes of which five i64 are used (spec 5). Times are ms since the epoch. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from engine.errors import CorruptUnit

_FIELDS = struct.Struct(">qqqqq")
PAGE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was known to be on disk when the page was written; the last two fields are of 5.x."""

    physic_msg_timestamp: int
    logics_msg_timestamp: int
    index_msg_timestamp: int
    master_flushed_offset: int
    confirm_phy_offset: int

    @property
    def min_timestamp(self) -> int:
        """The time (ms) that an abnormal recovery goes back to: three seconds before the older of log and queues."""
        return max(min(self.physic_msg_timestamp, self.logics_msg_timestamp) - 3000, 0)

    @property
    def min_timestamp_index(self) -> int:
        """The same with the index taken into account (``messageIndexSafe``)."""
        return min(self.min_timestamp, self.index_msg_timestamp)


def decode(buf: bytes | bytearray | memoryview) -> Checkpoint:
    """The page's fields; raises :class:`CorruptUnit` where it is shorter than they are."""
    if len(buf) < _FIELDS.size:
        raise CorruptUnit(f"expected a checkpoint of {PAGE_SIZE} bytes, found {len(buf)}", offset=0)
    return Checkpoint(*_FIELDS.unpack_from(buf))


def encode(checkpoint: Checkpoint) -> bytes:
    """The whole page."""
    fields = _FIELDS.pack(
        checkpoint.physic_msg_timestamp,
        checkpoint.logics_msg_timestamp,
        checkpoint.index_msg_timestamp,
        checkpoint.master_flushed_offset,
        checkpoint.confirm_phy_offset,
    )
    return fields.ljust(PAGE_SIZE, b"\0")
