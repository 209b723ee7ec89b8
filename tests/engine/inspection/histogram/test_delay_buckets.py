"""Buckets of times: exact to 32 ms, then within 3.2 %; percentiles of counts are those of the times."""

from __future__ import annotations

import random

import numpy as np
from counted_histogram import is_near

from engine.inspection.histogram.delay_buckets import _MIDDLES, BUCKETS, MAX_DELAY_MS, buckets_of, percentiles


def test_each_time_is_near_the_middle_of_its_bucket() -> None:
    delays = np.unique(np.concatenate([np.arange(70_000), np.geomspace(1, MAX_DELAY_MS, 20_000).astype(np.int64)]))
    buckets = buckets_of(delays)
    assert (np.diff(buckets) >= 0).all()
    assert (np.diff(np.unique(buckets)) == 1).all(), "no bucket is left out"
    error = np.abs(_MIDDLES[buckets] - delays)
    assert not error[delays < 32].any()
    assert (error <= delays / 31).all()


def test_negative_and_absurd_times_stay_inside() -> None:
    assert buckets_of(np.array([-5, 0, MAX_DELAY_MS, 1 << 62])).tolist() == [0, 0, BUCKETS - 1, BUCKETS - 1]
    assert buckets_of(np.zeros(0, np.int64)).tolist() == []


def test_percentiles_of_counts_are_those_of_the_times() -> None:
    random.seed(7)
    for count in (1, 2, 99, 100, 101, 5000):
        delays = [random.choice((0, 1, 3, 40, 900, 100_000)) + random.randrange(30) for _ in range(count)]
        counts = np.bincount(buckets_of(np.array(delays)), minlength=BUCKETS)[np.newaxis].astype(np.int32)
        for percent in (50, 99):
            assert is_near(int(percentiles(counts, percent)[0]), delays, percent)
    assert percentiles(np.zeros((2, BUCKETS), np.int32), 50).tolist() == [-1, -1]
