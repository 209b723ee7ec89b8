"""Totals of differences: by kind and side, by topic and queue, and the first one in the log."""

from __future__ import annotations

import pytest

from engine.inspection import difference_rows
from engine.inspection.difference_rows import Differences, Row


def test_rows_are_limited_and_counts_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difference_rows, "MAX_ROWS", 2)
    result = Differences()
    for offset in (300, 100, 200):
        result.add(Row("unit", "differs", "", 5, offset=offset))
    assert ([row.offset for row in result.rows], result.total, result.is_truncated) == ([300, 100], 15, True)
    assert result.first_row is not None
    assert result.first_row.offset == 100


def test_the_first_difference_is_not_before_the_other_logs_beginning() -> None:
    result = Differences()
    result.add(Row("unit", "here", "head", offset=0, end="head"))
    result.add(Row("unit", "there", "only there", offset=10, is_beyond=True))
    assert result.first_row is not None
    assert result.first_row.subject == "only there"
    result.add(Row("unit", "here", "only here", offset=50, is_beyond=True))
    assert result.first_row.subject == "only here", "offsets of the other log do not compare with ours"


def test_units_are_summed_by_queue() -> None:
    result = Differences()
    result.count_units("here", "Orders", 1, 3, 10, 12)
    result.count_units("here", "Orders", 1, 1, 4, 4)
    units = result.queues["Orders", 1]["here"]
    assert (units.count, units.min_offset, units.max_offset) == (4, 4, 12)
    result.count_end("here", "tail", 640, 3, 900)
    result.count_end("here", "tail", 640, 1, 300)
    assert [(end.offset, end.units, end.size) for end in result.ends.values()] == [(640, 4, 1200)]
