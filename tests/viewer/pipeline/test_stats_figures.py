"""Figures of a job's results."""

from __future__ import annotations

import pipeline_lines as lines
import pytest
from pipeline_lines import job, told

from viewer.pipeline.stats_figures import GROUPINGS, byte_areas, rates

FAR = (1 << 62) + 3


def test_areas_add_up_and_rates_have_every_hour() -> None:
    made = told(lines.stats(hours=30))
    whole = made.rows["stats"][0]["unitBytes"]
    for grouping, _ in GROUPINGS:
        root = byte_areas(made, grouping)
        assert root.bytes == whole
        assert all(area.bytes == sum(one.bytes for one in area.children) for area in root.children)
    found = rates(made, "messages")
    assert found is not None
    assert (found.first, found.spans) == (lines.FIRST, 30)
    assert sum(sum(one.rates) for one in found.series) * 3600 == pytest.approx(made.rows["stats"][0]["messages"])
    in_bytes = rates(made, "bytes")
    assert in_bytes is not None
    assert sum(sum(one.rates) for one in in_bytes.series) * 3600 == pytest.approx(whole)


def test_hours_without_messages_are_empty_and_hours_of_damaged_times_are_no_plot() -> None:
    made = job()
    hour = {"type": "statsHour", "topic": "T", "messages": 3600, "bytes": 7200}
    made.take_all([{**hour, "hour": lines.FIRST}, {**hour, "hour": lines.FIRST + 5 * lines.HOUR}], 101.0)
    found = rates(made, "messages")
    assert found is not None
    assert found.series[0].rates == (1.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    made.take({**hour, "hour": FAR}, 102.0)
    assert rates(made, "messages") is None


def test_a_job_that_counted_shorter_spans_is_drawn_by_them() -> None:
    """5,171 messages in 100 s were one bar of 1.43 a second: the bins were hours."""
    made = job()
    span = {"type": "statsTime", "spanMs": 10_000, "topic": "T", "bytes": 40}
    made.take_all(
        [{**span, "time": lines.FIRST, "messages": 20}, {**span, "time": lines.FIRST + 30_000, "messages": 5}], 101.0
    )
    made.take({"type": "statsHour", "topic": "T", "hour": lines.FIRST, "messages": 25, "bytes": 80}, 101.0)
    found = rates(made, "messages")
    assert found is not None
    assert (found.spans, found.span_ms) == (4, 10_000)
    assert found.series[0].rates == (2.0, 0.0, 0.0, 0.5)
