"""Walking a buffer of commit-log bytes: unit by unit, and to the next real unit after damage
(docs/formats/commit-log.md#blank, #unit-check).

One walker for all: the ``units`` command, the viewer's table, recovery and findings consume what :func:`walk` yields.
Pure; never raises on bad bytes: damage is a finding, not an accident.

The walk over one file of a commit log, from unit to unit and over damage to the next real one
(docs/formats/commit-log.md#blank, #unit-check).

:mod:`engine.codec.unit_scan` knows what stands at a place; this is its use on a file that lends its bytes piece by
piece. Whoever looks at a whole log and whoever reads a part of a file in another process walk it here, so both tell
one story. Nothing is opened here: bytes come from a :class:`LogBytes`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from engine.codec.message import LARGEST_UNIT, MAGIC_BLANK, Unit, cut, measure
from engine.codec.unit_flavours import MAGIC_BYTES, PREFIX
from engine.errors import CannotRead

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


BLOCK = 1 << 20
OVERLAP = 64

Item = Unit | Blank | Damage


class LogBytes(Protocol):
    """One file of a log: ``start_offset`` is the absolute offset (bytes) of its first byte, ``size`` its length."""

    @property
    def start_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def read(self, position: int, size: int) -> bytes:
        """Bytes from ``position`` on, short where the file ends; raises :class:`CannotRead`."""

    def next_data(self, position: int) -> int:
        """The first position at or behind ``position`` that may hold something other than zero bytes, −1 for none."""

    def is_followed(self) -> bool:
        """Whether a later file of the log holds data."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Items to yield where no unit stands, and the position in the file to go on at (−1: the file is done)."""

    items: list[Item | Stop]
    position: int


def walk_file(
    file: LogBytes, offset: int, stop: int | None = None, crc: bool = True, resync: bool = True
) -> Iterator[Item | Stop]:
    """Items of ``file`` from the absolute ``offset`` on; ends without a :class:`Stop` where the file ends and the log
    may go on in the next.

    Items from ``stop`` on are left out. Without ``resync`` the walk ends at the first damage.
    """
    position = offset - file.start_offset
    want = BLOCK
    while position < file.size:
        try:
            data = file.read(position, want)
        except CannotRead as error:
            yield _unread(file, position, error, resync)
            return
        if not data:
            reason = f"the file ends here, it had {file.size:,} bytes when it was opened"
            yield Stop(file.start_offset + position, "cut", reason)
            return
        at, base = 0, file.start_offset + position
        while True:
            seen = look(data, at, len(data), base, crc)
            if isinstance(seen, Stop):
                break
            if stop is not None and seen.offset >= stop:
                yield Stop(seen.offset, "limit", "end of the range")
                return
            yield seen
            if isinstance(seen, Blank):
                return
            at += seen.size
        position += at
        # Zero bytes that a block ends with may be the first of a unit's length.
        unknown = seen.kind in ("cut", "end") or len(data) - at < BLANK_SIZE
        if len(data) == want and unknown and _fits(data, at, want):
            want = max(BLOCK, int.from_bytes(data[at : at + 4], "big", signed=True)) if at == 0 else BLOCK
            continue
        if len(data) < want and position >= file.size:
            return
        trouble = after_trouble(file, position, seen, resync)
        yield from trouble.items
        if trouble.position < 0:
            return
        position, want = trouble.position, BLOCK


def after_trouble(file: LogBytes, position: int, seen: Stop, resync: bool = True) -> Trouble:
    """What to yield where no unit stands at ``position``, and where to go on."""
    offset = file.start_offset + position
    if not resync:
        return Trouble([seen], -1)
    try:
        found = find_in_file(file, position + 1, file.size)
        if found >= 0:
            return Trouble([Damage(offset, found - position, _damage_reason(seen))], found)
        if file.is_followed():
            size = file.start_offset + file.size - offset
            return Trouble([Damage(offset, size, _damage_reason(seen) + "; to the end of the file")], -1)
        if seen.kind == "zero":
            return Trouble([seen], -1)
        size = _last_byte(file, position) - position
    except CannotRead as error:
        return Trouble([_unread(file, position, error, resync)], -1)
    return Trouble([Damage(offset, size, seen.reason), Stop(offset, seen.kind, seen.reason)], -1)


def find_in_file(file: LogBytes, position: int, high: int) -> int:
    """Position of the next real unit or blank of ``file`` in [position, high), −1 where there is none."""
    while position < high:
        data_at = file.next_data(position)
        position = max(position, data_at - OVERLAP) if data_at >= 0 else -1
        if position < 0 or position >= high:
            return -1
        data = file.read(position, BLOCK)
        at = find_unit(data, file.start_offset + position, 0, file.start_offset + file.size)
        if at >= 0:
            return position + at if position + at < high else -1
        if len(data) < BLOCK:
            return -1
        position += BLOCK - OVERLAP
    return -1


def _fits(data: bytes, at: int, want: int) -> bool:
    """Whether more bytes may complete the unit at ``at``: it was cut by the block, not by the file."""
    if at > 0 or len(data) - at < 4:
        return True
    return want < int.from_bytes(data[:4], "big", signed=True) <= LARGEST_UNIT


def _unread(file: LogBytes, position: int, error: CannotRead, resync: bool) -> Damage | Stop:
    """The rest of a file that could not be read: nobody knows what stands there. The walk goes on behind it."""
    offset = file.start_offset + position
    if not resync:
        return Stop(offset, "unread", str(error))
    return Damage(offset, file.size - position, str(error), unread=True)


def _last_byte(file: LogBytes, position: int) -> int:
    """Position behind the last byte of ``file`` at or behind ``position`` that is not zero."""
    end = file.size
    while end > position:
        start = max(position, end - BLOCK)
        data = file.read(start, end - start).rstrip(b"\0")
        if data:
            return start + len(data)
        end = start
    return position


def _damage_reason(seen: Stop) -> str:
    return "zero bytes in front of the next unit" if seen.kind == "zero" else seen.reason
