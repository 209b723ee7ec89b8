"""Latencies in buckets of powers of two."""

from __future__ import annotations

import pytest

from engine.store.latency import BUCKETS, Histogram, Latencies, SlowCalls


@pytest.mark.parametrize(("nanoseconds", "bucket"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1 << 60, BUCKETS - 1)])
def test_bucket_of(nanoseconds: int, bucket: int) -> None:
    latencies = Latencies()
    latencies.add(nanoseconds)
    assert latencies.snapshot().counts[bucket] == 1


def test_quantiles_round_up_to_the_end_of_the_bucket() -> None:
    latencies = Latencies()
    for nanoseconds in [100] * 98 + [5000] * 2:
        latencies.add(nanoseconds)
    snapshot = latencies.snapshot()
    assert snapshot.count == 100
    assert (snapshot.quantile(0.5), snapshot.quantile(0.99), snapshot.quantile(1.0)) == (128, 8192, 8192)


def test_nothing_counted() -> None:
    assert (Histogram().count, Histogram().quantile(0.99)) == (0, 0)


def test_slow_calls_are_counted_in_rocketmqs_rows() -> None:
    slow = SlowCalls()
    for ms in (1, 9, 10, 49, 50, 999, 1000, 9999, 10000, 60000):
        slow.add(ms * 1_000_000 + 999_999)
    assert slow.counts == [0, 2, 2, 1, 0, 0, 1, 1, 0, 0, 0, 1, 2]
    assert slow.longest_ms == 60000
