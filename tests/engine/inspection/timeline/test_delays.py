"""From born to stored: percentiles in bounded memory."""

from __future__ import annotations

from timeline_rows import chunk_of, steady

from engine.inspection.timeline.delays import DelayHistogram
from engine.inspection.timeline.unit_rows import DELIVERED, SENT


def histogram_of(delays, **columns):
    stored = steady(len(delays))
    histogram = DelayHistogram()
    histogram.add(
        chunk_of(stored=stored, born=[time - delay for time, delay in zip(stored, delays, strict=True)], **columns)
    )
    return histogram


def test_percentiles_are_exact_to_ten_seconds_and_near_beyond():
    assert [histogram_of(range(1, 101)).percentile(percent) for percent in (50, 99)] == [50, 99]
    assert abs((histogram_of([60_000]).percentile(50) or 0) - 60_000) <= 600


def test_only_sends_with_a_credible_clock_count():
    histogram = histogram_of([5, 9000, 400 * 86_400_000, -3], flags=[SENT, DELIVERED, SENT, SENT])
    assert [histogram.percentile(percent) for percent in (50, 99)] == [0, 5]
    assert DelayHistogram().percentile(50) is None
