"""Walk commit-log bytes from unit to unit, and over damage to the next real unit (docs/formats/commit-log.md#blank,
#unit-check).

This is the only walker: the ``units`` command, the window's table, recovery, findings and Spark tasks all consume
its items. :func:`walk` goes over a buffer, :func:`walk_file` over a file that is read in pieces through
:class:`LogBytes`. Pure: opens nothing and never raises on bad bytes. Damage is an item, not an exception.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from engine.codec import dledger
from engine.codec.message import MAGIC_BLANK, MAX_UNIT_BYTES, MIN_UNIT_SIZE, Unit, check_frame, decode_frame
from engine.codec.unit_flavours import MAGIC_BYTES, PREFIX
from engine.errors import CannotRead
from engine.sentences import plural, sentence

Bytes = bytes | bytearray | memoryview

_PAIR = struct.Struct(">iI")
_I64 = struct.Struct(">q")
_BLANK = MAGIC_BLANK.to_bytes(4, "big")
BLANK_SIZE = 8


@dataclass(frozen=True, slots=True)
class Blank:
    """The end-of-file unit. ``size`` is its own size field, counted from ``offset`` to the end of the file."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Damage:
    """``size`` bytes from ``offset`` on that are no unit. Behind them comes a readable unit, or the log ends.

    With ``unread`` the bytes could not be read, so nobody knows what they are.
    """

    offset: int
    size: int
    reason: str
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of a walk and its reason: ``zero`` (nothing was written here), ``end`` (no more bytes), ``cut``,
    ``damage`` or ``unread`` (the bytes that follow could not be read).
    """

    offset: int
    kind: str
    reason: str


def decode_item(buf: Bytes, position: int, limit: int, base: int, crc: bool = True) -> Unit | Blank | Stop:
    """Decode the unit, blank or stop at ``buf[position]``. Bytes from ``limit`` on do not exist; ``base`` is the
    offset of ``buf[0]``.
    """
    room = limit - position
    if room <= 0:
        return Stop(base + position, "end", sentence("end of the bytes"))
    if room < BLANK_SIZE:
        kind = "cut" if any(buf[position:limit]) else "zero"
        return Stop(
            base + position,
            kind,
            plural(
                "cut off: {n} byte left, a unit has at least {least}",
                "cut off: {n} bytes left, a unit has at least {least}",
                n=room,
                least=MIN_UNIT_SIZE,
            ),
        )
    size, magic = _PAIR.unpack_from(buf, position)
    if magic == MAGIC_BLANK:
        return Blank(base + position, size)
    if size == 0 and magic == 0:
        return Stop(base + position, "zero", sentence("zero bytes: nothing was written here"))
    frame = check_frame(buf, position, limit)
    if isinstance(frame, str):
        return Stop(base + position, "cut" if frame.startswith("cut off") else "damage", frame)
    return decode_frame(buf, position, frame, base, crc)


def decode_entry_item(buf: Bytes, position: int, limit: int, base: int, crc: bool = True) -> Unit | Blank | Stop:
    """Decode like :func:`decode_item` in a DLedger log (docs/formats/dledger.md): at ``position`` is the header of an
    entry, and the unit is its body; or the unit itself, where a walk begins at a unit or its header is damaged.
    """
    room = limit - position
    if room < BLANK_SIZE:
        return decode_item(buf, position, limit, base, crc)
    blank_size = dledger.decode_blank(buf, position)
    if blank_size is not None:
        return Blank(base + position, blank_size)
    magic, size = _PAIR.unpack_from(buf, position)
    if magic != dledger.MAGIC or size == 0:
        item = decode_item(buf, position, limit, base, crc)
        return item if isinstance(item, (Unit, Stop)) else Stop(base + position, "damage", _NO_ENTRY)
    if room < dledger.HEADER_SIZE:
        return Stop(base + position, "cut", sentence("cut off: {n} bytes of the header of an entry", n=room))
    header = dledger.decode_header(buf, position)
    if header is None or header.position != base + position:
        return Stop(base + position, "damage", _NO_ENTRY)
    item = decode_item(buf, position + dledger.HEADER_SIZE, min(limit, position + header.size), base, crc)
    if isinstance(item, Unit) and item.size == header.body_size:
        return item
    if isinstance(item, Stop) and header.size > room:
        return Stop(base + position, "cut", sentence("cut off: the entry has {n:,} bytes", n=header.size))
    reason = item.reason if isinstance(item, Stop) else sentence("its size is not the size of the entry's body")
    return Stop(base + position, "damage", sentence("the body of the entry is no unit: {reason}", reason=reason))


_NO_ENTRY = sentence("no header of a DLedger entry")
Decode = Callable[[Bytes, int, int, int, bool], Unit | Blank | Stop]
"""The signature of :func:`decode_item` and :func:`decode_entry_item`."""


def walk(buf: Bytes, base: int, start: int = 0, crc: bool = True) -> Iterator[Unit | Blank | Stop]:
    """Yield every unit of ``buf`` from position ``start`` on, then one :class:`Stop` with the reason for the end.

    A blank ends the file, so only the stop follows it. ``base`` is the absolute offset of ``buf[0]``.
    """
    position, limit = start, len(buf)
    while True:
        item = decode_item(buf, position, limit, base, crc)
        yield item
        if isinstance(item, Stop):
            return
        if isinstance(item, Blank):
            yield Stop(item.offset + max(item.size, BLANK_SIZE), "end", sentence("end of the file"))
            return
        position += item.size


def find_unit(buf: Bytes, base: int, start: int, file_end: int) -> int:
    """Return the position of the next real unit or blank at or behind ``start``, or −1.

    Real means more than a magic number: the lengths inside agree to the byte and PHYSICALOFFSET is the unit's own
    place. A blank must reach exactly to ``file_end`` (absolute offset of the file's end). A unit that the buffer
    cuts off counts if the fields in the buffer agree.

    """
    data = buf if isinstance(buf, (bytes, bytearray)) else bytes(buf)
    position, limit = start, len(data)
    unit, blank = -2, -2
    while position + BLANK_SIZE <= limit:
        if unit != -1 and unit < position + 4:
            unit = data.find(PREFIX, position + 4)
        if blank != -1 and blank < position + 4:
            blank = data.find(_BLANK, position + 4)
        hits = [hit for hit in (unit, blank) if hit >= 0]
        if not hits:
            return -1
        position = min(hits) - 4
        if _is_real(data, position, limit, base, file_end):
            return position
        position += 1
    return -1


def _is_real(data: Bytes, position: int, limit: int, base: int, file_end: int) -> bool:
    if data[position + 4 : position + 8] == _BLANK:
        return bool(base + position + _PAIR.unpack_from(data, position)[0] == file_end)
    if bytes(data[position + 4 : position + 8]) not in MAGIC_BYTES or position + 36 > limit:
        return False
    size = _PAIR.unpack_from(data, position)[0]
    if _I64.unpack_from(data, position + 28)[0] != base + position or base + position + size > file_end:
        return False
    frame = check_frame(data, position, limit)
    return not isinstance(frame, str) or (frame.startswith("cut off") and size > limit - position)


BLOCK_BYTES = 1 << 20
FIRST_BLOCK_BYTES = 1 << 17
"""Bytes that are read first: a view wants the next hundred units, and a search ends at the first one."""
OVERLAP_BYTES = 64
FRESH_BYTES = 1 << 12
"""Bytes that are read once more before they are called damage."""

Item = Unit | Blank | Damage


class LogBytes(Protocol):
    """A file of a log. ``start_offset`` is the absolute offset (bytes) of its first byte, ``size`` its length."""

    @property
    def start_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def read(self, position: int, size: int) -> bytes:
        """Return bytes from ``position`` on, fewer at the end of the file; raises :class:`CannotRead`."""

    def next_data(self, position: int) -> int:
        """Return the first position at or behind ``position`` that may hold non-zero bytes, −1 for none."""

    def is_followed(self) -> bool:
        """Return True if a later file of the log holds data."""


@dataclass(frozen=True, slots=True)
class DamageSkip:
    """Items to yield for bytes that are no unit, and the position in the file to go on at (−1: the file is done)."""

    items: list[Item | Stop]
    position: int


def walk_file(
    file: LogBytes,
    offset: int,
    stop: int | None = None,
    crc: bool = True,
    resync: bool = True,
    decode: Decode = decode_item,
) -> Iterator[Item | Stop]:
    """Yield the items of ``file`` from the absolute ``offset`` on. No :class:`Stop` comes last if the log may
    continue in the next file.

    Items from ``stop`` on are left out. Without ``resync`` the walk ends at the first damage. ``decode`` is
    :func:`decode_entry_item` for a file of a DLedger log.
    """
    position = offset - file.start_offset
    read_size = min(FIRST_BLOCK_BYTES, BLOCK_BYTES)
    while position < file.size:
        try:
            data = file.read(position, read_size)
        except CannotRead as error:
            yield _unread_item(file, position, error, resync)
            return
        if not data:
            reason = sentence("the file ends here, it had {size:,} bytes when it was opened", size=file.size)
            yield Stop(file.start_offset + position, "cut", reason)
            return
        index, base = 0, file.start_offset + position
        while True:
            item = decode(data, index, len(data), base, crc)
            if isinstance(item, Stop):
                break
            if stop is not None and item.offset >= stop:
                yield Stop(item.offset, "limit", sentence("end of the range"))
                return
            yield item
            if isinstance(item, Blank):
                return
            index = item.offset + item.size - base
        position += index
        # Zero bytes that a block ends with may be the first of a unit's length.
        may_continue = item.kind in ("cut", "end") or len(data) - index < BLANK_SIZE
        if len(data) == read_size and may_continue and _fits(data, index, read_size):
            read_size = max(BLOCK_BYTES, stored_size(data)) if index == 0 else BLOCK_BYTES
            continue
        if len(data) < read_size and position >= file.size:
            return
        trouble = skip_damage(file, position, item, resync, decode)
        yield from trouble.items
        if trouble.position < 0:
            return
        position, read_size = trouble.position, BLOCK_BYTES


def skip_damage(
    file: LogBytes, position: int, stop: Stop, resync: bool = True, decode: Decode = decode_item
) -> DamageSkip:
    """Return the items to yield for the bytes at ``position``, which are no unit, and the position to go on at.

    That is ``position`` itself if a writer has completed a unit or blank there since the bytes were read. A writer
    fills a log in order: what is no unit when something behind it has been seen will never be one.
    """
    offset = file.start_offset + position
    if not resync:
        return DamageSkip([stop], -1)
    try:
        next_position = find_in_file(file, position + 1, file.size)
        is_inside = next_position >= 0 or file.is_followed()
        if (is_inside or stop.kind != "zero") and _is_item_now(file, position, decode):
            return DamageSkip([], position)
        if next_position >= 0 and decode is decode_entry_item:
            next_position = _entry_around(file, position, next_position)
        if next_position >= 0:
            return DamageSkip([Damage(offset, next_position - position, _damage_reason(stop))], next_position)
        if is_inside:
            size = file.start_offset + file.size - offset
            return DamageSkip(
                [Damage(offset, size, _damage_reason(stop) + "; " + sentence("to the end of the file"))], -1
            )
        if stop.kind == "zero":
            return DamageSkip([stop], -1)
        size = _last_byte(file, position) - position
    except CannotRead as error:
        return DamageSkip([_unread_item(file, position, error, resync)], -1)
    return DamageSkip([Damage(offset, size, stop.reason), Stop(offset, stop.kind, stop.reason)], -1)


def _is_item_now(file: LogBytes, position: int, decode: Decode) -> bool:
    """Return True if freshly read bytes at ``position`` are a unit or a blank."""
    offset = file.start_offset + position
    size = FRESH_BYTES
    data = file.read(position, size)
    item = decode(data, 0, len(data), offset, False)
    if isinstance(item, Stop) and item.kind == "cut" and len(data) == size < stored_size(data) and _fits(data, 0, size):
        size = stored_size(data)
        data = file.read(position, size)
        item = decode(data, 0, len(data), offset, False)
    return not isinstance(item, Stop)


def find_in_file(file: LogBytes, position: int, end: int) -> int:
    """Return the position of the next real unit or blank of ``file`` in [position, end), −1 if there is none."""
    block_size = min(FIRST_BLOCK_BYTES, BLOCK_BYTES)
    while position < end:
        data_at = file.next_data(position)
        position = max(position, data_at - OVERLAP_BYTES) if data_at >= 0 else -1
        if position < 0 or position >= end:
            return -1
        data = file.read(position, block_size)
        index = find_unit(data, file.start_offset + position, 0, file.start_offset + file.size)
        is_cut_off = index >= 0 and index + _PAIR.unpack_from(data, index)[0] > len(data)
        if is_cut_off and len(data) == block_size < BLOCK_BYTES:
            block_size = BLOCK_BYTES  # more of the unit's fields can be judged
            continue
        if index >= 0:
            return position + index if position + index < end else -1
        if len(data) < block_size:
            return -1
        position += block_size - OVERLAP_BYTES
        block_size = BLOCK_BYTES
    return -1


def _entry_around(file: LogBytes, position: int, unit_position: int) -> int:
    """Return the position of the header in front of a unit, or of the unit if there is no header behind
    ``position``.
    """
    start = unit_position - dledger.HEADER_SIZE
    header = dledger.decode_header(file.read(start, dledger.HEADER_SIZE)) if start > position else None
    return start if header is not None and header.position == file.start_offset + start else unit_position


def stored_size(data: bytes) -> int:
    """Return the size that the first bytes of a block state: of a unit, or of an entry around it."""
    first_int, second_int = _PAIR.unpack_from(data) if len(data) >= BLANK_SIZE else (0, 0)
    if first_int == dledger.MAGIC:  # no unit is as small as this
        return second_int if second_int <= 0x7FFFFFFF else 0
    return int(first_int)


def _fits(data: bytes, index: int, read_size: int) -> bool:
    """Return True if more bytes may complete the unit at ``index``: the block cut it, not the file."""
    if index > 0 or len(data) - index < 4:
        return True
    return read_size < stored_size(data) <= MAX_UNIT_BYTES + dledger.HEADER_SIZE


def _unread_item(file: LogBytes, position: int, error: CannotRead, resync: bool) -> Damage | Stop:
    """Return an item for the remainder of a file that could not be read. The walk goes on behind it."""
    offset = file.start_offset + position
    if not resync:
        return Stop(offset, "unread", str(error))
    return Damage(offset, file.size - position, str(error), unread=True)


def _last_byte(file: LogBytes, position: int) -> int:
    """Return the position behind the last non-zero byte of ``file`` at or behind ``position``."""
    end = file.size
    while end > position:
        start = max(position, end - BLOCK_BYTES)
        data = file.read(start, end - start).rstrip(b"\0")
        if data:
            return start + len(data)
        end = start
    return position


def _damage_reason(stop: Stop) -> str:
    return sentence("zero bytes in front of the next unit") if stop.kind == "zero" else stop.reason
