"""A broker's own check of a unit, case by case (docs/formats/commit-log.md#unit-check)."""

from __future__ import annotations

import struct

import pytest
from handmade_stores import START, unit_bytes

from engine.rules.unit_check import BLANK, NeedsMoreBytes, Refusal, Request, Rules, check

UNIT = unit_bytes("Orders", 3, 7, 4096, START, b"hello", {"TAGS": "TagA", "KEYS": "k1"})


def changed(position, layout, value):
    data = bytearray(UNIT)
    struct.pack_into(layout, data, position, value)
    return bytes(data)


def test_a_good_unit_becomes_a_request():
    answer = check(UNIT, 0, len(UNIT))
    assert isinstance(answer, Request)
    assert (answer.topic, answer.queue_id, answer.queue_offset, answer.physical_offset) == ("Orders", 3, 7, 4096)
    assert (answer.tags_code, answer.batch_size, answer.base_offset) == (2598919, 1, 7)


CASES = [
    pytest.param(changed(8, ">i", 5), -1, id="wrong CRC"),
    pytest.param(changed(8, ">I", struct.unpack_from(">I", UNIT, 8)[0] | 1 << 31), -1, id="top bit of the CRC"),
    pytest.param(changed(4, ">I", 0x12345678), -1, id="magic code"),
    pytest.param(bytes(len(UNIT)), -1, id="zero bytes"),
    pytest.param(changed(0, ">i", len(UNIT) - 1), len(UNIT) - 1, id="length field one short"),
    pytest.param(changed(84, ">i", 1 << 30), -1, id="huge body"),
    pytest.param(changed(93, ">b", -3), -1, id="negative topic length"),
    pytest.param(UNIT[:30], -1, id="cut off by the file"),
]


@pytest.mark.parametrize(("data", "size"), CASES)
def test_refuses(data, size):
    answer = check(data, 0, len(data))
    assert isinstance(answer, Refusal)
    assert answer.size == size


def test_an_unread_body_has_no_crc():
    assert isinstance(check(changed(8, ">i", 5), 0, len(UNIT), body=False), Request)


def test_a_blank_ends_the_file():
    assert check(struct.pack(">iI", 100, 0xCBD43194), 0, 100) == BLANK


def test_a_blank_that_reaches_beyond_the_file_is_none_since_5():
    blank = struct.pack(">iI", 101, 0xCBD43194)
    assert isinstance(check(blank, 0, 100), Refusal)
    assert check(blank, 0, 100, Rules("4.9")) == BLANK


def test_requests_bytes_that_the_buffer_cut_off():
    assert check(UNIT[:60], 0, len(UNIT)) == NeedsMoreBytes(len(UNIT))


def test_a_property_crc_replaces_the_bodys_where_forced():
    assert isinstance(check(UNIT, 0, len(UNIT), Rules(property_crc=True)), Refusal)
