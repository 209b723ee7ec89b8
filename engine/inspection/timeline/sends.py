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
class _Seen:
    keys: npt.NDArray[np.uint64]
    offsets: Ints
    times: Ints
    born: Ints
    flags: npt.NDArray[np.uint8]


def _is_repeated(source: _Seen, first: int, seen: _Seen, second: int) -> bool:
    """Return True unless both units belong to one batch: each attempt to send has a born time of its own."""
    if source.flags[first] != seen.flags[second] or source.times[first] == seen.times[second]:
        return False
    return bool(seen.flags[second] & DELIVERED or source.born[first] != seen.born[second])


@dataclass(slots=True)
class Duplicates:
    """Finds unique keys that a topic has more than once."""

    runs: list[DuplicateRun] = field(default_factory=list)
    _seen: list[_Seen] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        rows = chunk.rows.select(slice(chunk.begin, chunk.stop))
        rows = rows.select((rows.key != 0) & (rows.flags & (SENT | DELIVERED) != 0))
        order = np.argsort(rows.key, kind="stable")
        seen = _Seen(rows.key[order], rows.offset[order], rows.stored[order], rows.born[order], rows.flags[order])
        topics = rows.topic[order]
        repeated = np.flatnonzero(seen.keys[1:] == seen.keys[:-1])
        pairs = [(seen, int(first), int(first) + 1) for first in repeated]
        for earlier in self._seen:
            places = np.minimum(np.searchsorted(earlier.keys, seen.keys), max(len(earlier.keys) - 1, 0))
            if len(earlier.keys):
                hits = np.flatnonzero(earlier.keys[places] == seen.keys)
                pairs += [(earlier, int(places[hit]), int(hit)) for hit in hits]
        for source, first, second in sorted(pairs, key=lambda pair: int(seen.offsets[pair[2]])):
            if _is_repeated(source, first, seen, second):
                self._note(source, first, seen, second, int(topics[second]))
        self._seen.append(seen)
        while sum(len(part.keys) for part in self._seen) > MAX_REMEMBERED and len(self._seen) > 1:
            self._seen.pop(0)

    def _note(self, source: _Seen, first: int, seen: _Seen, second: int, topic: int) -> None:
        is_delivery, time = bool(seen.flags[second] & DELIVERED), int(seen.times[second])
        for run in reversed(self.runs[-16:]):
            if run.topic == topic and run.is_delivery == is_delivery and abs(time - run.end) <= RUN_MS:
                run.end, run.count = max(run.end, time), run.count + 1
                return
        offsets = int(seen.offsets[second]), int(source.offsets[first])
        self.runs.append(DuplicateRun(topic, is_delivery, time, time, *offsets, int(source.times[first])))


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
            own = retried[rows.topic[retried] == topic]
            for first, last in _busy_runs(rows.stored[own]):
                units = int(own[last] - own[first]) + 1
                if last - first + 1 >= STORM_SHARE * units:
                    times = rows.stored[own]
                    self._note(
                        RetryStorm(
                            topic,
                            int(times[first]),
                            int(times[last]),
                            int(rows.offset[own[first]]),
                            last - first + 1,
                            units,
                        )
                    )

    def _note(self, storm: RetryStorm) -> None:
        for earlier in reversed(self.storms[-16:]):
            if earlier.topic == storm.topic and 0 <= storm.start - earlier.end <= RUN_MS:
                earlier.end, earlier.count = storm.end, earlier.count + storm.count
                earlier.units += storm.units
                return
        self.storms.append(storm)


def _busy_runs(times: Ints) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of the runs in which each minute has enough retries."""
    ordered = np.maximum.accumulate(times)
    earliest = np.searchsorted(ordered, ordered - RUN_MS)
    busy = np.flatnonzero(np.arange(len(ordered)) - earliest + 1 >= STORM_RETRIES)
    if not len(busy):
        return
    edges = np.flatnonzero(ordered[busy[1:]] - ordered[busy[:-1]] > RUN_MS)
    for begin, stop in zip([0, *(edges + 1).tolist()], [*edges.tolist(), len(busy) - 1], strict=True):
        yield int(earliest[busy[begin]]), int(busy[stop])
