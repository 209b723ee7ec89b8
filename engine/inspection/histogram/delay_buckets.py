"""Times from born to stored, counted in buckets as HdrHistogram lays them out: bounded memory, bounded error.

A bucket is 1 ms wide up to 32 ms. Behind, each doubling of the time has 16 buckets, so the middle of a bucket is at
most 3.2 % off. Counts of two parts add up to those of both::

    delay (ms)   0 1 2 … 31 | 32-33 34-35 … 62-63 | 64-67 68-71 … | …
    bucket       0 1 2 … 31 | 32    33    … 47    | 48    49    … | …
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_STEPS = 16
"""Buckets of each doubling."""
_DOUBLINGS = 28
"""Doublings behind the first 16 ms: times up to 49 days, longer ones count as that."""
BUCKETS = _STEPS * (_DOUBLINGS + 1)
MAX_DELAY_MS = (_STEPS << _DOUBLINGS) - 1
_TABLE_MS = 1 << 16


def _computed(delays: Ints) -> Ints:
    doublings = np.maximum(np.frexp(delays.astype(np.float64))[1].astype(np.int64) - 5, 0)
    buckets: Ints = _STEPS * doublings + (delays >> doublings)
    return buckets


_TABLE = _computed(np.arange(_TABLE_MS, dtype=np.int64))


def buckets_of(delays: Ints) -> Ints:
    """Return the bucket of each time (ms). Negative ones, of clocks that differ, count as 0."""
    if not len(delays):
        return delays
    largest = int(delays.max())
    if int(delays.min()) < 0:
        delays = np.maximum(delays, 0)
    if largest < 2 * _STEPS:
        return delays  # buckets of 1 ms
    if largest < _TABLE_MS:
        return _TABLE.take(delays)
    buckets = _TABLE.take(np.minimum(delays, _TABLE_MS - 1))
    is_long = delays >= _TABLE_MS
    buckets[is_long] = _computed(np.minimum(delays[is_long], MAX_DELAY_MS))
    return buckets


def _middles() -> Ints:
    numbers = np.arange(BUCKETS, dtype=np.int64)
    doublings = np.maximum(numbers // _STEPS - 1, 0)
    middles: Ints = ((numbers - _STEPS * doublings) << doublings) + ((1 << doublings) - 1) // 2
    return middles


_MIDDLES = _middles()


def percentiles(counts: npt.NDArray[np.int32], percent: int) -> Ints:
    """Return for each row of ``counts`` the time (ms) that ``percent`` of it do not exceed; −1 for an empty row."""
    sums = np.cumsum(counts, axis=1, dtype=np.int64)
    totals = sums[:, -1:]
    buckets = np.count_nonzero(sums < -(-totals * percent // 100), axis=1)
    values: Ints = np.where(totals[:, 0] > 0, _MIDDLES[np.minimum(buckets, BUCKETS - 1)], -1)
    return values
