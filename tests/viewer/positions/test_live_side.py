"""Exported samples: positions with the gaps, the rates, and the flushes since the look before."""

from __future__ import annotations

from engine.inspection.positions import Position, Positions
from viewer.positions.live_side import FIELDS, held_of, sample_records
from viewer.runtime.live_history import LiveHistory, fill
from viewer.runtime.position_reading import KEYS, Flush, PositionReading

AT = 1_795_280_000_000


def look(number: int, *flushes: Flush, flushed: int | None = 0) -> PositionReading:
    """A look of a lab store, ``number`` half seconds after the start."""
    reported = {key: Position(1000 * number, "told") for key in KEYS if key != "checkpoint"}
    reported["flushed"] = Position(flushed) if flushed is not None else Position(None, why="nobody tells")
    return PositionReading(
        Positions(checkpoint={}, **reported), (), (), AT + 500 * number, True, True, units=10 * number, flushes=flushes
    )


def test_each_look_has_its_gaps_rates_and_flushes() -> None:
    first = Flush(AT + 600, 900, 900, 3.5)
    second, third = Flush(AT + 1100, 1500, 600, 1.25), Flush(AT + 1200, 1800, 300, 9.0)
    looks = [look(1), look(2, first, flushed=900), look(3, second, third, flushed=1800)]
    results = list(sample_records(held_of(fill(LiveHistory(), looks))))
    assert [tuple(record) for record in results] == [FIELDS] * 3
    assert [record["at"] for record in results] == [AT + 500, AT + 1000, AT + 1500]
    assert [record["to_flush"] for record in results] == [1000, 1100, 1200]
    assert [(record["flushes"], record["flush_bytes"], record["flush_ms"]) for record in results] == [
        (0, 0, None),
        (1, 900, 3.5),
        (2, 900, 9.0),
    ]
    assert (results[0]["put_rate"], results[2]["put_rate"], results[2]["write_rate"]) == (None, 20.0, 2000.0)


def test_what_is_not_known_is_empty() -> None:
    (record,) = sample_records(held_of(fill(LiveHistory(), [look(1, flushed=None)])))
    assert record["flushed"] is None
    assert record["to_flush"] is None
    assert record["checkpoint"] is None
    assert record["wrote"] == 1000
