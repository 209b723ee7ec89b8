"""Runs of the units of a block: both twins give the same."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from raw_units import raw_unit

from engine.codec import unit_runs
from engine.codec.block_search import search_units
from engine.codec.columns import UnitColumns, Window
from engine.codec.topic_table import TopicTable
from engine.codec.unit_runs import BAD_BODY, GOES_ON, HAS_ENTRIES, HAS_ENTRIES_BEFORE_LAST, LIVE, find_runs


def random_block(rng: random.Random) -> bytes:
    """Return units back to back, behind headers of DLedger entries, of other places, damaged, and cut."""
    data, offset = bytearray(rng.randbytes(100)), 8192
    for _ in range(60):
        unit = bytearray(raw_unit(offset, body=rng.randbytes(rng.randrange(80)), body_crc=rng.choice((None, None, 0))))
        kind = rng.random()
        if kind < 0.1:
            unit[95] ^= 1  # in the body, or behind an empty one
        elif kind < 0.2:
            offset += 4096
        elif kind < 0.3:
            unit = unit[:80]
        elif kind < 0.6:
            data += struct.pack(">iiqqqiiii", 1, 48 + len(unit), 1, 3, offset - 48, 0, 0, 0, len(unit))
        data += unit
        offset += len(unit) + rng.choice((0, 0, 0, 48))
    return bytes(data) + bytes(100)


def searched(data: bytes, *, crc: bool) -> UnitColumns:
    buffer = np.frombuffer(data, np.uint8)
    columns = UnitColumns(256)
    search_units(Window(buffer, 0, 0, len(data)), len(data), columns, TopicTable(), crc=crc, is_last=True)
    return columns


@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("live_share", [0, 0.5, 1])
def test_both_twins_find_the_same_runs(live_share: float, crc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    all_flags = 0
    for _ in range(30):
        data = random_block(rng)
        columns = searched(data, crc=crc)
        live = np.array([rng.random() < live_share for _ in range(columns.count)], np.uint8)
        compiled = find_runs(columns, columns.count, live)
        columns = searched(data, crc=crc)
        with monkeypatch.context() as patch:
            patch.setattr(unit_runs, "twin", lambda: None)
            plain = find_runs(columns, columns.count, live)
        assert [column.tolist() for column in compiled] == [column.tolist() for column in plain]
        all_flags |= int(np.bitwise_or.reduce(plain.flags))
    expected = LIVE if live_share == 1 else BAD_BODY | GOES_ON if live_share else BAD_BODY
    assert all_flags & expected == expected


def test_headers_of_entries_between_units_are_noted_also_without_the_last_unit() -> None:
    data, offset = b"", 8192
    for _ in range(3):
        unit = raw_unit(offset + 48)
        data += struct.pack(">iiqqqiiii", 1, 48 + len(unit), 1, 3, offset, 0, 0, 0, len(unit)) + unit
        offset += 48 + len(unit)
    flags = []
    for stop in (len(data), len(data) * 2 // 3, len(data) // 3):
        columns = searched(data[:stop] + bytes(100), crc=True)
        flags += find_runs(columns, columns.count, np.zeros(columns.count, np.uint8)).flags.tolist()
    assert flags == [HAS_ENTRIES | HAS_ENTRIES_BEFORE_LAST, HAS_ENTRIES, 0]
