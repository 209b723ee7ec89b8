"""Units of a consume queue's ext file: the real tag, the store time, a filter's bit map
(docs/formats/consume-queue.md#ext).

Pure and bounded. An address in a queue entry (``consume_queue.ext_offset``) is a byte offset in the ext queue; a unit
never crosses a file. A file ends with the size −1 if the next unit did not fit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.sentences import plural, sentence

_HEAD = struct.Struct(">hqqh")
_SIZE = struct.Struct(">h")
MIN_UNIT_BYTES = _HEAD.size
END_MARK = -1
EXT_BASE = -(1 << 63)
RESERVED_TAIL_BYTES = 4
"""Bytes at a file's end that no unit uses."""


@dataclass(frozen=True, slots=True)
class CqExtUnit:
    """A unit at byte ``offset`` of the ext queue. Time in ms; ``bit_map`` is empty if there was no SQL group."""

    offset: int
    size: int
    tags_code: int  # hash of the tag, or delivery time in the schedule topic
    store_timestamp: int
    bit_map: bytes

    @property
    def address(self) -> int:
        """The number that a queue entry holds in place of its tagsCode."""
        return self.offset + EXT_BASE

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class CqExtStop:
    """The end of a walk: at the mark that leads to the next file, at zeros, at the last byte, or at damage."""

    offset: int
    kind: Literal["mark", "zero", "end", "damage"]
    reason: str


def encode(unit: CqExtUnit) -> bytes:
    """Return the bytes of ``unit``; its size follows from the bit map."""
    head = _HEAD.pack(MIN_UNIT_BYTES + len(unit.bit_map), unit.tags_code, unit.store_timestamp, len(unit.bit_map))
    return head + unit.bit_map


def decode(buf: bytes | bytearray | memoryview, position: int, base: int) -> CqExtUnit | CqExtStop:
    """Return the unit or stop at ``buf[position]``; ``base`` is the ext queue's offset of ``buf[0]``. Never raises
    for ``position`` ≥ 0.
    """
    room = len(buf) - position
    if room < _SIZE.size:
        return CqExtStop(base + position, "end", sentence("end of the bytes"))
    (size,) = _SIZE.unpack_from(buf, position)
    if size == END_MARK:
        return CqExtStop(base + position, "mark", sentence("end mark: the next unit is in the next file"))
    if size == 0:
        return CqExtStop(base + position, "zero", sentence("zero bytes: nothing was written here"))
    if size < MIN_UNIT_BYTES or size > room:
        return CqExtStop(
            base + position,
            "damage",
            sentence(
                "a unit's length is {found:,}, expected {low:,} to {high:,}",
                found=size,
                low=MIN_UNIT_BYTES,
                high=room,
            ),
        )
    _, tags_code, store_timestamp, bits = _HEAD.unpack_from(buf, position)
    if bits != size - MIN_UNIT_BYTES:
        reason = plural(
            "the bit map's length is {bits:,}, {n:,} byte is left in the unit",
            "the bit map's length is {bits:,}, {n:,} bytes are left in the unit",
            bits=bits,
            n=size - MIN_UNIT_BYTES,
        )
        return CqExtStop(base + position, "damage", reason)
    return CqExtUnit(
        base + position, size, tags_code, store_timestamp, bytes(buf[position + MIN_UNIT_BYTES : position + size])
    )


def overrun(buf: bytes | bytearray | memoryview) -> int | None:
    """Return the position of the unit of one file whose length goes beyond the file; None if there is none.

    A broker does not start with it: it jumps from unit to unit by their lengths alone.
    """
    position, last = 0, len(buf) - _SIZE.size
    while position <= last:
        size = int.from_bytes(buf[position : position + _SIZE.size], "big", signed=True)
        if size <= 0:
            return None
        count = (last - position) // size + 1
        sizes = np.ndarray((count,), ">i2", buf, position, (size,))  # most units of a file have one length
        others = np.flatnonzero(sizes != size)
        run = int(others[0]) if len(others) else count
        if position + run * size > last:
            return position + (run - 1) * size
        position += run * size
    return None


def walk(buf: bytes | bytearray | memoryview, base: int, start: int = 0) -> Iterator[CqExtUnit | CqExtStop]:
    """Yield every unit of one file's bytes from position ``start`` on, then one stop with the reason for the end."""
    position = start
    while True:
        item = decode(buf, position, base)
        yield item
        if isinstance(item, CqExtStop):
            return
        position += item.size
