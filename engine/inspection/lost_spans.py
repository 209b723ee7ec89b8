"""Stretches of the log in which no message can be read any more, and between which store times their messages stood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec import index as codec
from engine.errors import CannotRead
from engine.inspection.check.log import LogCheck
from engine.inspection.snapshot import StoreSnapshot

FOREVER = 1 << 62
GONE = frozenset({"damage", "gap", "stale", "cut", "other"})
"""Kinds of broken places in which no message can be read any more."""


class LostSpan(NamedTuple):
    """Bytes [start, end) of the log, and the store times (ms) of the units in front and behind; −1: not known."""

    start: int
    end: int
    before: int
    after: int


class LostSpans:
    """The stretches in order; those that touch are one."""

    def __init__(self, log: LogCheck, spans: Iterable[LostSpan]) -> None:
        self._log = log
        self._spans = _joined(spans)
        self._starts = np.array([span.start for span in self._spans], np.int64)
        self._ends = np.array([span.end for span in self._spans], np.int64)

    def inside(self, physical: NDArray[np.int64], sizes: NDArray[np.int32]) -> NDArray[np.intp]:
        """Rows whose units stood in one of them; entries of no size lead to no unit."""
        at = np.searchsorted(self._starts, physical, "right") - 1
        return np.flatnonzero((at >= 0) & (physical < self._ends[np.maximum(at, 0)]) & (sizes > 0))

    def earliest(self, offset: int) -> int:
        """The store time (ms) of the unit that stood at ``offset``, or the latest that it cannot be earlier than."""
        return self._time(offset, before=True)

    def latest(self, offset: int) -> int:
        """As :meth:`earliest`: the first that it cannot be later than."""
        return self._time(offset, before=False)

    def _time(self, offset: int, *, before: bool) -> int:
        own = self._log.stored(offset)
        if own > 0 and self._log.spans.find(offset) is None:
            return own
        span = self._spans[int(np.searchsorted(self._starts, offset, "right")) - 1]
        return span.before if before else span.after


def of(store: StoreSnapshot, log: LogCheck) -> LostSpans:
    """Broken places, gaps, units whose body is another, and what is behind the end."""
    spans = [LostSpan(one.start, one.end, one.before, one.after) for one in log.spans.spans if one.kind in GONE]
    spans += [LostSpan(at, at + 1, -1, -1) for at in log.bad_crc]
    spans.append(LostSpan(log.end, FOREVER, log.newest_time or -1, max(_indexed(store, log.end), default=-1)))
    return LostSpans(log, spans)


def _joined(spans: Iterable[LostSpan]) -> list[LostSpan]:
    joined: list[LostSpan] = []
    for span in sorted(spans):
        last = joined[-1] if joined else None
        if last is None or span.start > last.end:
            joined.append(span)
        elif span.end > last.end:
            joined[-1] = last._replace(end=span.end, after=span.after)
    return joined


def _indexed(store: StoreSnapshot, end: int) -> Iterator[int]:
    """Store times (ms) of the newest unit of index files that know units behind the end of the log."""
    for reader in store.index_files():
        try:
            data = reader.file.read(0, codec.HEADER_SIZE)
        except CannotRead:
            continue
        if len(data) == codec.HEADER_SIZE and (header := codec.decode_header(data)).end_phy_offset >= end:
            yield header.end_timestamp
