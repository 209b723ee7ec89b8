"""Timing wheel, timer log and timercheck."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.dtypes import TIMER_LOG_UNIT, TIMER_SLOT
from engine.codec.java import jhash
from engine.codec.message import Unit
from engine.codec.message import decode as decode_message
from engine.codec.timer import (
    UNIT_PARTS,
    WHEEL_SIZE,
    TimerCheck,
    TimerLogStop,
    TimerLogUnit,
    WheelSlot,
    decode_check,
    decode_slot,
    decode_unit,
    slot_index,
    used_slots,
    walk,
)
from engine.errors import CorruptUnit

SLOTS = [
    pytest.param(WheelSlot(0, 0, 0, 0), "00" * 32, id="never used"),
    pytest.param(
        WheelSlot(1795248759, 0, 416, 7),
        "000000006b015277000000000000000000000000000001a00000000700000000",
        id="seven messages",
    ),
    pytest.param(WheelSlot(-1, -1, -1, -1, -1), "ff" * 32, id="below zero"),
]
UNITS = [
    pytest.param(
        TimerLogUnit(0, -1, 1, 1795248757000, 2000, 700, 692, 2598919),
        "00000034ffffffffffffffff00000001000001a1fd2a1908000007d000000000000002bc000002b40027a8070000000000000000",
        id="first of its slot",
    ),
    pytest.param(
        TimerLogUnit(0, 104, 7, 1, -1, 2, 3, -4),
        "000000340000000000000068000000070000000000000001ffffffff000000000000000200000003fffffffc0000000000000000",
        id="rolled delete",
    ),
]


@pytest.mark.parametrize(("slot", "wire"), SLOTS)
def test_slots_both_ways_and_in_bulk(slot, wire):
    raw = bytes.fromhex(wire)
    assert slot.encoded() == raw
    assert decode_slot(raw) == slot
    assert WheelSlot(*(int(value) for value in np.frombuffer(raw, TIMER_SLOT)[0])) == slot


@pytest.mark.parametrize(("unit", "wire"), UNITS)
def test_units_both_ways_and_in_bulk(unit, wire):
    raw = bytes.fromhex(wire)
    assert unit.encoded() == raw
    assert decode_unit(raw, 0, 0) == unit
    row = np.frombuffer(raw, TIMER_LOG_UNIT)[0]
    assert TimerLogUnit(0, *(int(value) for value in list(row)[1:8])) == unit


_I32, _I64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (32, 64))
_UNITS = st.builds(TimerLogUnit, st.just(0), _I64, st.sampled_from([1, 3, 5, 7]), _I64, _I32, _I64, _I32, _I32)


@given(st.lists(_UNITS, max_size=5), st.integers(0, 1 << 40))
def test_a_log_round_trips(written, base):
    raw = b"".join(unit.encoded() for unit in written)
    blank = bytes.fromhex("000000200000000000000000cbd43194") + bytes(16)
    *rows, stop = walk(raw + blank, base)
    assert [unit.encoded() for unit in rows] == [unit.encoded() for unit in written]
    assert (stop.offset, stop.kind, stop.size) == (base + len(raw), "blank", 32)


STOPS = [
    (b"\0" * 15, "end", "end of the bytes"),
    (b"\0" * 60, "zero", "zero bytes: nothing was written here"),
    (b"\0\0\0\x35" + b"\0" * 60, "damage", "a unit's length is 53, expected 52"),
    (b"\0\0\0\x34" + b"\0" * 60, "damage", "magic 0x0, expected 1, also with 2 (roll) or 4 (delete)"),
    (b"\0\0\0\x34" + b"\0" * 8 + b"\xff\xff\xff\xff", "damage", "magic 0xffffffff, expected 1, also with 2"),
    (b"\0\0\0\x34" + b"\0" * 8 + b"\0\0\0\1" + b"\0" * 8, "end", "cut off: 24 bytes left of a unit of 52"),
]


@pytest.mark.parametrize(("raw", "kind", "reason"), STOPS)
def test_stops_have_a_reason(raw, kind, reason):
    (stop,) = walk(raw, 9)
    assert (stop.offset, stop.kind) == (9, kind)
    assert stop.reason.startswith(reason)


@given(st.binary(max_size=300))
def test_any_bytes_give_units_and_one_stop(raw):
    *rows, stop = walk(raw, 0)
    assert isinstance(stop, TimerLogStop)
    assert stop.offset == len(rows) * 52
    assert all(number >= 3 and slot.used for number, slot in used_slots(raw, 3))


@given(st.builds(TimerCheck, *[_I64] * 7))
def test_timercheck_round_trips(check):
    raw = check.encoded()
    assert len(raw) == 4096
    assert decode_check(raw) == check


def test_a_torn_timercheck_is_refused():
    with pytest.raises(CorruptUnit, match="expected 4,096 bytes, found 55"):
        decode_check(bytes(55))


def test_slots_are_used_in_turn():
    assert slot_index(1795248759000) == 1795248759 % 1209600
    assert slot_index(1209600 * 500 + 499, 500) == 0


def test_parts_cover_a_unit():
    position = 0
    for part in UNIT_PARTS:
        assert part.position == position
        position += part.length
    assert position == 52


def test_the_text_names_roll_and_delete():
    assert TimerLogUnit(0, -1, 7, 10, 5, 0, 0, 0).words == ["roll", "delete"]
    assert TimerLogUnit(0, -1, 1, 10, 5, 0, 0, 0).words == []


@pytest.mark.golden
def test_the_wheel_of_a_real_broker(golden):
    store = golden("broker-retries")
    check = decode_check((store / "config" / "timercheck").read_bytes())
    assert (check.last_read_time, check.flush_position, check.queue_offset) == (1795248804000, 4576, 88)
    *units, stop = walk((store / "timerlog" / f"{0:020d}").read_bytes(), 0)
    assert (len(units), stop.kind, stop.offset) == (88, "zero", check.flush_position)
    log = (store / "commitlog" / f"{0:020d}").read_bytes()
    for unit in units:
        message = decode_message(log, unit.physical_offset)
        assert isinstance(message, Unit)
        assert (message.size, message.topic) == (unit.message_size, "rmq_sys_wheel_timer")
        assert jhash(message.properties["REAL_TOPIC"]) == unit.topic_hash
    wheel = (store / "timerwheel").read_bytes()
    assert len(wheel) == WHEEL_SIZE
    bulk = np.frombuffer(wheel, TIMER_SLOT)
    numbers = np.flatnonzero((bulk["time"] != 0) | (bulk["last"] != 0) | (bulk["count"] != 0))
    chained = 0
    for number in numbers:
        slot = decode_slot(wheel, int(number) * 32)
        assert slot_index(slot.time * 1000) == number
        position, chain = slot.last_offset, []
        while position >= 0 and len(chain) <= len(units):
            chain.append(units[position // 52])
            position = chain[-1].previous
        assert chain[-1].offset == slot.first_offset
        assert all(unit.due == slot.time * 1000 for unit in chain)
        assert slot.count == len(chain) - 2 * sum("delete" in unit.words for unit in chain)
        chained += len(chain)
    assert chained == len(units)
    assert {unit.magic for unit in units} == {1, 3, 5, 7}
    assert [number for number, _ in used_slots(wheel[: 4096 * 32])] == [n for n in numbers if n < 4096]
