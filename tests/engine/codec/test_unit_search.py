"""Units at any place: magic numbers in bytes, heads and tails of units, and whether an end belongs to its unit."""

from __future__ import annotations

import numpy as np
import pytest
from raw_units import raw_blank, raw_unit, with_property_crc

from engine.codec import dledger
from engine.codec.unit_search import find_magics, has_frame, judge_end, read_head, read_tail

PAGE = 4096
NEXT_TO_A_PAGE = PAGE - 100
"""The body of a unit that begins here ends in this page, its properties in the next one."""


def magics(data: bytes) -> list[int]:
    return find_magics(np.frombuffer(data, np.uint8), 0, len(data)).tolist()


def test_both_magics_are_found_and_no_other_bytes():
    data = b"\xda\xa3 tea" + b"\xda\xa3\x20\xa7" + b"\xda\xa3\x20\xa8" + b"\xda\xda\xa3\x20\xab" + bytes(3)
    assert magics(data) == [6, 15]
    assert magics(b"\xda\xa3\x20\xa7") == [0]
    assert magics(b"") == magics(b"\xda\xa3\x20") == []


@pytest.mark.parametrize("fields", [{}, {"sys_flag": 16}, {"sys_flag": 48}, {"version": 2, "topic": b"T" * 200}])
def test_a_head_has_the_fields_of_its_unit(fields):
    unit = raw_unit(12_345, queue_id=2, queue_offset=7, **fields)
    head = read_head(b"x" * 10 + unit[:80], 10)
    assert head is not None
    assert (head.size, head.physical_offset, head.queue_id, head.queue_offset) == (len(unit), 12_345, 2, 7)
    assert head.store_timestamp == 1_700_000_000_123


@pytest.mark.parametrize(("position", "new"), [(4, b"\xda\xa3\x20\xa8"), (0, bytes(4)), (12, b"\xff"), (56, b"\x7f")])
def test_a_magic_with_other_fields_than_a_broker_writes_is_no_head(position, new):
    unit = raw_unit(0)
    assert read_head(unit[:position] + new + unit[position + len(new) :], 0) is None
    assert read_head(unit[:70], 0) is None


def test_the_end_of_a_unit_gives_its_topic_and_properties():
    unit = raw_unit(0, topic=b"Orders", properties=b"KEYS\x01a b\x02UNIQ_KEY\x017F\x02")
    tail = read_tail(b"\0" * 50 + unit[92:])
    assert tail is not None
    assert (tail.topic, tail.properties) == ("Orders", {"KEYS": "a b", "UNIQ_KEY": "7F"})
    assert read_tail(b"tea" * 2000) is None
    assert read_tail(b"") is None


@pytest.mark.parametrize(
    ("offset", "following", "verdict"),
    [
        (0, b"", "proven"),
        (0, raw_unit(len(raw_unit(0)))[:40], "proven"),
        (0, raw_blank(100), "proven"),
        (0, dledger.MAGIC.to_bytes(4, "big") + b"the header of the next entry in a DLedger log", "proven"),
        (0, bytes(40), "proven"),
        (0, raw_unit(99)[:40], "contradicted"),
        (0, b"other text, other text", "open"),
        (NEXT_TO_A_PAGE, b"", "open"),
        (NEXT_TO_A_PAGE, raw_unit(NEXT_TO_A_PAGE + len(raw_unit(0)))[:40], "proven"),
    ],
)
def test_an_end_is_proven_by_what_follows(offset, following, verdict):
    assert judge_end(raw_unit(offset), offset, following) == verdict


def test_an_end_with_bytes_of_another_file_is_wrong():
    unit = raw_unit(0)
    assert judge_end(unit[:-2] + b"F\xcd", 0, b"") == "wrong"
    assert judge_end(unit[:-6] + bytes(6), 0, b"") == "wrong"


def test_a_property_crc_proves_the_end():
    unit = with_property_crc(raw_unit(NEXT_TO_A_PAGE))
    assert judge_end(unit, NEXT_TO_A_PAGE, b"other text, other text") == "proven"


def test_a_frame_is_judged_without_its_bytes() -> None:
    for version in (1, 2):
        unit = raw_unit(version=version, topic=b"T" * 100, body=b"x" * 999, sys_flag=48)
        assert has_frame(lambda start, count, unit=unit: unit[start : start + count], len(unit))
        assert not has_frame(lambda start, count, unit=unit: unit[start : start + count], len(unit) + 1)
        assert not has_frame(lambda start, count, unit=unit: unit[:500][start : start + count], len(unit))
    assert not has_frame(lambda _start, _count: b"", 200)


def test_the_end_of_a_unit_that_was_moved_by_a_few_bytes():
    """Bytes at the edge of what was moved stood in the properties twice, and the unit was taken for a whole one."""
    unit = raw_unit(8192, properties=b"UNIQ_KEY\x010123456789ABCDEF0123\x02KEYS\x01k205\x02")
    assert judge_end(unit, 8192, b"", moved_by=8) == judge_end(unit, 8192, b"", moved_by=-6) == "open"
    assert judge_end(unit, 8192, raw_unit(99)[:40], moved_by=-6) == "proven"
    edge = len(unit) - 20
    twice = unit[:edge] + unit[edge - 6 : -6]
    assert judge_end(twice, 8192, b"", moved_by=-6) == "wrong"
    assert judge_end(twice[:-1] + b"\x02", 8192, b"", moved_by=-6) == "wrong"
    assert judge_end(unit, 8192, b"", moved_by=PAGE - 8192 - len(unit) + 10) == "wrong"  # in two pages
