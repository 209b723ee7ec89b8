"""Latencies as histograms of powers of two: cheap to count, frozen when asked for."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

BUCKETS: Final = 48
"""Bucket *n* counts what took from 2ⁿ⁻¹ to below 2ⁿ nanoseconds; the last one everything longer."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often something took how long. ``counts[n]`` are those below 2ⁿ ns and not below 2ⁿ⁻¹ ns."""

    counts: tuple[int, ...] = (0,) * BUCKETS

    @property
    def count(self) -> int:
        return sum(self.counts)

    def quantile(self, share: float) -> int:
        """Nanoseconds that ``share`` (0 to 1) of all stayed below, rounded up to the bucket's end; 0 without any."""
        wanted = share * self.count
        seen = 0
        for bucket, count in enumerate(self.counts):
            seen += count
            if count and seen >= wanted:
                return 1 << bucket
        return 0


class Latencies:
    """Counts latencies. :meth:`add` may lose a count to another thread now and then; it takes no lock."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS

    def add(self, nanoseconds: int) -> None:
        """Count one."""
        bucket = nanoseconds.bit_length()
        self.counts[bucket if bucket < BUCKETS else -1] += 1

    def snapshot(self) -> Histogram:
        """What was counted so far."""
        return Histogram(tuple(self.counts))


CALL_ENDS_MS: Final = (1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
"""Where the rows of ``putMessageDistributeTime`` end (Java: ``StoreStatsService``): a row is below its end."""
SLOW_NS: Final = 1_000_000
"""What takes less counts as 0 ms in Java."""


class SlowCalls:
    """Counts calls of :data:`SLOW_NS` or longer by the rows of :data:`CALL_ENDS_MS`, and knows the longest of all."""

    __slots__ = ("counts", "longest_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(CALL_ENDS_MS) + 1)
        """The first row stays 0: nobody tells of quick calls."""
        self.longest_ms = 0

    def add(self, nanoseconds: int) -> None:
        """Count one that took :data:`SLOW_NS` or longer."""
        ms = nanoseconds // SLOW_NS
        self.counts[bisect_right(CALL_ENDS_MS, ms)] += 1
        self.longest_ms = max(self.longest_ms, ms)
