"""Latencies as histograms of powers of two, cheap to count. A snapshot is a frozen value."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

BUCKETS: Final = 48
"""Bucket *n* counts durations from 2ⁿ⁻¹ to below 2ⁿ nanoseconds; the last one all longer ones."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Histogram of durations. ``counts[n]`` counts those below 2ⁿ ns and not below 2ⁿ⁻¹ ns."""

    counts: tuple[int, ...] = (0,) * BUCKETS

    @property
    def count(self) -> int:
        return sum(self.counts)

    def __repr__(self) -> str:
        return f"Histogram({self.count} durations, 99 % below {self.quantile(0.99) / 1e6:.3g} ms)"

    def quantile(self, share: float) -> int:
        """Return the duration (ns) below which ``share`` (0 to 1) of all lie, rounded up to the bucket's end; 0 without
        any.
        """
        target_count = share * self.count
        running_count = 0
        for bucket, count in enumerate(self.counts):
            running_count += count
            if count and running_count >= target_count:
                return 1 << bucket
        return 0


class Latencies:
    """Counts latencies without a lock, so :meth:`add` may occasionally lose a count to another thread."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS

    def add(self, nanoseconds: int) -> None:
        """Count one duration."""
        bucket = nanoseconds.bit_length()
        self.counts[bucket if bucket < BUCKETS else -1] += 1

    def snapshot(self) -> Histogram:
        """Return the counts so far."""
        return Histogram(tuple(self.counts))


CALL_ENDS_MS: Final = (1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
"""Ends of the rows of ``putMessageDistributeTime`` (Java: ``StoreStatsService``): a row is below its end."""
SLOW_NS: Final = 1_000_000
"""A shorter call counts as 0 ms in Java."""


class SlowCalls:
    """Counts calls of :data:`SLOW_NS` or longer by the rows of :data:`CALL_ENDS_MS`, and knows the longest of all."""

    __slots__ = ("counts", "longest_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(CALL_ENDS_MS) + 1)
        """The first row stays 0: quick calls are not counted here."""
        self.longest_ms = 0

    def add(self, nanoseconds: int) -> None:
        """Count one call that took :data:`SLOW_NS` or longer."""
        ms = nanoseconds // SLOW_NS
        self.counts[bisect_right(CALL_ENDS_MS, ms)] += 1
        self.longest_ms = max(self.longest_ms, ms)
