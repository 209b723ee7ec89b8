"""Figures of a job's results."""

from __future__ import annotations

import pipeline_lines as lines
import pytest
from pipeline_lines import ended_job, job

from viewer.pipeline.stats_figures import GROUPINGS, byte_areas, rates

FAR = (1 << 62) + 3


def test_areas_add_up_and_rates_have_every_hour() -> None:
    sample = ended_job(lines.stats(hours=30))
    unit_bytes = sample.rows["stats"][0]["unitBytes"]
    for grouping, _ in GROUPINGS:
        root = byte_areas(sample, grouping)
        assert root.bytes == unit_bytes
        assert all(area.bytes == sum(child.bytes for child in area.children) for area in root.children)
    message_rates = rates(sample, "messages")
    assert message_rates is not None
    assert (message_rates.first, message_rates.spans) == (lines.FIRST, 30)
    assert sum(sum(rate_series.rates) for rate_series in message_rates.series) * 3600 == pytest.approx(
        sample.rows["stats"][0]["messages"]
    )
    byte_rates = rates(sample, "bytes")
    assert byte_rates is not None
    assert sum(sum(rate_series.rates) for rate_series in byte_rates.series) * 3600 == pytest.approx(unit_bytes)


def test_hours_without_messages_are_empty_and_hours_of_damaged_times_are_no_plot() -> None:
    new_job = job()
    hour = {"type": "statsHour", "topic": "T", "messages": 3600, "bytes": 7200}
    new_job.take_all([{**hour, "hour": lines.FIRST}, {**hour, "hour": lines.FIRST + 5 * lines.HOUR}], 101.0)
    actual_rates = rates(new_job, "messages")
    assert actual_rates is not None
    assert actual_rates.series[0].rates == (1.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    new_job.take({**hour, "hour": FAR}, 102.0)
    assert rates(new_job, "messages") is None


def test_a_job_that_counted_shorter_spans_is_drawn_by_them() -> None:
    """5,171 messages in 100 s were one bar of 1.43 a second, because the bins were hours."""
    new_job = job()
    span = {"type": "statsTime", "spanMs": 10_000, "topic": "T", "bytes": 40}
    new_job.take_all(
        [{**span, "time": lines.FIRST, "messages": 20}, {**span, "time": lines.FIRST + 30_000, "messages": 5}], 101.0
    )
    new_job.take({"type": "statsHour", "topic": "T", "hour": lines.FIRST, "messages": 25, "bytes": 80}, 101.0)
    actual_rates = rates(new_job, "messages")
    assert actual_rates is not None
    assert (actual_rates.spans, actual_rates.span_ms) == (4, 10_000)
    assert actual_rates.series[0].rates == (2.0, 0.0, 0.0, 0.5)
