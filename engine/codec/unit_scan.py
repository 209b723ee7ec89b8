"""Walking a buffer of commit-log bytes: unit by unit, and to the next real unit after damage (spec 2.2, 2.9).

One walker for all: the ``units`` command, the viewer's table, recovery and findings consume what :func:`walk` yields.
Pure; never raises on bad bytes: damage is a finding, not an accident.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from engine.codec.message import MAGIC_BLANK, Unit, cut, measure
from engine.codec.unit_flavours import MAGIC_BYTES, PREFIX

Bytes = bytes | bytearray | memoryview

_PAIR = struct.Struct(">iI")
_I64 = struct.Struct(">q")
_BLANK = MAGIC_BLANK.to_bytes(4, "big")
BLANK_SIZE = 8


@dataclass(frozen=True, slots=True)
class Blank:
    """The end-of-file unit: ``size`` is what it says of itself, counted from ``offset`` to the end of the file."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Damage:
    """``size`` bytes from ``offset`` on that are no unit; behind them something can be read again, or the log ends.

    ``unread`` says that nobody knows whether they are: they could not be read.
    """

    offset: int
    size: int
    reason: str
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a walk ended and why: ``zero`` (nothing was written here), ``end`` (no more bytes), ``cut``, ``damage`` or
    ``unread`` (what follows could not be read).
    """

    offset: int
    kind: str
    reason: str


def look(buf: Bytes, at: int, limit: int, base: int, crc: bool = True) -> Unit | Blank | Stop:
    """What stands at ``buf[at]``; bytes from ``limit`` on do not exist, ``base`` is the offset of ``buf[0]``."""
    room = limit - at
    if room <= 0:
        return Stop(base + at, "end", "end of the bytes")
    if room < BLANK_SIZE:
        kind = "cut" if any(buf[at:limit]) else "zero"
        return Stop(base + at, kind, f"cut off: {room} bytes left, a unit has at least 91")
    size, magic = _PAIR.unpack_from(buf, at)
    if magic == MAGIC_BLANK:
        return Blank(base + at, size)
    if size == 0 and magic == 0:
        return Stop(base + at, "zero", "zero bytes: nothing was written here")
    frame = measure(buf, at, limit)
    if isinstance(frame, str):
        return Stop(base + at, "cut" if frame.startswith("cut off") else "damage", frame)
    return cut(buf, at, frame, base, crc)


def walk(buf: Bytes, base: int, start: int = 0, crc: bool = True) -> Iterator[Unit | Blank | Stop]:
    """Yield every unit of ``buf`` from position ``start`` on, then one :class:`Stop` that says why the walk ended.

    A blank ends the file and so the walk, as the last item but the stop. ``base`` is the absolute offset of ``buf[0]``.
    """
    at, limit = start, len(buf)
    while True:
        seen = look(buf, at, limit, base, crc)
        yield seen
        if isinstance(seen, Stop):
            return
        if isinstance(seen, Blank):
            yield Stop(seen.offset + max(seen.size, BLANK_SIZE), "end", "end of the file")
            return
        at += seen.size


def find_unit(buf: Bytes, base: int, start: int, file_end: int) -> int:
    """Position of the next real unit or blank at or behind ``start``, or −1.

    Real means more than a magic number: the lengths inside agree to the byte and PHYSICALOFFSET is the place itself; a
    blank counts from its place to ``file_end`` (absolute offset of the file's end). A unit that the buffer cuts off is
    taken where the fields that are here agree.
    """
    data = buf if isinstance(buf, (bytes, bytearray)) else bytes(buf)
    at, limit = start, len(data)
    unit, blank = -2, -2
    while at + BLANK_SIZE <= limit:
        if unit != -1 and unit < at + 4:
            unit = data.find(PREFIX, at + 4)
        if blank != -1 and blank < at + 4:
            blank = data.find(_BLANK, at + 4)
        hits = [hit for hit in (unit, blank) if hit >= 0]
        if not hits:
            return -1
        at = min(hits) - 4
        if _is_real(data, at, limit, base, file_end):
            return at
        at += 1
    return -1


def _is_real(data: Bytes, at: int, limit: int, base: int, file_end: int) -> bool:
    if data[at + 4 : at + 8] == _BLANK:
        return bool(base + at + _PAIR.unpack_from(data, at)[0] == file_end)
    if bytes(data[at + 4 : at + 8]) not in MAGIC_BYTES or at + 36 > limit:
        return False
    size = _PAIR.unpack_from(data, at)[0]
    if _I64.unpack_from(data, at + 28)[0] != base + at or base + at + size > file_end:
        return False
    frame = measure(data, at, limit)
    return not isinstance(frame, str) or (frame.startswith("cut off") and size > limit - at)
