"""Units that hold the place of lost messages: their length, what they say, and that a client's decoder gets nothing."""

from __future__ import annotations

import zlib

import pytest

from engine.codec import filler, properties
from engine.codec.message import PREPARED, decode
from engine.codec.unit_scan import Blank, decode_item

PLACE = {
    "physical_offset": 4711,
    "topic": "Orders",
    "queue_id": 3,
    "queue_offset": 17,
    "store_timestamp": 1_700_000_000_000,
}


@pytest.mark.parametrize("size", [105, 120, 129, 200, 5000, 100_000])
@pytest.mark.parametrize("property_crc", [False, True])
def test_a_placeholder_has_exactly_the_length_and_the_place_of_the_lost_message(size, property_crc):
    raw = filler.placeholder(size, **PLACE, property_crc=property_crc)
    if raw is None:
        assert size < 91 + 6 + 8 + 20
        assert property_crc
        return
    unit = decode(raw, base=4711)
    assert (len(raw), unit.size, unit.crc, unit.stale) == (size, size, "ok", False)
    assert (unit.topic, unit.queue_id, unit.queue_offset, unit.tags_code) == ("Orders", 3, 17, 0)
    assert unit.store_timestamp == PLACE["store_timestamp"]
    assert zlib.decompressobj().decompress(unit.body) == b""  # an inner batch without members
    assert (filler.LOST in unit.properties) == (size > 125 + 20 * property_crc)
    if property_crc:
        assert properties.verify_crc(raw)


def test_too_few_bytes_hold_no_placeholder():
    assert filler.placeholder(104, **PLACE) is None
    assert filler.filler(99, physical_offset=0, store_timestamp=1) is None


@pytest.mark.parametrize("size", [100, 116, 150, 5000])
def test_a_filler_is_in_no_queue(size):
    raw = filler.filler(size, physical_offset=4711, store_timestamp=1)
    assert raw is not None
    unit = decode(raw, base=4711)
    assert (unit.size, unit.crc, unit.stale, unit.transaction_type) == (size, "ok", False, PREPARED)
    assert unit.topic in (filler.FILLER_TOPIC, "s")


def test_a_service_passes_over_a_placeholder_by_its_properties():
    unit = decode(filler.placeholder(300, **PLACE, properties={"REAL_TOPIC": "x"}) or b"", base=4711)
    assert unit.properties["REAL_TOPIC"] == "x"


def test_a_blank_reaches_over_the_given_bytes():
    raw = filler.blank(50)
    assert len(raw) == 50
    assert decode_item(raw, 0, 50, 100) == Blank(100, 50)


def test_stand_ins_are_told_from_messages():
    placeholder = decode(filler.placeholder(300, **PLACE) or b"", base=4711)
    assert filler.is_stand_in(placeholder.sys_flag, placeholder.body, placeholder.properties_raw)
    assert not filler.is_stand_in(0, placeholder.body, placeholder.properties_raw)
    assert not filler.is_stand_in(placeholder.sys_flag, b"hello", placeholder.properties_raw)
    assert not filler.is_stand_in(placeholder.sys_flag, placeholder.body, b"KEYS\x01a\x02")
