"""Salvage decodes as much of a damaged unit as the bytes confirm, and invents nothing."""

from __future__ import annotations

import struct

import hypothesis.strategies as st
import pytest
from handmade_stores import unit_bytes
from hypothesis import given, settings
from raw_units import raw_unit

from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6, Frame, Unit, check_frame, decode, list_fields
from engine.codec.salvage import Entry, FieldFault, salvage, salvage_overwritten, shorten
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
    """Return ``raw`` with another value in ``field``; None if the result is a valid unit of either version."""
    part = next(field_span for field_span in list_fields(raw) if field_span.name == field)
    data = bytearray(raw)
    value = int.from_bytes(raw[part.position : part.position + part.length], "big") ^ number
    if field == "sysFlag":
        value = int.from_bytes(raw[36:40], "big") ^ (BORN_HOST_V6, STORE_HOST_V6, 48)[number % 3]
    data[part.position : part.position + part.length] = (value % (1 << 8 * part.length)).to_bytes(part.length, "big")
    magics = [data[4:8]] if field == "magicCode" else [struct.pack(">I", magic_code) for magic_code in MAGICS]
    complete = any(isinstance(check_frame(data[:4] + magic + data[8:], 0, len(data)), Frame) for magic in magics)
    return None if complete or bytes(data) == raw else bytes(data)


@settings(derandomize=True)  # once in some thousand units, two fields explain the same bytes equally well
@given(units(), st.sampled_from(FIELDS), st.integers(1, (1 << 31) - 1), st.binary(max_size=40))
def test_one_wrong_field_is_identified_and_the_others_kept(
    raw: bytes, field: str, number: int, following_bytes: bytes
) -> None:
    """The length is known from the next unit or from the queue entry."""
    data = spoiled(raw, field, number)
    if data is None:
        return
    salvaged = salvage(data + following_bytes, BASE, (len(raw),))
    assert salvaged is not None
    original = decode(raw, base=BASE)
    assert (salvaged.unit.topic, salvaged.unit.queue_id, salvaged.unit.queue_offset) == (
        original.topic,
        original.queue_id,
        original.queue_offset,
    )
    assert salvaged.unit.size == original.size
    if original.body:  # without a body no CRC tells which of two lengths is wrong
        assert (salvaged.unit.body, salvaged.unit.properties) == (original.body, original.properties)
        (wrong,) = salvaged.wrong
        assert wrong.field == field
        position = next(item.position for item in list_fields(raw) if item.name == field)
        assert wrong.likely == int.from_bytes(raw[position : position + _width(raw, field)], "big")


def _width(raw: bytes, field: str) -> int:
    return next(item.length for item in list_fields(raw) if item.name == field)


def test_a_changed_version_is_distinguished_from_a_wrong_length() -> None:
    for sample in (1, 2):
        raw = raw_unit(BASE, version=sample, topic=b"Orders", body=b"body")
        data = spoiled(raw, "magicCode", 12)
        assert data is not None
        actual_salvage = salvage(data + bytes(200), BASE)
        assert actual_salvage is not None
        assert (actual_salvage.unit.topic, actual_salvage.unit.body, [item.field for item in actual_salvage.wrong]) == (
            "Orders",
            b"body",
            ["magicCode"],
        )


def test_the_times_decide_which_host_is_long() -> None:
    """The unit has the same length whichever of the two hosts is the long one. The timestamps decide."""
    for flag in (BORN_HOST_V6, STORE_HOST_V6):
        raw = raw_unit(BASE, sys_flag=flag, topic=b"Orders", body=b"body")
        data = bytearray(raw)
        struct.pack_into(">i", data, 36, BORN_HOST_V6 | STORE_HOST_V6)
        salvaged = salvage(bytes(data), BASE, (len(raw),))
        assert salvaged is not None
        assert [item.likely for item in salvaged.wrong] == [flag]


@settings(derandomize=True)
@given(units(), st.sampled_from(("totalSize", "magicCode")), st.integers(1, (1 << 31) - 1))
def test_a_wrong_length_or_magic_needs_no_witness(raw: bytes, field: str, number: int) -> None:
    data = spoiled(raw, field, number)
    if data is None:
        return
    actual_salvage = salvage(data + bytes(200), BASE)
    assert actual_salvage is not None
    assert actual_salvage.unit.topic == decode(raw).topic


@given(st.binary(max_size=400))
def test_noise_is_no_unit(data: bytes) -> None:
    """Neither the position nor a CRC confirms the bytes."""
    assert salvage(data, BASE, (len(data),)) is None


