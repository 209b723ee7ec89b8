"""Units anywhere in a block: both twins give the same rows, whatever the bytes are."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from raw_units import raw_log, raw_unit

from engine.codec.block_search import HEAD, MAX_CUT_BYTES, search_plain, search_units
from engine.codec.columns import UnitColumns, Window, aligned_buffer
from engine.codec.topic_table import TopicTable

NAMES = ("offset", "size", "kind", "physical_offset", "crc", "body_crc", "queue_id", "queue_offset", "store_timestamp")


def window_of(data: bytes, base: int = 0) -> Window:
    buffer = aligned_buffer(len(data))
    buffer[:] = np.frombuffer(data, np.uint8)
    return Window(buffer, base, 0, len(data))


def rows_of(
    search, data: bytes, *, capacity: int = 1000, is_last: bool = True, crc: bool = True, stop: int | None = None
) -> tuple[list[tuple[int, ...]], str, int]:
    window, out, rows = window_of(data), UnitColumns(capacity), []
    stop = len(data) if stop is None else stop
    while True:
        outcome = search(window, stop, out, TopicTable(), crc=crc, is_last=is_last)
        rows += zip(*(out[name].tolist() for name in NAMES), strict=True)
        if outcome != "full":
            return rows, outcome, window.cursor


@pytest.fixture(params=[search_plain, search_units], ids=["plain", "compiled"])
def search(request: pytest.FixtureRequest):
    return request.param


def test_units_between_other_bytes_are_rows(search) -> None:
    first, second = raw_log({}, {"version": 2, "topic": b"T" * 200}, base=8192), raw_unit(77, sys_flag=48)
    data = b"-" * 37 + first + b"\xda\xa3\x20\xa7" * 9 + second + b"-" * 5
    rows, outcome, cursor = rows_of(search, data)
    assert [(row[0], row[3]) for row in rows] == [
        (37, 8192),
        (37 + len(raw_unit()), 8192 + len(raw_unit())),
        (37 + len(first) + 36, 77),
    ]
    assert (outcome, cursor) == ("done", len(data))


def test_a_beginning_without_an_end_is_a_head_or_asks_for_more(search) -> None:
    data = b"-" * 9 + raw_unit(8192, body=b"x" * 900)[:500]
    rows, outcome, _ = rows_of(search, data)
    assert [(row[0], row[2], row[3]) for row in rows] == [(9, HEAD, 8192)]
    assert outcome == "done"
    assert rows_of(search, data, is_last=False) == ([], "cut", 9)


def test_a_unit_that_no_broker_writes_asks_for_more_at_the_edge_of_a_block(search) -> None:
    """A unit of 1970 at the edge of a block was missed: its beginning is no head."""
    unit = raw_unit(8192, born=5, stored=6, body=b"x" * 900)
    assert rows_of(search, unit, is_last=False)[0] == rows_of(search, unit)[0] != []
    assert rows_of(search, unit[:500], is_last=False) == ([], "cut", 0)
    impossible = struct.pack(">i", MAX_CUT_BYTES + 1) + unit[4:500]
    assert rows_of(search, impossible, is_last=False)[0] == []


def test_the_twins_agree_on_spoiled_bytes() -> None:
    rng = random.Random(11)
    for _round in range(150):
        data = bytearray()
        while len(data) < 6000:
            unit = raw_unit(
                rng.choice((len(data), rng.randrange(1 << 40))),
                body=rng.randbytes(rng.randrange(300)),
                version=rng.choice((1, 2)),
                sys_flag=rng.choice((0, 16, 32, 48)),
            )
            data += rng.choice((unit, unit, unit[: rng.randrange(len(unit))], rng.randbytes(50), unit[4:]))
        for _spoiled in range(rng.randrange(6)):
            data[rng.randrange(len(data))] = rng.choice((0, 0xDA, 0x7F, 0xFF))
        options = {
            "capacity": rng.choice((1, 2, 7, 500)),
            "is_last": rng.random() < 0.5,
            "crc": rng.random() < 0.5,
            "stop": rng.choice((len(data), 3000)),
        }
        assert rows_of(search_plain, bytes(data), **options) == rows_of(search_units, bytes(data), **options)
