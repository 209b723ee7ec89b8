"""Messages that were stored more than once, and consumer groups that got many messages again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.inspection.timeline.unit_rows import DELIVERED, RETRIED, SENT, Chunk, Ints

MAX_REMEMBERED = 4 << 20
"""Number of earlier messages with which the unique key of a message is compared."""
RUN_MS = 60_000
"""Duplicates of a topic, and retries of a group, that are no further apart belong to one event."""
STORM_RETRIES = 200
"""A storm has at least this many retries of one group within :data:`RUN_MS`."""
STORM_SHARE = 0.1
"""Smallest share of a group's retries in all units that were stored meanwhile."""


@dataclass(slots=True)
class DuplicateRun:
    """``count`` messages of a topic that the log already had; the first of them at ``offset``, stored before at
    ``original``. ``is_delivery``: delayed messages that the broker delivered a second time.
    """

    topic: int
    is_delivery: bool
    start: int
    end: int
    offset: int
    original: int
    original_time: int
    count: int = 1


@dataclass(slots=True)
class _KeyedUnits:
    """Units of one part of the log in the order of their unique keys, which are hashed."""

    keys: npt.NDArray[np.uint64]
    offsets: Ints
    times: Ints
    born: Ints
    flags: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two units with one unique key: the original at ``original_row`` of ``originals``, the repeated one of
    ``repeats``.
    """

    originals: _KeyedUnits
    original_row: int
    repeats: _KeyedUnits
    repeat_row: int

    @property
    def is_repeated(self) -> bool:
        """False if both units belong to one batch: each attempt to send has a born time of its own."""
        originals, original, repeats, repeat = self.originals, self.original_row, self.repeats, self.repeat_row
        if originals.flags[original] != repeats.flags[repeat] or originals.times[original] == repeats.times[repeat]:
            return False
        return bool(repeats.flags[repeat] & DELIVERED or originals.born[original] != repeats.born[repeat])


@dataclass(slots=True)
class Duplicates:
    """Finds unique keys that a topic has more than once."""

    runs: list[DuplicateRun] = field(default_factory=list)
    _earlier_units: list[_KeyedUnits] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        rows = chunk.rows.select(slice(chunk.begin, chunk.stop))
        rows = rows.select((rows.key != 0) & (rows.flags & (SENT | DELIVERED) != 0))
        order = np.argsort(rows.key, kind="stable")
        units = _KeyedUnits(
            rows.key[order], rows.offset[order], rows.stored[order], rows.born[order], rows.flags[order]
        )
        topics = rows.topic[order]
        repeated_rows = np.flatnonzero(units.keys[1:] == units.keys[:-1])
        pairs = [_Pair(units, int(row), units, int(row) + 1) for row in repeated_rows]
        for earlier in self._earlier_units:
            places = np.minimum(np.searchsorted(earlier.keys, units.keys), max(len(earlier.keys) - 1, 0))
            if len(earlier.keys):
                hits = np.flatnonzero(earlier.keys[places] == units.keys)
                pairs += [_Pair(earlier, int(places[hit]), units, int(hit)) for hit in hits]
        for pair in sorted(pairs, key=lambda pair: int(units.offsets[pair.repeat_row])):
            if pair.is_repeated:
                self._note(pair, int(topics[pair.repeat_row]))
        self._earlier_units.append(units)
        while sum(len(part.keys) for part in self._earlier_units) > MAX_REMEMBERED and len(self._earlier_units) > 1:
            self._earlier_units.pop(0)

    def _note(self, pair: _Pair, topic: int) -> None:
        originals, original, repeats, repeat = pair.originals, pair.original_row, pair.repeats, pair.repeat_row
        is_delivery, time = bool(repeats.flags[repeat] & DELIVERED), int(repeats.times[repeat])
        for run in reversed(self.runs[-16:]):
            if run.topic == topic and run.is_delivery == is_delivery and abs(time - run.end) <= RUN_MS:
                run.end, run.count = max(run.end, time), run.count + 1
                return
        offsets = int(repeats.offsets[repeat]), int(originals.offsets[original])
        self.runs.append(DuplicateRun(topic, is_delivery, time, time, *offsets, int(originals.times[original])))


@dataclass(slots=True)
class RetryStorm:
    """``count`` messages came to the retry topic ``topic`` between ``start`` and ``end`` (ms), the first at ``offset``;
    ``units``: all units that were stored meanwhile.
    """

    topic: int
    start: int
    end: int
    offset: int
    count: int
    units: int


@dataclass(slots=True)
class RetryStorms:
    """Finds times in which a group got many messages again."""

    storms: list[RetryStorm] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        rows = chunk.rows.select(slice(chunk.begin, chunk.stop))
        retried = np.flatnonzero(rows.flags & RETRIED != 0)
        for topic in np.unique(rows.topic[retried]).tolist():
            topic_rows = retried[rows.topic[retried] == topic]
            times = rows.stored[topic_rows]
            for run_start, run_end in _busy_runs(times):
                retry_count, units = run_end - run_start + 1, int(topic_rows[run_end] - topic_rows[run_start]) + 1
                if retry_count >= STORM_SHARE * units:
                    span = int(times[run_start]), int(times[run_end])
                    self._note(RetryStorm(topic, *span, int(rows.offset[topic_rows[run_start]]), retry_count, units))

    def _note(self, storm: RetryStorm) -> None:
        for earlier in reversed(self.storms[-16:]):
            if earlier.topic == storm.topic and 0 <= storm.start - earlier.end <= RUN_MS:
                earlier.end, earlier.count = storm.end, earlier.count + storm.count
                earlier.units += storm.units
                return
        self.storms.append(storm)


def _busy_runs(times: Ints) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row of each run in which every minute has enough retries."""
    ordered = np.maximum.accumulate(times)
    earliest = np.searchsorted(ordered, ordered - RUN_MS)
    busy = np.flatnonzero(np.arange(len(ordered)) - earliest + 1 >= STORM_RETRIES)
    if not len(busy):
        return
    edges = np.flatnonzero(ordered[busy[1:]] - ordered[busy[:-1]] > RUN_MS)
    for begin, stop in zip([0, *(edges + 1).tolist()], [*edges.tolist(), len(busy) - 1], strict=True):
        yield int(earliest[busy[begin]]), int(busy[stop])
