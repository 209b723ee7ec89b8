"""Consume queue units: one list of cases for both directions and for the bulk type."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import consume_queue as cq
from engine.codec.consume_queue import CqUnit, decode, encode
from engine.codec.dtypes import CQ_UNIT

CASES = [
    pytest.param(CqUnit(1234, 123, 2598919), "00000000000004d20000007b000000000027a807", "entry", id="TagA"),
    pytest.param(CqUnit(0, 0x7FFFFFFF, 0), "00000000000000007fffffff0000000000000000", "prefilled", id="pre-filled"),
    pytest.param(CqUnit(0, 1, -1), "000000000000000000000001ffffffffffffffff", "entry", id="hash below zero"),
    pytest.param(CqUnit(0, 0, 0), "00" * 20, "empty", id="end of data"),
    pytest.param(CqUnit(5, 0, 7), "0000000000000005000000000000000000000007", "empty", id="no size"),
    pytest.param(CqUnit(5, -1, 0), "0000000000000005ffffffff0000000000000000", "empty", id="size below zero"),
    pytest.param(CqUnit(-1, 91, 0), "ffffffffffffffff0000005b0000000000000000", "empty", id="offset below zero"),
    pytest.param(CqUnit((1 << 63) - 1, 91, -(1 << 63)), "7fffffffffffffff0000005b8000000000000000", "entry", id="most"),
]


@pytest.mark.parametrize(("unit", "wire", "state"), CASES)
def test_writes(unit, wire, state):
    assert encode(unit).hex() == wire


@pytest.mark.parametrize(("unit", "wire", "state"), CASES)
def test_reads(unit, wire, state):
    assert decode(bytes.fromhex(wire)) == unit
    assert decode(b"xxx" + bytes.fromhex(wire), 3) == unit


@pytest.mark.parametrize(("unit", "wire", "state"), CASES)
def test_reads_in_bulk(unit, wire, state):
    (row,) = np.frombuffer(bytes.fromhex(wire), CQ_UNIT).tolist()
    assert row == (unit.physical_offset, unit.size, unit.tags_code)


@pytest.mark.parametrize(("unit", "wire", "state"), CASES)
def test_the_state_of_a_slot(unit, wire, state):
    assert unit.state == state


I64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(I64, st.integers(-(1 << 31), (1 << 31) - 1), I64)
def test_an_entry_round_trips(offset, size, code):
    assert decode(encode(CqUnit(offset, size, code))) == CqUnit(offset, size, code)


@given(st.binary(min_size=20, max_size=200))
def test_bulk_and_single_agree_on_any_bytes(data):
    rows = np.frombuffer(data[: len(data) // 20 * 20], CQ_UNIT).tolist()
    assert [CqUnit(*row) for row in rows] == [decode(data, position) for position in range(0, len(data) - 19, 20)]


ADDRESSES = [
    pytest.param(-(1 << 63), True, 0, id="the first ext unit"),
    pytest.param(-(1 << 63) + 34, True, 34, id="the second"),
    pytest.param(-(1 << 31) - 1, True, (1 << 63) - (1 << 31) - 1, id="the last address"),
    pytest.param(-(1 << 31), False, None, id="the smallest hash"),
    pytest.param(0, False, None, id="no tag"),
    pytest.param(2598919, False, None, id="a tag"),
]


@pytest.mark.parametrize(("code", "address", "offset"), ADDRESSES)
def test_addresses_of_the_ext_file(code, address, offset):
    assert cq.is_ext_address(code) is address
    if address:
        assert cq.ext_offset(code) == offset


TAGS = [(2598919, 2598919, True), (-1, 0xFFFFFFFF, True), (-1, (1 << 63) - 1, True), (0, 1 << 32, True), (0, 1, False)]


@pytest.mark.parametrize(("code", "other_code", "same"), TAGS)
def test_tag_codes_are_compared_by_their_low_half(code, other_code, same):
    assert cq.same_tag(code, other_code) is same
