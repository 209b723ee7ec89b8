"""The protocol of an HA port, without I/O (docs/formats/replication.md; Java: ``DefaultHAConnection``,
``DefaultHAClient``).

A slave says an offset (8 bytes): first the one it wants to begin at, then how far it has come. The master sends a
header of 12 bytes (offset, size) and as many bytes of its log; none where there is nothing new for five seconds.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from engine.codec.message import BORN_HOST_V6, MAGIC_BLANK
from engine.codec.unit_flavours import MAGICS
from engine.errors import CorruptUnit
from engine.sentences import sentence

_HEADER = struct.Struct(">qi")
_OFFSET = struct.Struct(">q")
_UNIT = struct.Struct(">iI")
_FLAGS, _FLAGS_AT = struct.Struct(">i"), 36
_STORED, _STORED_V6 = 56, 68
"""Where the store time stands in a unit (docs/formats/commit-log.md#unit): behind a host of 8 bytes, or of 20."""
REPORT_SIZE = _OFFSET.size
_MAX_TRANSFER_BYTES = 64 << 20
"""Bytes of one transfer: a master sends 32 KiB at once by default."""


def report(offset: int) -> bytes:
    """Encode a slave's report: the end offset of its log."""
    return _OFFSET.pack(offset)


def read_report(raw: bytes) -> int:
    """Decode the offset in a slave's report."""
    offset: int = _OFFSET.unpack(raw)[0]
    return offset


def transfer_header(offset: int, size: int) -> bytes:
    """Encode the header that a master sends before ``size`` bytes of its log from ``offset`` on."""
    return _HEADER.pack(offset, size)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes of the master's log from ``offset`` on; none: it has nothing new."""

    offset: int
    data: bytes


class Receiver:
    """Cuts what a master sends into transfers."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Transfer]:
        """Return the transfers that are complete now. Raises :class:`CorruptUnit` for what no master sends."""
        buffer, transfers = self._buffer, []
        buffer += data
        position = 0
        while len(buffer) - position >= _HEADER.size:
            offset, size = _HEADER.unpack_from(buffer, position)
            if offset < 0 or not 0 <= size <= _MAX_TRANSFER_BYTES:
                raise CorruptUnit(
                    sentence(
                        "expected a transfer of an HA port, found offset {offset:,} and size {size:,}",
                        offset=offset,
                        size=size,
                    )
                )
            if len(buffer) - position - _HEADER.size < size:
                break
            begin = position + _HEADER.size
            transfers.append(Transfer(offset, bytes(memoryview(buffer)[begin : begin + size])))
            position = begin + size
        del buffer[:position]
        return transfers


class UnitCutter:
    """Gathers transfers and yields complete units, so that the log can be opened whenever the link breaks."""

    def __init__(self, offset: int, file_size: int) -> None:
        self.offset = offset
        """Of the log, where the next unit begins that is not whole yet."""
        self.stored = 0
        """Store time (ms) of the last message that came out; 0 before the first."""
        self._file_size = file_size
        self._pending = bytearray()

    @property
    def expected(self) -> int:
        """Offset of the byte that comes next."""
        return self.offset + len(self._pending)

    def feed(self, transfer: Transfer) -> bytes:
        """Return the units that are complete now; they begin at the :attr:`offset` from before the call. Raises
        :class:`CorruptUnit`.
        """
        if transfer.offset != self.expected:
            raise CorruptUnit(
                sentence(
                    "expected bytes of offset {expected:,}, the master sends {offset:,}",
                    expected=self.expected,
                    offset=transfer.offset,
                )
            )
        pending = self._pending
        pending += transfer.data
        position = 0
        while len(pending) - position >= _UNIT.size:
            size, magic = _UNIT.unpack_from(pending, position)
            self._check(self.offset + position, size, magic)
            if len(pending) - position < size:
                break
            if magic != MAGIC_BLANK:
                self._note_time(memoryview(pending)[position : position + size])
            position += size
        units = bytes(memoryview(pending)[:position])
        del pending[:position]
        self.offset += position
        return units

    def _note_time(self, unit: memoryview) -> None:
        if len(unit) >= _STORED_V6 + _OFFSET.size:
            (flags,) = _FLAGS.unpack_from(unit, _FLAGS_AT)
            (self.stored,) = _OFFSET.unpack_from(unit, _STORED_V6 if flags & BORN_HOST_V6 else _STORED)

    def _check(self, offset: int, size: int, magic: int) -> None:
        room = self._file_size - offset % self._file_size
        if magic == MAGIC_BLANK and size != room:
            words = sentence(
                "the master's log file ends {size:,} bytes behind here, one of {file_size:,} bytes in {room:,}",
                size=size,
                file_size=self._file_size,
                room=room,
            )
            raise CorruptUnit(sentence("{words}: expected its mappedFileSizeCommitLog", words=words), offset=offset)
        if magic not in MAGICS and magic != MAGIC_BLANK:
            raise CorruptUnit(
                sentence("the master's log has no unit here: magic {magic:#010x}", magic=magic), offset=offset
            )
        if not _UNIT.size <= size <= room:
            words = sentence(
                "the master's log has a unit of {size:,} bytes, its file ends in {room:,}", size=size, room=room
            )
            raise CorruptUnit(words, offset=offset)
