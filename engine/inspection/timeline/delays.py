"""The time from born to stored of a log's messages, counted in bounded memory."""

from __future__ import annotations

import numpy as np

from engine.inspection.timeline.clocks import MAX_SKEW_MS
from engine.inspection.timeline.unit_rows import SENT, Chunk

_EXACT_MS = 10_000
_RATIO = 1.01
_BINS = 4000


class DelayHistogram:
    """Counts delays: to the millisecond up to ten seconds, to one percent beyond."""

    def __init__(self) -> None:
        self._counts = np.zeros(_EXACT_MS + _BINS, np.int64)

    def add(self, chunk: Chunk) -> None:
        """Add the sends that ``chunk`` judges. A negative delay (clocks that differ) counts as 0; producers whose clock
        is days away do not count.
        """
        part = slice(chunk.begin, chunk.stop)
        delays = chunk.rows.delay[part][chunk.rows.flags[part] & SENT != 0]
        delays = np.maximum(delays[np.abs(delays) <= MAX_SKEW_MS], 0)
        beyond = np.log(np.maximum(delays, _EXACT_MS) / _EXACT_MS) / np.log(_RATIO)
        bins = np.where(delays < _EXACT_MS, delays, np.minimum(_EXACT_MS + beyond, _EXACT_MS + _BINS - 1))
        self._counts += np.bincount(bins.astype(np.int64), minlength=len(self._counts))

    def percentile(self, percent: int) -> int | None:
        """Return the delay (ms) that ``percent`` of the messages do not exceed; None without messages."""
        total = int(self._counts.sum())
        if not total:
            return None
        place = int(np.searchsorted(np.cumsum(self._counts), -(-total * percent // 100)))
        return place if place < _EXACT_MS else round(_EXACT_MS * _RATIO ** (place - _EXACT_MS))
