"""The epoch table of controller mode, as RocketMQ 5.3.3 and 5.5.1 write and load it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.epoch_file import Epoch, EpochFile, decode, encode

EPOCHS = [Epoch(1, 0), Epoch(2, 4096), Epoch(5, 1_000_000)]
WRITTEN = b"3\n1544922653\n1-0\n2-4096\n5-1000000\n"
"""Written by EpochFileCache of RocketMQ 5.5.1."""


def test_rocketmqs_bytes_both_ways():
    assert encode(EPOCHS) == WRITTEN
    assert decode(WRITTEN).epochs == tuple(EPOCHS)
    assert decode(WRITTEN).problem == ""


def test_the_table_of_a_broker_after_four_elections():
    """Both brokers of a real group (5.5.0) had this file; mqadmin getBrokerEpoch listed the same starts."""
    written = b"5\n1906420405\n1-0\n2-27030\n3-52530\n4-78030\n5-103530\n"
    table = decode(written)
    assert (table.problem, [row.start_offset for row in table.epochs]) == ("", [0, 27_030, 52_530, 78_030, 103_530])
    assert encode(list(table.epochs)) == written


@pytest.mark.parametrize(
    ("data", "problem", "stops_start"),
    [
        (WRITTEN.replace(b"3\n", b"4\n", 1), "its first line says 4 rows, it has 3", False),
        (WRITTEN.replace(b"1544922653", b"123"), "its CRC is 123, expected 1544922653", False),
        (WRITTEN.replace(b"1544922653\n", b""), "line 2 is no number: '1-0'", True),
        (b"", "line 1 is no number: ''", True),
        (WRITTEN.replace(b"1544922653", b"0"), "", False),
    ],
)
def test_what_a_broker_does_not_load(data, problem, stops_start):
    actual = decode(data)
    assert (actual.problem, actual.stops_start) == (problem, stops_start)


@given(st.binary(max_size=200) | st.lists(st.sampled_from([b"2", b"0", b"1-0", b"7-9", b"x"])).map(b"\n".join))
def test_any_bytes_are_decoded(raw):
    table = decode(raw)
    assert table.problem or not table.stops_start
    assert decode(encode(list(table.epochs))) == EpochFile(table.epochs)
