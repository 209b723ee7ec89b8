"""Batch consume queue unit, 46 bytes (docs/formats/consume-queue.md#batch-queues).

Pure: bytes in, records out. Reading many at once goes through ``dtypes.BATCH_CQ_UNIT``; this module is for one unit at
a time. Entries stand back to back, so a unit's place says nothing about its queue offset: ``msg_base_offset`` does.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_UNIT = struct.Struct(">qiqqqhii")
BATCH_CQ_UNIT_SIZE = _UNIT.size
NOT_COMPACTED = -1


@dataclass(frozen=True, slots=True)
class BatchCqUnit:
    """The place of a batch in the commit log (bytes) and the queue offsets of its messages. Time in ms."""

    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    msg_base_offset: int  # queue offset of the first message
    batch_size: int  # messages; 1 for a single message
    compacted_offset: int = NOT_COMPACTED
    reserved: int = 0

    @property
    def valid(self) -> bool:
        """RocketMQ's test; the first unit that fails it is the end of the queue."""
        return self.physical_offset >= 0 and self.size > 0 and self.msg_base_offset >= 0 and self.batch_size > 0

    @property
    def next_offset(self) -> int:
        """Queue offset behind the batch."""
        return self.msg_base_offset + self.batch_size


def encode(unit: BatchCqUnit) -> bytes:
    """Return the 46 bytes of ``unit``."""
    return _UNIT.pack(
        unit.physical_offset,
        unit.size,
        unit.tags_code,
        unit.store_timestamp,
        unit.msg_base_offset,
        unit.batch_size,
        unit.compacted_offset,
        unit.reserved,
    )


def decode(buf: bytes | bytearray | memoryview, position: int = 0) -> BatchCqUnit:
    """Return the unit at ``buf[position]``; raises ``struct.error`` if fewer than 46 bytes remain."""
    return BatchCqUnit(*_UNIT.unpack_from(buf, position))
