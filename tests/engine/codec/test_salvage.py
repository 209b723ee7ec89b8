"""A unit with one wrong field is taken apart as far as it holds; nothing is made up where it does not."""

from __future__ import annotations

import struct

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from made_stores import unit_bytes
from raw_units import raw_unit

from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6, Frame, Unit, check_frame, decode, list_fields
from engine.codec.salvage import Entry, salvage, salvage_overwritten, shorten
from engine.codec.unit_flavours import MAGICS

BASE = 123_456
NAMES = st.text("abcXYZ019_-%", min_size=1, max_size=40)
FIELDS = ("totalSize", "magicCode", "bodyLength", "topicLength", "propertiesLength", "sysFlag")


@st.composite
def units(draw: st.DrawFn) -> bytes:
    keys = draw(st.lists(NAMES, max_size=3))
    text = f"KEYS\x01{' '.join(keys)}\x02TAGS\x01{draw(NAMES)}\x02" if keys else ""
    return raw_unit(
        BASE,
        topic=draw(NAMES).encode(),
        body=draw(st.binary(max_size=300)),
        properties=text.encode(),
        version=draw(st.sampled_from([1, 2])),
        queue_id=draw(st.integers(0, 64)),
        queue_offset=draw(st.integers(0, 1 << 40)),
        sys_flag=draw(st.sampled_from([0, BORN_HOST_V6, BORN_HOST_V6 | STORE_HOST_V6])),
    )


def spoiled(raw: bytes, field: str, number: int) -> bytes | None:
    """``raw`` with another value in ``field``; None where that is a whole unit, of either version."""
    part = next(one for one in list_fields(raw) if one.name == field)
    data = bytearray(raw)
    value = int.from_bytes(raw[part.position : part.position + part.length], "big") ^ number
    if field == "sysFlag":
        value = int.from_bytes(raw[36:40], "big") ^ (BORN_HOST_V6, STORE_HOST_V6, 48)[number % 3]
    data[part.position : part.position + part.length] = (value % (1 << 8 * part.length)).to_bytes(part.length, "big")
    magics = [data[4:8]] if field == "magicCode" else [struct.pack(">I", one) for one in MAGICS]
    whole = any(isinstance(check_frame(data[:4] + magic + data[8:], 0, len(data)), Frame) for magic in magics)
    return None if whole or bytes(data) == raw else bytes(data)


@settings(derandomize=True)  # by chance two fields explain the same bytes alike, once in some thousand units
@given(units(), st.sampled_from(FIELDS), st.integers(1, (1 << 31) - 1), st.binary(max_size=40))
def test_one_wrong_field_is_found_and_the_rest_holds(raw: bytes, field: str, number: int, behind: bytes) -> None:
    """The length is known from the next unit or from the queue entry."""
    data = spoiled(raw, field, number)
    if data is None:
        return
    told = salvage(data + behind, BASE, (len(raw),))
    assert told is not None
    true = decode(raw, base=BASE)
    assert (told.unit.topic, told.unit.queue_id, told.unit.queue_offset) == (
        true.topic,
        true.queue_id,
        true.queue_offset,
    )
    assert told.unit.size == true.size
    if true.body:  # without a body no CRC tells which of two lengths is wrong
        assert (told.unit.body, told.unit.properties) == (true.body, true.properties)
        (wrong,) = told.wrong
        assert wrong.field == field
        position = next(one.position for one in list_fields(raw) if one.name == field)
        assert wrong.likely == int.from_bytes(raw[position : position + _width(raw, field)], "big")


def _width(raw: bytes, field: str) -> int:
    return next(one.length for one in list_fields(raw) if one.name == field)


def test_one_version_that_became_the_other_is_told_from_a_wrong_length() -> None:
    for made in (1, 2):
        raw = raw_unit(BASE, version=made, topic=b"Orders", body=b"body")
        data = spoiled(raw, "magicCode", 12)
        assert data is not None
        told = salvage(data + bytes(200), BASE)
        assert told is not None
        assert (told.unit.topic, told.unit.body, [one.field for one in told.wrong]) == (
            "Orders",
            b"body",
            ["magicCode"],
        )


