"""What goes over an HA port, without I/O (docs/formats/replication.md; Java: ``DefaultHAConnection``,
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

_HEADER = struct.Struct(">qi")
_OFFSET = struct.Struct(">q")
_UNIT = struct.Struct(">iI")
_FLAGS, _FLAGS_AT = struct.Struct(">i"), 36
_STORED, _STORED_V6 = 56, 68
"""Where the store time stands in a unit (docs/formats/commit-log.md#unit): behind a host of 8 bytes, or of 20."""
REPORT_SIZE = _OFFSET.size
_MOST = 64 << 20
"""Bytes of one transfer: a master sends 32 KiB at once unless it is told otherwise."""


def report(offset: int) -> bytes:
    """What a slave says: the end of what it has."""
    return _OFFSET.pack(offset)


def read_report(raw: bytes) -> int:
    """The offset that a slave says."""
    offset: int = _OFFSET.unpack(raw)[0]
    return offset


def transfer_header(offset: int, size: int) -> bytes:
    """What a master says before ``size`` bytes of its log from ``offset`` on."""
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
        """The transfers that are whole now. Raises :class:`CorruptUnit` for what no master sends."""
        buffer, found = self._buffer, []
        buffer += data
        at = 0
        while len(buffer) - at >= _HEADER.size:
            offset, size = _HEADER.unpack_from(buffer, at)
            if offset < 0 or not 0 <= size <= _MOST:
                raise CorruptUnit(f"expected a transfer of an HA port, found offset {offset:,} and size {size:,}")
            if len(buffer) - at - _HEADER.size < size:
                break
            begin = at + _HEADER.size
            found.append(Transfer(offset, bytes(memoryview(buffer)[begin : begin + size])))
            at = begin + size
        del buffer[:at]
        return found


class UnitCutter:
    """Gathers transfers, and gives whole units: a log that ends with one can be opened whenever the link breaks."""

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
        """The units that are whole now; they stand at the :attr:`offset` from before. Raises :class:`CorruptUnit`."""
        if transfer.offset != self.expected:
            raise CorruptUnit(f"expected bytes of offset {self.expected:,}, the master sends {transfer.offset:,}")
        pending = self._pending
        pending += transfer.data
        at = 0
        while len(pending) - at >= _UNIT.size:
            size, magic = _UNIT.unpack_from(pending, at)
            self._check(self.offset + at, size, magic)
            if len(pending) - at < size:
                break
            if magic != MAGIC_BLANK:
                self._note_time(memoryview(pending)[at : at + size])
            at += size
        whole = bytes(memoryview(pending)[:at])
        del pending[:at]
        self.offset += at
        return whole

    def _note_time(self, unit: memoryview) -> None:
        if len(unit) >= _STORED_V6 + _OFFSET.size:
            (flags,) = _FLAGS.unpack_from(unit, _FLAGS_AT)
            (self.stored,) = _OFFSET.unpack_from(unit, _STORED_V6 if flags & BORN_HOST_V6 else _STORED)

    def _check(self, offset: int, size: int, magic: int) -> None:
        room = self._file_size - offset % self._file_size
        if magic == MAGIC_BLANK and size != room:
            words = (
                f"the master's log file ends {size:,} bytes behind here, one of {self._file_size:,} bytes in {room:,}"
            )
            raise CorruptUnit(f"{words}: expected its mappedFileSizeCommitLog", offset=offset)
        if magic not in MAGICS and magic != MAGIC_BLANK:
            raise CorruptUnit(f"the master's log has no unit here: magic {magic:#010x}", offset=offset)
        if not _UNIT.size <= size <= room:
            words = f"the master's log has a unit of {size:,} bytes, its file ends in {room:,}"
            raise CorruptUnit(words, offset=offset)