@given(units(), st.data())
def test_salvage_never_raises_on_bad_bytes(raw: bytes, data: st.DataObject) -> None:
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    actual_salvage = salvage(bytes(damaged), BASE, (len(raw),))
    assert actual_salvage is None or isinstance(actual_salvage.unit, Unit)


def test_a_wrong_field_has_its_likely_value() -> None:
    raw = bytearray(raw_unit(BASE, body=b'{"a": 1}'))
    struct.pack_into(">iI", raw, 0, 77, 0x1234)
    actual_salvage = salvage(bytes(raw), BASE)
    assert actual_salvage is not None
    assert [(item.field, item.stored, item.likely) for item in actual_salvage.wrong] == [
        ("totalSize", 77, len(raw)),
        ("magicCode", 0x1234, MAGICS[0]),
    ]
    assert actual_salvage.unit.body == b'{"a": 1}'
    assert actual_salvage.unit.keys == ["k1"]


@pytest.mark.parametrize("size", [0, 10, 90, 91, 200])
def test_zero_bytes_are_no_unit(size: int) -> None:
    assert salvage(bytes(size), 0, (size,)) is None


@given(st.binary(max_size=600), st.integers(91, 600), st.integers(0, 7), st.integers(0, 1 << 40))
def test_an_entry_never_makes_overwritten_bytes_raise(data: bytes, size: int, queue: int, number: int) -> None:
    actual_salvage_overwritten = salvage_overwritten(data, 4096, Entry(size, "orders", queue, number))
    assert actual_salvage_overwritten is None or (
        actual_salvage_overwritten.unit.size,
        actual_salvage_overwritten.unit.topic,
        actual_salvage_overwritten.unit.queue_offset,
    ) == (size, "orders", number)


@pytest.mark.parametrize("length", [40_000, 70_000])
def test_properties_with_an_overflowed_length_leave_the_message_complete(length):
    """A batch of 4.x stored properties longer than a 16-bit length, and the message was reported with the topic
    ccccc.
    """
    text = {"UNIQ_KEY": "U1", "note": "c" * (length - len("UNIQ_KEY\x01U1\x02note\x01\x02"))}
    properties = "".join(f"{name}\x01{value}\x02" for name, value in text.items()).encode()
    sound = unit_bytes("Orders", 1, 7, 0, 1_700_000_000_000, b"one cup of tea")
    raw = bytearray(sound[:-2] + (length & 0xFFFF).to_bytes(2, "big") + properties)
    raw[:4] = len(raw).to_bytes(4, "big")
    actual_salvage = salvage(bytes(raw), 0)
    assert actual_salvage is not None
    assert (actual_salvage.unit.topic, actual_salvage.unit.queue_offset, actual_salvage.unit.body) == (
        "Orders",
        7,
        b"one cup of tea",
    )
    assert actual_salvage.unit.properties["note"] == "c" * len(text["note"])
    (wrong,) = actual_salvage.wrong
    assert (wrong.field, wrong.likely, wrong.is_overflow) == ("propertiesLength", length, True)
    shortened = shorten(bytes(raw), actual_salvage)
    unit = decode(shortened.data, 0, 0)
    assert (shortened.left_out, unit.size, unit.crc) == (("note",), len(shortened.data), "ok")
    assert (unit.body, unit.properties) == (b"one cup of tea", {"UNIQ_KEY": "U1"})


COMPLETE_UNIT = raw_unit(BASE, topic=b"Orders", body=b"one cup of tea", queue_id=3, queue_offset=5)
ENTRY = Entry(len(COMPLETE_UNIT), "Orders", 3, 5)


@pytest.mark.parametrize(
    ("start", "data", "wrong"),
    [
        pytest.param(0, b"", [], id="nothing"),
        pytest.param(
            0,
            bytes(40),
            ["totalSize", "magicCode", "queueId", "queueOffset", "physicalOffset", "bodyCRC"],
            id="the head",
        ),
        pytest.param(0, b"\xee" * 8, ["totalSize", "magicCode"], id="length and magic"),
        pytest.param(84, b"\0\0\0\7", ["bodyLength"], id="the body's length"),
        pytest.param(90, b"coffee", ["bodyCRC"], id="the body"),
        pytest.param(103, b"\x04Olds", ["topicLength"], id="the topic"),
        pytest.param(103, bytes(30), ["topicLength", "propertiesLength"], id="the end"),
    ],
)
def test_overwritten_fields_are_taken_from_the_queue_entry(start: int, data: bytes, wrong: list[str]) -> None:
    raw = COMPLETE_UNIT[:start] + data + COMPLETE_UNIT[start + len(data) :]
    actual_salvage_overwritten = salvage_overwritten(raw[: len(COMPLETE_UNIT)], BASE, ENTRY)
    assert actual_salvage_overwritten is not None
    assert [fault.field for fault in actual_salvage_overwritten.wrong] == wrong
    unit = actual_salvage_overwritten.unit
    assert (unit.topic, unit.queue_id, unit.queue_offset, unit.size) == ("Orders", 3, 5, len(COMPLETE_UNIT))
    assert len(unit.body) == len(b"one cup of tea")
    assert (unit.crc == "bad") == ("bodyCRC" in wrong)


