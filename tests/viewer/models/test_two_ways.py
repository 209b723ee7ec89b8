"""Two stores under the same load, compared."""

from __future__ import annotations

from dataclasses import replace

from engine.codec.checkpoint import Checkpoint
from engine.lab.samples import FlushMark, LoadCounts, PositionSample
from engine.store.latency import BUCKETS, Histogram
from engine.store.positions import Positions
from viewer.models.two_ways import Side, rows

AT = 1_700_000_000_000
POSITIONS = Positions(
    0, 5000, 4000, 1000, 3000, 4000, 3000, 2900, Checkpoint(AT, AT, AT), None, 0, Histogram(), Histogram()
)


def _latency(bucket: int, count: int) -> Histogram:
    return Histogram(tuple(count if n == bucket else 0 for n in range(BUCKETS)))


def _side(name: str, ok: int, bucket: int) -> Side:
    side = Side(name)
    side.add(PositionSample(AT, POSITIONS))
    mark = FlushMark(1, AT + 900, 1000, 1000, 12.5, 0)
    side.add(PositionSample(AT + 1000, replace(POSITIONS, flushed=4500), flushes=(mark,)))
    side.count(LoadCounts(True, ok, ok * 100, {"PUT_OK": ok}, _latency(bucket, ok)))
    return side


def test_a_side_gathers_rates_gaps_and_flushes() -> None:
    side = _side("A", 2000, 15)
    assert (side.seconds, side.rate) == (1.0, 2000.0)
    assert (side.unflushed, side.most_unflushed) == (500, 4000)
    assert (side.flush_ms, side.flush_bytes) == (12.5, 1000)
    assert side.median_ms == (1 << 15) / 1e6


def test_rows_say_which_way_is_better() -> None:
    found = {row.what: row for row in rows(_side("A", 2000, 15), _side("B", 1000, 18))}
    assert found["answered a second"].verdict == "A is better 2.0 ×"
    assert found["median of a put"].verdict == "A is better 8.0 ×"
    assert found["not flushed, at most"].verdict == "alike"
    assert (found["PUT_OK"].one, found["PUT_OK"].two) == ("2,000", "1,000")
    assert "lost at the pulled plug" not in found


def test_losses_are_compared_and_a_broken_promise_is_an_error() -> None:
    one, two = _side("A", 10, 15), _side("B", 10, 15)
    one.lost, two.lost = 0, 0
    assert next(row for row in rows(one, two) if row.what.startswith("lost")).mark == "ok"
    two.lost = 7
    assert next(row for row in rows(one, two) if row.what.startswith("lost")).verdict.startswith("B loses more")
    two.allowed = False
    assert next(row for row in rows(one, two) if row.what.startswith("lost")).mark == "error"
