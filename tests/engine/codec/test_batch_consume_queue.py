"""Batch consume queue units in both directions, one at a time and in bulk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE, BatchCqUnit, decode, encode
from engine.codec.dtypes import BATCH_CQ_UNIT

CASES = [
    pytest.param(
        BatchCqUnit(2245, 1002, 0, 1700000000123, 4, 8),
        "00000000000008c5000003ea00000000000000000000018bcfe5687b00000000000000040008ffffffff00000000",
        id="a batch of eight",
    ),
    pytest.param(BatchCqUnit(0, 0, 0, 0, 0, 0, 0), "00" * 46, id="never written"),
    pytest.param(
        BatchCqUnit(1, 1, -1, 1, 1, -1, 7, 9),
        "000000000000000100000001" + "ff" * 8 + "0000000000000001" * 2 + "ffff0000000700000009",
        id="below zero",
    ),
]


@pytest.mark.parametrize(("unit", "wire"), CASES)
def test_writes(unit, wire):
    assert encode(unit).hex() == wire


@pytest.mark.parametrize(("unit", "wire"), CASES)
def test_reads(unit, wire):
    assert decode(bytes.fromhex(wire)) == unit


@pytest.mark.parametrize(("unit", "wire"), CASES)
def test_the_bulk_form_reads_the_same(unit, wire):
    row = np.frombuffer(bytes.fromhex(wire), BATCH_CQ_UNIT)[0]
    assert BatchCqUnit(*(int(value) for value in row)) == unit


_I16, _I32, _I64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64))


@given(st.builds(BatchCqUnit, _I64, _I32, _I64, _I64, _I64, _I16, _I32, _I32))
def test_a_unit_round_trips(unit):
    raw = encode(unit)
    assert len(raw) == BATCH_CQ_UNIT_SIZE == BATCH_CQ_UNIT.itemsize == 46
    assert decode(b"ab" + raw, 2) == unit


@given(st.binary(min_size=46, max_size=46))
def test_any_bytes_give_a_unit(raw):
    assert isinstance(decode(raw).valid, bool)


def test_a_unit_without_messages_ends_the_queue():
    assert BatchCqUnit(0, 100, 0, 0, 0, 1).valid
    assert not BatchCqUnit(0, 100, 0, 0, 0, 0).valid
    assert BatchCqUnit(0, 100, 0, 0, 12, 3).next_offset == 15


@pytest.mark.golden
def test_agrees_with_what_rocketmq_read(golden, golden_account):
    reports = {}
    for row in golden_account("batchcq-5.3.3", "expected.jsonl.xz"):
        if row["t"] == "bcq":
            reports.setdefault((row["topic"], row["queue"]), []).append(
                (row["base"], row["phy"], row["size"], row["tags"], row["batch"], row["compacted"])
            )
    assert reports
    root = golden("batchcq-5.3.3") / "batchconsumequeue"
    for (topic, queue), rows in reports.items():
        results = []
        for path in sorted((root / topic / str(queue)).iterdir()):
            raw = path.read_bytes()
            units = [decode(raw, position) for position in range(0, len(raw) - 45, 46)]
            results += [
                (unit.msg_base_offset, unit.physical_offset, unit.size, unit.tags_code, unit.batch_size, -1)
                for unit in units
                if unit.valid
            ]
        assert results == rows