@pytest.mark.parametrize(
    ("raw", "entry"),
    [
        pytest.param(COMPLETE_UNIT[:-1], ENTRY, id="cut off"),
        pytest.param(COMPLETE_UNIT, Entry(50, "Orders", 3, 5), id="an entry that is too short for a unit"),
        pytest.param(b"\xee" * len(COMPLETE_UNIT), ENTRY, id="nothing of it is there"),
        pytest.param(COMPLETE_UNIT[:8] + bytes(len(COMPLETE_UNIT) - 8), ENTRY, id="the place is gone, and the end"),
        pytest.param(
            COMPLETE_UNIT[:50] + bytes(len(COMPLETE_UNIT) - 50), ENTRY, id="the body's length is gone, and the end"
        ),
        pytest.param(
            COMPLETE_UNIT[:84] + b"\0\1\0\0" + bytes(len(COMPLETE_UNIT) - 88), ENTRY, id="a body longer than the unit"
        ),
        pytest.param(COMPLETE_UNIT, Entry(len(COMPLETE_UNIT), "T" * 100, 3, 5), id="a topic that does not fit"),
    ],
)
def test_without_head_or_end_nothing_is_invented(raw: bytes, entry: Entry) -> None:
    assert salvage_overwritten(raw, BASE, entry) is None


def test_a_topic_in_the_body_is_not_taken_for_the_units() -> None:
    """The length and bytes of the name may also occur in the body. Only the last occurrence can end the unit."""
    raw = raw_unit(BASE, topic=b"Orders", body=b"see \x06Orders\0\0 for more", properties=b"K\x01\x06Orders\x02")
    actual_salvage_overwritten = salvage_overwritten(bytes(40) + raw[40:], BASE, Entry(len(raw), "Orders", 3, 5))
    assert actual_salvage_overwritten is not None
    assert actual_salvage_overwritten.unit.body == b"see \x06Orders\0\0 for more"


def test_a_fault_shows_the_values_of_its_field() -> None:
    assert FieldFault("totalSize", 77, 1572).words == "totalSize says 77, it would be 1,572"
    assert (
        FieldFault("magicCode", 0x1234, MAGICS[0]).words == f"magicCode says 0x00001234, it would be 0x{MAGICS[0]:08X}"
    )
    assert FieldFault("bodyCRC", -1, None).words == "bodyCRC says 0xFFFFFFFF"


def test_a_unit_at_another_offset_needs_a_matching_body_crc() -> None:
    """The offset field may be wrong. Then the body's CRC must confirm the unit."""
    raw = bytearray(raw_unit(BASE + 8, topic=b"Orders", body=b"tea"))
    raw[0] ^= 1
    actual_salvage = salvage(bytes(raw), BASE)
    assert actual_salvage is not None
    assert {fault.field for fault in actual_salvage.wrong} == {"totalSize", "physicalOffset"}
    raw[88] ^= 1
    assert salvage(bytes(raw), BASE) is None


def test_as_few_long_properties_as_possible_are_left_out() -> None:
    text = "".join(
        f"{name}\x01{name * size}\x02" for name, size in (("a", 20_000), ("b", 30_000), ("c", 30_000), ("d", 9))
    )
    sound = unit_bytes("Orders", 1, 7, 0, 1_700_000_000_000, b"tea")
    raw = bytearray(sound[:-2] + (len(text) & 0xFFFF).to_bytes(2, "big") + text.encode())
    raw[:4] = len(raw).to_bytes(4, "big")
    overflowed = salvage(bytes(raw), 0)
    assert overflowed is not None
    shortened = shorten(bytes(raw), overflowed)
    assert shortened.left_out == ("b", "c")
    assert list(decode(shortened.data, 0, 0).properties) == ["a", "d"]
