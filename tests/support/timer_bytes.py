"""The timer wheel's slots, its log's units and ``timercheck`` as a broker writes them (spec 12.1)."""

from __future__ import annotations

import struct
from dataclasses import astuple

from engine.codec.timer import TIMER_CHECK_SIZE, UNIT_SIZE, TimerCheck, TimerLogUnit, WheelSlot


def encode_slot(slot: WheelSlot) -> bytes:
    """The 32 bytes of ``slot``."""
    return struct.pack(">qqqii", slot.time, slot.first, slot.last, slot.count, slot.magic)


def encode_unit(unit: TimerLogUnit) -> bytes:
    """The 52 bytes of ``unit``."""
    _, *fields = astuple(unit)
    return struct.pack(">iqiqiqiiq", UNIT_SIZE, *fields, 0)


def encode_check(check: TimerCheck) -> bytes:
    """The 4096 bytes of ``timercheck``."""
    return struct.pack(">7q", *astuple(check)).ljust(TIMER_CHECK_SIZE, b"\0")


def slot_time(unit: TimerLogUnit) -> int:
    """When the wheel reaches ``unit``, in ms: delivery, or the next roll of a far message."""
    return unit.write_time + unit.delay
