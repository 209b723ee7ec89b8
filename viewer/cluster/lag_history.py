"""The lag of each group and topic over the readings of this session, in bounded memory. No Qt.

All series share the times of the readings. A reading in which a broker of the topic did not answer is a gap: its sum is
not known. When the memory is full, each two neighbouring points become one with the larger lag, so the whole session
stays, at half the resolution.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from engine.cluster.state import ClusterState, Queue

MAX_POINTS, MIN_POINTS = 1_200, 60
"""Points of a series; fewer where there are many."""
MAX_VALUES = 600_000
"""Points of all series together, 8 bytes each."""
LATE_SHARE = 3.0
"""A pause of more intervals than this between two readings is a gap."""
UNKNOWN = math.nan
TOTAL = ("", "")
"""Key of the sum of all groups and topics."""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LagSums:
    """Sums of a group in a topic at the last reading. ``queues`` of ``queue_count`` have an offset of the group; the
    sums are those of these queues. ``lag`` is None if a broker did not answer.
    """

    group: str
    topic: str
    queues: int
    queue_count: int
    next_offsets: int
    max_offsets: int
    lag: int | None
    clients: int


class LagHistory:
    """Series of lag by group and topic; :data:`TOTAL` has their sum."""

    def __init__(self) -> None:
        self.times_ms: list[int] = []
        self.sums: dict[Key, LagSums] = {}
        self._series: dict[Key, list[float]] = {}
        self._thinned = 0
        """How often the number of points was halved."""
        self._waiting: tuple[int, dict[Key, float], int] | None = None
        """Readings that will be one point: the last time, the largest lags, how many readings."""

    @property
    def readings_a_point(self) -> int:
        """Number of readings that are one point."""
        return 1 << self._thinned

    def take(self, state: ClusterState, interval_s: float) -> None:
        """Add a reading. ``interval_s`` is the time between two readings: a longer pause is a gap."""
        self.sums = _sums(state)
        lags = {key: UNKNOWN if sums.lag is None else float(sums.lag) for key, sums in self.sums.items()}
        if lags:
            lags[TOTAL] = sum(lags.values())  # unknown if one of them is
        time_ms, count = state.time_ms, 1
        if self._waiting is not None:
            _time, before, waiting_count = self._waiting
            lags, count = _larger(before, lags), waiting_count + 1
        if count < self.readings_a_point:
            self._waiting = (time_ms, lags, count)
            return
        self._waiting = None
        if self.times_ms and time_ms - self.times_ms[-1] > LATE_SHARE * interval_s * 1000 * self.readings_a_point:
            self._append(self.times_ms[-1] + 1, {})
        self._append(time_ms, lags)
        if len(self.times_ms) > max(MIN_POINTS, min(MAX_POINTS, MAX_VALUES // max(len(self._series), 1))):
            self._thin()

    def points(self, key: Key) -> tuple[list[int], list[float]]:
        """Return times (ms) and lags; a lag that is not known is NaN."""
        return self.times_ms, self._series.get(key, [UNKNOWN] * len(self.times_ms))

    def largest(self, key: Key) -> int | None:
        """Return the largest lag that was read; None if none was."""
        waiting = self._waiting[1].get(key, UNKNOWN) if self._waiting is not None else UNKNOWN
        known = [value for value in (*self._series.get(key, ()), waiting) if not math.isnan(value)]
        return int(max(known)) if known else None

    def rows(self) -> Iterator[tuple[int, str, str, int | None]]:
        """Yield time (ms), group, topic and lag of each point, by group and topic."""
        for key in sorted(self._series.keys() - {TOTAL}):
            for time_ms, lag in zip(self.times_ms, self._series[key], strict=True):
                yield time_ms, *key, None if math.isnan(lag) else int(lag)

    def _append(self, time_ms: int, lags: dict[Key, float]) -> None:
        for key in lags:
            if key not in self._series:
                self._series[key] = [UNKNOWN] * len(self.times_ms)
        self.times_ms.append(time_ms)
        for key, series in self._series.items():
            series.append(lags.get(key, UNKNOWN))

    def _thin(self) -> None:
        """Make one point of each two; of an odd number the last one stays as it is."""
        self._thinned += 1
        self.times_ms = [*self.times_ms[1::2], *self.times_ms[len(self.times_ms) // 2 * 2 :]]
        for key, series in self._series.items():
            pairs = zip(series[::2], series[1::2], strict=False)
            self._series[key] = [*map(_larger_of, pairs), *series[len(series) // 2 * 2 :]]


def _larger_of(pair: tuple[float, float]) -> float:
    return UNKNOWN if math.isnan(pair[0]) or math.isnan(pair[1]) else max(pair)


def _larger(before: dict[Key, float], lags: dict[Key, float]) -> dict[Key, float]:
    return {
        key: _larger_of((before[key], lags[key])) if key in before and key in lags else UNKNOWN
        for key in before.keys() | lags.keys()
    }


def _sums(state: ClusterState) -> dict[Key, LagSums]:
    silent = {part.name for part in state.masters if part.words or not part.time_ms}
    by_topic: dict[str, list[Queue]] = defaultdict(list)
    for queue in state.queues:
        by_topic[queue.topic].append(queue)
    offsets: dict[Key, dict[Queue, int]] = defaultdict(dict)
    for part in state.masters:
        for group, table in part.offsets.items():
            for queue, offset in table.items():
                offsets[group, queue.topic][queue] = offset
    sums = {}
    for (group, topic), table in sorted(offsets.items()):
        queues = by_topic.get(topic)
        if queues is None:
            continue  # the topic is deleted
        known = [queue for queue in queues if table.get(queue, -1) >= 0]
        lag = sum(max(state.queues[queue].max_offset - table[queue], 0) for queue in known)
        is_known = not any(queue.broker in silent for queue in queues)
        state_group = state.groups.get(group)
        sums[group, topic] = LagSums(
            group,
            topic,
            len(known),
            len(queues),
            sum(table[queue] for queue in known),
            sum(state.queues[queue].max_offset for queue in known),
            lag if is_known else None,
            len(state_group.clients) if state_group is not None else 0,
        )
    return sums
