"""The timing wheel and its log: messages for any delivery time (docs/formats/delays.md).

``timerwheel``: 1,209,600 slots of 32 bytes, one per ``timerPrecisionMs``, used in turn. ``timerlog/``: units of
52 bytes, newest first along a slot's chain. ``config/timercheck``: the broker's progress. Pure; whole wheels are
read through ``dtypes.TIMER_SLOT``, this module is for one slot or unit at a time.

"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Literal, NamedTuple

from engine.errors import CorruptUnit
from engine.sentences import plural, sentence

WHEEL_SLOTS = 7 * 86_400 * 2
CATCH_UP_SLOTS = 7 * 86_400 - 60
"""A start delivers what was due at most this many slots before it (docs/formats/delays.md)."""
SLOT_SIZE = 32
WHEEL_SIZE = WHEEL_SLOTS * SLOT_SIZE
UNIT_SIZE = 52
BLANK_BYTES = 16
"""Bytes of a blank. A unit goes to the next file if fewer than 52 + 16 bytes remain."""
NO_OFFSET = -1
TIMER_CHECK_SIZE = 4096

MAGIC_DEFAULT, MAGIC_ROLL, MAGIC_DELETE = 1, 2, 4
_VALID_MAGIC = 0xF
_MAGIC_BLANK = 0xCBD43194 - (1 << 32)

_SLOT = struct.Struct(">qqqii")
_UNIT = struct.Struct(">iqiqiqiiq")
_BLANK = struct.Struct(">iqi")
_CHECK = struct.Struct(">7q")
_I32 = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class WheelSlot:
    """A slot. It keeps its content after delivery, so compare ``time`` with the expected time."""

    time: int  # ms divided by the precision
    first_offset: int  # timer-log offsets of the chain's ends
    last_offset: int
    count: int  # messages minus deletes: smaller than the chain by two for each delete
    magic: int = 0

    @property
    def used(self) -> bool:
        """True if the slot has held something."""
        return self.time != 0 or self.last_offset != 0 or self.count != 0

    def encoded(self) -> bytes:
        """Return the slot's 32 bytes."""
        return _SLOT.pack(self.time, self.first_offset, self.last_offset, self.count, self.magic)


@dataclass(frozen=True, slots=True)
class TimerLogUnit:
    """A waiting message, at ``offset`` of the timer log. Times in ms."""

    offset: int
    previous: int  # offset of the slot's unit before this one; -1: none
    magic: int
    write_time: int
    delay: int  # delivery (or next roll) time minus write time
    physical_offset: int  # of the message in the commit log, in the timer topic
    message_size: int
    topic_hash: int  # Java's string hash of the real topic

    @property
    def words(self) -> list[str]:
        """``roll`` and ``delete``, if the magic says so."""
        named = ((MAGIC_ROLL, "roll"), (MAGIC_DELETE, "delete"))
        return [word for bit, word in named if self.magic & bit]

    @property
    def due(self) -> int:
        """The time at which the unit leaves the wheel, ms."""
        return self.write_time + self.delay

    def encoded(self) -> bytes:
        """Return the unit's 52 bytes."""
        return _UNIT.pack(
            UNIT_SIZE,
            self.previous,
            self.magic,
            self.write_time,
            self.delay,
            self.physical_offset,
            self.message_size,
            self.topic_hash,
            0,
        )


@dataclass(frozen=True, slots=True)
class TimerLogStop:
    """The end of a walk: at a blank (``size`` bytes to the end of the file), at zeros, at the last byte, at damage."""

    offset: int
    kind: Literal["blank", "zero", "end", "damage"]
    reason: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class TimerCheck:
    """``config/timercheck``: times in ms, ``flush_position`` in timer-log bytes, queue offsets of the timer topic."""

    last_read_time: int
    flush_position: int
    queue_offset: int
    master_queue_offset: int
    state_version: int
    version_timestamp: int
    version_counter: int

    def encoded(self) -> bytes:
        """Return the file's 4,096 bytes."""
        return self.numbers().ljust(TIMER_CHECK_SIZE, b"\0")

    def numbers(self) -> bytes:
        """Return only the numbers, as a master sends them."""
        return _CHECK.pack(*astuple(self))


class Part(NamedTuple):
    """A field of a unit: its name, position in the unit, length in bytes."""

    name: str
    position: int
    length: int