def test_of_two_hosts_the_long_one_is_told_by_the_times() -> None:
    """One long host or the other: the unit has the same length."""
    for flag in (BORN_HOST_V6, STORE_HOST_V6):
        raw = raw_unit(BASE, sys_flag=flag, topic=b"Orders", body=b"body")
        data = bytearray(raw)
        struct.pack_into(">i", data, 36, BORN_HOST_V6 | STORE_HOST_V6)
        told = salvage(bytes(data), BASE, (len(raw),))
        assert told is not None
        assert [one.likely for one in told.wrong] == [flag]


@settings(derandomize=True)
@given(units(), st.sampled_from(("totalSize", "magicCode")), st.integers(1, (1 << 31) - 1))
def test_a_wrong_length_or_magic_needs_no_witness(raw: bytes, field: str, number: int) -> None:
    data = spoiled(raw, field, number)
    if data is None:
        return
    told = salvage(data + bytes(200), BASE)
    assert told is not None
    assert told.unit.topic == decode(raw).topic


@given(st.binary(max_size=400))
def test_noise_is_no_unit(data: bytes) -> None:
    """Nothing bears it out: no place, no CRC."""
    assert salvage(data, BASE, (len(data),)) is None


@given(units(), st.data())
def test_it_never_raises_on_bad_bytes(raw: bytes, data: st.DataObject) -> None:
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    told = salvage(bytes(damaged), BASE, (len(raw),))
    assert told is None or isinstance(told.unit, Unit)


def test_what_is_wrong_says_what_it_would_be() -> None:
    raw = bytearray(raw_unit(BASE, body=b'{"a": 1}'))
    struct.pack_into(">iI", raw, 0, 77, 0x1234)
    told = salvage(bytes(raw), BASE)
    assert told is not None
    assert [(one.field, one.stored, one.likely) for one in told.wrong] == [
        ("totalSize", 77, len(raw)),
        ("magicCode", 0x1234, MAGICS[0]),
    ]
    assert told.unit.body == b'{"a": 1}'
    assert told.unit.keys == ["k1"]


@pytest.mark.parametrize("size", [0, 10, 90, 91, 200])
def test_zero_bytes_are_nothing(size: int) -> None:
    assert salvage(bytes(size), 0, (size,)) is None


@given(st.binary(max_size=600), st.integers(91, 600), st.integers(0, 7), st.integers(0, 1 << 40))
def test_an_entry_never_makes_overwritten_bytes_raise(data: bytes, size: int, queue: int, number: int) -> None:
    found = salvage_overwritten(data, 4096, Entry(size, "orders", queue, number))
    assert found is None or (found.unit.size, found.unit.topic, found.unit.queue_offset) == (size, "orders", number)


@pytest.mark.parametrize("length", [40_000, 70_000])
def test_properties_whose_16_bit_length_overflowed_leave_the_message_whole(length):
    """A batch of 4.x stored longer properties than 16 bits count, and the message was told as one of topic ccccc."""
    text = {"UNIQ_KEY": "U1", "note": "c" * (length - len("UNIQ_KEY\x01U1\x02note\x01\x02"))}
    properties = "".join(f"{name}\x01{value}\x02" for name, value in text.items()).encode()
    sound = unit_bytes("Orders", 1, 7, 0, 1_700_000_000_000, b"one cup of tea")
    raw = bytearray(sound[:-2] + (length & 0xFFFF).to_bytes(2, "big") + properties)
    raw[:4] = len(raw).to_bytes(4, "big")
    found = salvage(bytes(raw), 0)
    assert found is not None
    assert (found.unit.topic, found.unit.queue_offset, found.unit.body) == ("Orders", 7, b"one cup of tea")
    assert found.unit.properties["note"] == "c" * len(text["note"])
    (wrong,) = found.wrong
    assert (wrong.field, wrong.likely, wrong.is_overflow) == ("propertiesLength", length, True)
    shortened = shorten(bytes(raw), found)
    unit = decode(shortened.data, 0, 0)
    assert (shortened.left_out, unit.size, unit.crc) == (("note",), len(shortened.data), "ok")
    assert (unit.body, unit.properties) == (b"one cup of tea", {"UNIQ_KEY": "U1"})
