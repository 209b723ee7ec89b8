"""Two stores under the same load, compared."""

from __future__ import annotations

from dataclasses import replace

from engine.codec.checkpoint import Checkpoint
from engine.lab.samples import FlushMark, LoadCounts, PositionSample
from engine.store.latency import BUCKETS, Histogram
from engine.store.positions import Positions
from viewer.lab.two_ways import Side, markdown, rows, summary

TIME_MS = 1_700_000_000_000
POSITIONS = Positions(
    0,
    5000,
    4000,
    1000,
    3000,
    4000,
    3000,
    2900,
    Checkpoint(TIME_MS, TIME_MS, TIME_MS),
    None,
    0,
    Histogram(),
    Histogram(),
)


def _latency(bucket: int, count: int) -> Histogram:
    return Histogram(tuple(count if n == bucket else 0 for n in range(BUCKETS)))


def _side(name: str, ok: int, bucket: int) -> Side:
    side = Side(name)
    side.add(PositionSample(TIME_MS, POSITIONS))
    mark = FlushMark(1, TIME_MS + 900, 1000, 1000, 12.5, 0)
    side.add(PositionSample(TIME_MS + 1000, replace(POSITIONS, flushed=4500), flushes=(mark,)))
    side.count(LoadCounts(True, ok, ok * 100, {"PUT_OK": ok}, _latency(bucket, ok)))
    return side


def test_a_side_collects_rates_gaps_and_flushes() -> None:
    side = _side("A", 2000, 15)
    assert (side.seconds, side.rate) == (1.0, 2000.0)
    assert (side.unflushed, side.max_unflushed) == (500, 4000)
    assert (side.flush_ms, side.flush_bytes) == (12.5, 1000)
    assert side.median_ms == (1 << 15) / 1e6


def test_rows_show_the_better_side() -> None:
    figures = {row.what: row for row in rows(_side("A", 2000, 15), _side("B", 1000, 18))}
    assert figures["answered a second"].verdict == "A is better 2.0 ×"
    assert figures["median of a put"].verdict == "A is better 8.0 ×"
    assert figures["not flushed, at most"].verdict == "alike"
    assert (figures["PUT_OK"].text_a, figures["PUT_OK"].text_b) == ("2,000", "1,000")
    assert "lost at the power cut" not in figures


def test_losses_are_compared_and_a_broken_promise_is_an_error() -> None:
    side_a, side_b = _side("A", 10, 15), _side("B", 10, 15)
    side_a.lost, side_b.lost = 0, 0
    assert next(row for row in rows(side_a, side_b) if row.what.startswith("lost")).mark == "ok"
    side_b.lost = 7
    assert next(row for row in rows(side_a, side_b) if row.what.startswith("lost")).verdict.startswith("B loses more")
    assert "lost at the power cut: B loses more" in summary(side_a, side_b)
    side_b.allowed = False
    assert next(row for row in rows(side_a, side_b) if row.what.startswith("lost")).mark == "error"


def test_statuses_have_a_meaning_and_the_longest_put_is_compared() -> None:
    side_a, side_b = _side("A", 2000, 15), _side("B", 2000, 20)
    side_b.count(LoadCounts(True, 9, 9, {"PUT_OK": 1, "OS_PAGE_CACHE_BUSY": 8}, _latency(20, 9)))
    figures = {row.what: row for row in rows(side_a, side_b)}
    assert figures["OS_PAGE_CACHE_BUSY"].verdict == (
        "B has more of them · not stored: a put has held the log for too long"
    )
    assert figures["longest put, at most"].verdict == "A is better 32.0 ×"
    assert summary(side_a, side_b).startswith(
        "answered a second: A is better 2,000.0 × · p99 of a put: A is better 32.0 ×"
    )


def test_the_comparison_is_a_text_that_can_be_pasted() -> None:
    text = markdown(_side("A", 2000, 15), _side("B", 1000, 18), ("default | broker", "synchronous"), "Rate 2,000 /s")
    lines = text.splitlines()
    assert lines[:3] == ["- **A**: default \\| broker", "- **B**: synchronous", "- Load: Rate 2,000 /s"]
    assert lines[4:6] == ["| Figure | A | B | Verdict |", "|---|---:|---:|---|"]
    assert "| answered a second | 2,000 /s | 1,000 /s | A is better 2.0 × |" in lines