UNIT_PARTS = (
    Part("size", 0, 4),
    Part("prevPos", 4, 8),
    Part("magic", 12, 4),
    Part("writeTime", 16, 8),
    Part("delayTime", 24, 4),
    Part("offsetPy", 28, 8),
    Part("sizePy", 36, 4),
    Part("hashCodeOfRealTopic", 40, 4),
    Part("reserved", 44, 8),
)


def slot_index(time_ms: int, precision_ms: int = 1000) -> int:
    """Return the number of the slot for a delivery time."""
    return time_ms // precision_ms % WHEEL_SLOTS


def blank(size: int) -> bytes:
    """Return the unit that marks a file's last ``size`` bytes as empty."""
    return _BLANK.pack(size, 0, _MAGIC_BLANK)


def decode_slot(buf: bytes | bytearray | memoryview, position: int = 0) -> WheelSlot:
    """Return the slot at ``buf[position]``; raises ``struct.error`` if fewer than 32 bytes remain."""
    return WheelSlot(*_SLOT.unpack_from(buf, position))


def used_slots(buf: bytes | bytearray | memoryview, start_number: int = 0) -> Iterator[tuple[int, WheelSlot]]:
    """Yield (number, slot) of each slot of ``buf`` that has held something; the first slot has the number
    ``start_number``.
    """
    complete_bytes = len(buf) // SLOT_SIZE * SLOT_SIZE
    for number, values in enumerate(_SLOT.iter_unpack(buf[:complete_bytes]), start_number):
        slot = WheelSlot(*values)
        if slot.used:
            yield number, slot


def decode_unit(buf: bytes | bytearray | memoryview, position: int, base: int) -> TimerLogUnit | TimerLogStop:
    """Return the unit or stop at ``buf[position]``; ``base`` is the timer log's offset of ``buf[0]``. Never raises
    for ``position`` ≥ 0.
    """
    room = len(buf) - position
    if room < _BLANK.size:
        return TimerLogStop(base + position, "end", sentence("end of the bytes"))
    size, previous, magic = _BLANK.unpack_from(buf, position)
    if magic == _MAGIC_BLANK:
        return TimerLogStop(base + position, "blank", sentence("blank unit: the next unit is in the next file"), size)
    if size == 0 and magic == 0 and previous == 0:
        return TimerLogStop(base + position, "zero", sentence("zero bytes: nothing was written here"))
    if size != UNIT_SIZE:
        return TimerLogStop(
            base + position,
            "damage",
            sentence("a unit's length is {found:,}, expected {expected:,}", found=size, expected=UNIT_SIZE),
        )
    if not magic & MAGIC_DEFAULT or magic & ~_VALID_MAGIC:
        return TimerLogStop(
            base + position,
            "damage",
            sentence("magic {found:#x}, expected 1, also with 2 (roll) or 4 (delete)", found=magic & 0xFFFFFFFF),
        )
    if room < UNIT_SIZE:
        return TimerLogStop(
            base + position,
            "end",
            plural(
                "cut off: {n} byte left of a unit of {size}",
                "cut off: {n} bytes left of a unit of {size}",
                n=room,
                size=UNIT_SIZE,
            ),
        )
    _, _, _, write_time, delay, physical_offset, message_size, topic_hash, _ = _UNIT.unpack_from(buf, position)
    return TimerLogUnit(base + position, previous, magic, write_time, delay, physical_offset, message_size, topic_hash)


def walk(buf: bytes | bytearray | memoryview, base: int, start: int = 0) -> Iterator[TimerLogUnit | TimerLogStop]:
    """Yield every unit of one file's bytes from position ``start`` on, then one stop with the reason for the end."""
    position = start
    while True:
        item = decode_unit(buf, position, base)
        yield item
        if isinstance(item, TimerLogStop):
            return
        position += UNIT_SIZE


def decode_check(buf: bytes | bytearray | memoryview) -> TimerCheck:
    """Return the fields of ``timercheck``; raises :class:`CorruptUnit` if there are fewer than 56 bytes."""
    if len(buf) < _CHECK.size:
        raise CorruptUnit(
            sentence("expected {expected:,} bytes, found {found:,}", expected=TIMER_CHECK_SIZE, found=len(buf)),
            offset=0,
        )
    return TimerCheck(*_CHECK.unpack_from(buf))
