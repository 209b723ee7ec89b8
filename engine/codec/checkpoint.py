"""The ``checkpoint`` file: store times up to which everything is on disk (docs/formats/checkpoint.md).

No I/O. 4.9 writes the first three fields, 5.x two more, 5.5 a sixth. A field that is zero counts as absent.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from engine.errors import CorruptUnit
from engine.sentences import sentence

CHECKPOINT_SIZE = 4096
_FIELDS = struct.Struct(">6q")
_NUMBER = struct.Struct(">q")
_FIRST_THREE_BYTES = 24
_SAFETY_MARGIN_MS = 3000
LATEST_TIME_MS = 4_102_444_800_000
"""The year 2100. A broker's clock never gives a later store time, nor one below zero."""
MAX_LOG_BYTES = 1 << 55
"""Larger than any commit log; random numbers are nearly always above it."""


class Part(NamedTuple):
    """A field of the file: RocketMQ's name for it, position, length in bytes."""

    name: str
    position: int
    length: int


PARTS = (
    Part("physicMsgTimestamp", 0, 8),
    Part("logicsMsgTimestamp", 8, 8),
    Part("indexMsgTimestamp", 16, 8),
    Part("masterFlushedOffset", 24, 8),
    Part("confirmPhyOffset", 32, 8),
    Part("logicsPhysicalOffset", 40, 8),
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Times are store times in ms, offsets are bytes of the commit log. None stands for a zero in the file."""

    physic_msg_timestamp: int  # up to which the commit log is flushed
    logics_msg_timestamp: int  # of the last entry put into a consume queue
    index_msg_timestamp: int  # end of the newest full and flushed index file
    master_flushed_offset: int | None = None
    confirm_phy_offset: int | None = None  # after plain recovery: start of the last valid message
    logics_physical_offset: int | None = None  # of the last unit in a queue, as of the last thorough flush (5.5)

    @property
    def numbers(self) -> tuple[int, int, int, int, int, int]:
        """The six numbers as the file holds them."""
        return (
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset or 0,
            self.confirm_phy_offset or 0,
            self.logics_physical_offset or 0,
        )

    @property
    def impossible(self) -> dict[str, int]:
        """The fields with values that no broker writes, by RocketMQ's names.

        These are times below zero or from :data:`LATEST_TIME_MS` on, and offsets that no log reaches. −1 is a valid
        offset: Java writes it for none.
        """
        bounds = ((0, LATEST_TIME_MS),) * 3 + ((-1, MAX_LOG_BYTES),) * 3
        numbers = zip(PARTS, self.numbers, bounds, strict=True)
        return {part.name: number for part, number, (least, limit) in numbers if not least <= number < limit}

    @property
    def min_timestamp(self) -> int:
        """The smaller of the log's and the queues' time, minus 3 s.

        Recovery after an abnormal exit starts at a file that is not newer.
        """
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - _SAFETY_MARGIN_MS)

    @property
    def min_timestamp_index(self) -> int:
        """Like :attr:`min_timestamp`, with the index's time: used if ``messageIndexSafe`` is on."""
        return min(self.min_timestamp, self.index_msg_timestamp)


def encode(checkpoint: Checkpoint, count: int = len(PARTS), old_bytes: bytes = b"") -> bytes:
    """Return the 4096 bytes of the file: ``count`` numbers, then the rest of ``old_bytes``."""
    packed = b"".join(_NUMBER.pack(number) for number in checkpoint.numbers[:count])
    return (packed + old_bytes[len(packed) : CHECKPOINT_SIZE]).ljust(CHECKPOINT_SIZE, b"\0")


def decode(buf: bytes | bytearray | memoryview) -> Checkpoint:
    """Return the checkpoint in the file's head; raises :class:`CorruptUnit` if there are fewer than three fields."""
    if len(buf) < _FIRST_THREE_BYTES:
        raise CorruptUnit(
            sentence("expected {expected:,} bytes, found {found:,}", expected=CHECKPOINT_SIZE, found=len(buf)), offset=0
        )
    head = bytes(buf[: _FIELDS.size])
    physic, logics, index, master, confirm, dispatched = _FIELDS.unpack(head.ljust(_FIELDS.size, b"\0"))
    return Checkpoint(physic, logics, index, master or None, confirm or None, dispatched or None)
