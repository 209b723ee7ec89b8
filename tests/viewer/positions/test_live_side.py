"""Exported samples: positions with the gaps, the rates, and the flushes since the previous sample."""

from __future__ import annotations

from engine.inspection.positions import Position, Positions
from viewer.positions.live_side import FIELDS, copy_of, sample_records
from viewer.runtime.live_history import LiveHistory, fill
from viewer.runtime.position_reading import KEYS, Flush, PositionReading

TIME_MS = 1_795_280_000_000


def sample_at(number: int, *flushes: Flush, flushed: int | None = 0) -> PositionReading:
    """Make a sample of a lab store, ``number`` half seconds after the start."""
    reported = {key: Position(1000 * number, "told") for key in KEYS if key != "checkpoint"}
    reported["flushed"] = Position(flushed) if flushed is not None else Position(None, why="nobody tells")
    return PositionReading(
        Positions(checkpoint={}, **reported),
        (),
        (),
        TIME_MS + 500 * number,
        True,
        True,
        units=10 * number,
        flushes=flushes,
    )


def test_each_sample_has_its_gaps_rates_and_flushes() -> None:
    flush_1 = Flush(TIME_MS + 600, 900, 900, 3.5)
    flush_2, flush_3 = Flush(TIME_MS + 1100, 1500, 600, 1.25), Flush(TIME_MS + 1200, 1800, 300, 9.0)
    samples = [sample_at(1), sample_at(2, flush_1, flushed=900), sample_at(3, flush_2, flush_3, flushed=1800)]
    records = list(sample_records(copy_of(fill(LiveHistory(), samples))))
    assert [tuple(record) for record in records] == [FIELDS] * 3
    assert [record["at"] for record in records] == [TIME_MS + 500, TIME_MS + 1000, TIME_MS + 1500]
    assert [record["to_flush"] for record in records] == [1000, 1100, 1200]
    assert [(record["flushes"], record["flush_bytes"], record["flush_ms"]) for record in records] == [
        (0, 0, None),
        (1, 900, 3.5),
        (2, 900, 9.0),
    ]
    assert (records[0]["put_rate"], records[2]["put_rate"], records[2]["write_rate"]) == (None, 20.0, 2000.0)


def test_unknown_values_are_empty() -> None:
    (record,) = sample_records(copy_of(fill(LiveHistory(), [sample_at(1, flushed=None)])))
    assert record["flushed"] is None
    assert record["to_flush"] is None
    assert record["checkpoint"] is None
    assert record["wrote"] == 1000
