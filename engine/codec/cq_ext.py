"""Units of a consume queue's ext file: the real tag, the store time, a filter's bit map
(docs/formats/consume-queue.md#ext).

Pure and bounded. An address in a queue entry (``consume_queue.ext_offset``) is a byte offset in the ext queue; a unit
never crosses a file. A file ends with the size −1 where the next unit did not fit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_HEAD = struct.Struct(">hqqh")
_SIZE = struct.Struct(">h")
SMALLEST = _HEAD.size
END_MARK = -1
EXT_BASE = -(1 << 63)
KEPT_FREE = 4
"""Bytes at a file's end that no unit uses."""


@dataclass(frozen=True, slots=True)
class CqExtUnit:
    """One unit at byte ``offset`` of the ext queue. Time in ms; ``bit_map`` is empty where no SQL group was there."""

    offset: int
    size: int
    tags_code: int  # hash of the tag, or delivery time in the schedule topic
    store_timestamp: int
    bit_map: bytes

    @property
    def address(self) -> int:
        """What a queue entry holds in place of its tagsCode."""
        return self.offset + EXT_BASE

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class CqExtStop:
    """Where a walk ended: at the mark that sends readers to the next file, at zeros, at the last byte, or at damage."""

    offset: int
    kind: Literal["mark", "zero", "end", "damage"]
    reason: str


def encode(unit: CqExtUnit) -> bytes:
    """The bytes of ``unit``; its size follows from the bit map."""
    head = _HEAD.pack(SMALLEST + len(unit.bit_map), unit.tags_code, unit.store_timestamp, len(unit.bit_map))
    return head + unit.bit_map


def decode(buf: bytes | bytearray | memoryview, at: int, base: int) -> CqExtUnit | CqExtStop:
    """What stands at ``buf[at]``; ``base`` is the ext queue's offset of ``buf[0]``. Never raises for ``at`` ≥ 0."""
    room = len(buf) - at
    if room < _SIZE.size:
        return CqExtStop(base + at, "end", "end of the bytes")
    (size,) = _SIZE.unpack_from(buf, at)
    if size == END_MARK:
        return CqExtStop(base + at, "mark", "end mark: the next unit is in the next file")
    if size == 0:
        return CqExtStop(base + at, "zero", "zero bytes: nothing was written here")
    if size < SMALLEST or size > room:
        return CqExtStop(base + at, "damage", f"a unit's length says {size:,}, expected {SMALLEST} to {room:,}")
    _, tags_code, store_timestamp, bits = _HEAD.unpack_from(buf, at)
    if bits != size - SMALLEST:
        reason = f"the bit map's length says {bits:,}, {size - SMALLEST:,} bytes are left in the unit"
        return CqExtStop(base + at, "damage", reason)
    return CqExtUnit(base + at, size, tags_code, store_timestamp, bytes(buf[at + SMALLEST : at + size]))


def walk(buf: bytes | bytearray | memoryview, base: int, start: int = 0) -> Iterator[CqExtUnit | CqExtStop]:
    """Every unit of one file's bytes from position ``start`` on, then the one stop that says why the walk ended."""
    at = start
    while True:
        seen = decode(buf, at, base)
        yield seen
        if isinstance(seen, CqExtStop):
            return
        at += seen.size
