"""Two figures that are asked of a look: how far dispatch is behind, and what a power loss would take.

Latencies in buckets of powers of two.
"""

from __future__ import annotations

import pytest

from engine.codec.checkpoint import Checkpoint
from engine.store.positions import BUCKETS, Histogram, Latencies, Positions


def look(**other: int) -> Positions:
    values = {
        "min": 0, "wrote": 900, "committed": 800, "flushed": 600, "dispatched": 500, "confirm": 800,
        "queue_max": 500, "index_end": 400,
    }  # fmt: skip
    none = Histogram(())
    return Positions(
        **values | other, checkpoint=Checkpoint(0, 0, 0), buffers_left=None, waiting=0, put_latency=none,
        flush_latency=none,
    )  # fmt: skip


def test_what_is_behind_and_what_is_not_flushed():
    assert (look().behind, look().unflushed) == (300, 300)


def test_neither_is_ever_below_zero():
    """A look is taken while threads go on: one figure may be newer than the other."""
    assert (look(dispatched=820).behind, look(flushed=950).unflushed) == (0, 0)


@pytest.mark.parametrize(("nanoseconds", "bucket"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1 << 60, BUCKETS - 1)])
def test_bucket_of(nanoseconds: int, bucket: int) -> None:
    latencies = Latencies()
    latencies.add(nanoseconds)
    assert latencies.snapshot().counts[bucket] == 1


def test_quantiles_round_up_to_the_end_of_the_bucket() -> None:
    latencies = Latencies()
    for nanoseconds in [100] * 98 + [5000] * 2:
        latencies.add(nanoseconds)
    seen = latencies.snapshot()
    assert seen.count == 100
    assert (seen.quantile(0.5), seen.quantile(0.99), seen.quantile(1.0)) == (128, 8192, 8192)


def test_nothing_counted() -> None:
    assert (Histogram().count, Histogram().quantile(0.99)) == (0, 0)
