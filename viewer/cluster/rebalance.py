"""Rebalance as successive readings show it: owners of each queue over time, steps, and their impact. No Qt.

A reading is a moment. Changes happen between two readings, so each duration has a lower and an upper bound. Offsets
are committed ones: clients commit every 5 s by default. Values that administrators' requests cannot tell
(duplicates) are None, never 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engine.cluster.state import ClusterState, Queue

Owners = tuple[str, ...]
Ints = NDArray[np.int64]
SETTLED_MS = 4_000
"""Ms without a change after which an allocation counts as final."""
STEP_TIMEOUT_MS = 45_000
"""Ms that a queue without an owner keeps a step open: a client checks its allocation every 20 s."""
RATE_WINDOW_MS = 10_000
"""Ms over which a rate is computed: commits come every 5 s."""
BURST_WINDOW_MS = 60_000
"""Ms after a step in which a burst is searched."""
MIN_BREAK_MS = 5_000
"""Minimum ms without a reading that count as a break: nothing is known about them."""
MAX_MOMENTS = 3_600


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group at one reading: clients, owners of each queue, committed and max offsets (−1: unknown)."""

    time_ms: int
    clients: tuple[str, ...]
    queues: tuple[Queue, ...]
    owners: tuple[Owners, ...]
    offsets: Ints
    ends: Ints
    is_complete: bool
    """True if every client reported what it owns."""


def moment_of(
    state: ClusterState, name: str, queues: Sequence[Queue], previous: GroupState | None
) -> GroupState | None:
    """Return the group at a reading; None if it does not consume then. Parts equal to ``previous`` are shared with
    it.
    """
    group = state.groups.get(name)
    if group is None:
        return None
    owned: dict[Queue, list[str]] = {}
    for client_id, client_queues in group.owned.items():
        for queue in client_queues:
            owned.setdefault(queue, []).append(client_id)
    committed, ends = state.offsets(name), state.queues
    moment = GroupState(
        state.time_ms,
        tuple(client.client_id for client in group.clients),
        tuple(queues),
        tuple(tuple(sorted(owned.get(queue, ()))) for queue in queues),
        np.array([committed.get(queue, -1) for queue in queues], np.int64),
        np.array([ends[queue].max_offset if queue in ends else -1 for queue in queues], np.int64),
        group.has_all_answers,
    )
    if previous is None:
        return moment
    return replace(
        moment,
        clients=previous.clients if previous.clients == moment.clients else moment.clients,
        queues=previous.queues if previous.queues == moment.queues else moment.queues,
        owners=previous.owners if previous.owners == moment.owners else moment.owners,
    )


@dataclass(frozen=True, slots=True)
class OwnerInterval:
    """A part of a queue's lane: owners, ms from and to; ``is_known`` is False if a client did not report."""

    begin: int
    end: int
    owners: Owners
    is_known: bool


@dataclass(frozen=True, slots=True)
class OwnershipInterval:
    """A part of a client's lane: the queues it owned; None if it did not report or was absent."""

    begin: int
    end: int
    queues: tuple[Queue, ...] | None
    is_present: bool = True


@dataclass(frozen=True, slots=True)
class DurationBounds:
    """A duration in ms between two bounds."""

    min_ms: int
    max_ms: int


@dataclass(frozen=True, slots=True)
class Burst:
    """Messages a second of a queue before a step, and the maximum after it."""

    rate_before: float
    rate_after: float

    @property
    def factor(self) -> float:
        return self.rate_after / self.rate_before


@dataclass(frozen=True, slots=True)
class AllocationStep:
    """A change of allocation: owners before and after by queue, clients that joined and left, its impact.

    ``begin`` is the last reading before, ``end`` the first with the new allocation.
    """

    number: int
    begin: int
    end: int
    owners_before: dict[Queue, Owners]
    owners_after: dict[Queue, Owners]
    clients_before: tuple[str, ...]
    clients: tuple[str, ...]
    pauses: dict[Queue, DurationBounds] = field(default_factory=dict)
    """Queues without an owner, and for how long."""
    doubles: dict[Queue, DurationBounds] = field(default_factory=dict)
    """Queues with two owners, and for how long."""
    bursts: dict[Queue, Burst] = field(default_factory=dict)
    """Queues with a higher rate afterwards."""
    went_back: int = 0
    """Number of messages by which committed offsets fell: these are read again."""
    is_complete: bool = True
    """True if every client reported what it owned at the end."""

    @property
    def joined(self) -> tuple[str, ...]:
        return tuple(client for client in self.clients if client not in self.clients_before)

    @property
    def departed(self) -> tuple[str, ...]:
        return tuple(client for client in self.clients_before if client not in self.clients)

    @property
    def moved(self) -> int:
        """Number of queues with a different owner."""
        return sum(self.owners_before.get(queue, ()) != owners for queue, owners in self.owners_after.items())

    @property
    def idle_before(self) -> int:
        return _idle(self.clients_before, self.owners_before)

    @property
    def idle(self) -> int:
        """Number of clients that own nothing afterwards."""
        return _idle(self.clients, self.owners_after)

    @property
    def worst_pause(self) -> tuple[Queue, DurationBounds] | None:
        """Queue that had no owner for the longest time."""
        return max(self.pauses.items(), key=lambda item: item[1].max_ms, default=None)

    @property
    def worst_burst(self) -> tuple[Queue, Burst] | None:
        """Queue with the largest increase in rate."""
        return max(self.bursts.items(), key=lambda item: item[1].factor, default=None)


def _idle(clients: Sequence[str], owners: dict[Queue, Owners]) -> int:
    busy = {client for owners_of_queue in owners.values() for client in owners_of_queue}
    return sum(client not in busy for client in clients)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A group over all readings."""

    group: str = ""
    moments: tuple[GroupState, ...] = ()
    queues: tuple[Queue, ...] = ()
    clients: tuple[str, ...] = ()
    """In the order in which they joined."""
    lanes: dict[str, tuple[OwnershipInterval, ...]] = field(default_factory=dict)
    pieces: dict[Queue, tuple[OwnerInterval, ...]] = field(default_factory=dict)
    steps: tuple[AllocationStep, ...] = ()
    breaks: tuple[tuple[int, int], ...] = ()
    """Time ranges without a reading."""
    rates: dict[str, tuple[Ints, NDArray[np.float64]]] = field(default_factory=dict)
    """Messages a second of each client: times and values."""

    @property
    def begin(self) -> int:
        return self.moments[0].time_ms if self.moments else 0

    @property
    def end(self) -> int:
        return self.moments[-1].time_ms if self.moments else 0


def timeline(group: str, moments: Sequence[GroupState]) -> Timeline:
    """Build the timeline of one group from its moments."""
    if not moments:
        return Timeline(group)
    queues = tuple(sorted({queue for queues in _distinct([item.queues for item in moments]) for queue in queues}))
    clients = tuple(
        dict.fromkeys(item for clients in _distinct([item.clients for item in moments]) for item in clients)
    )
    breaks = tuple(_breaks(moments))
    offsets = _offset_table(moments, queues)
    segments = _segments(moments, breaks)
    times = np.array([item.time_ms for item in moments], np.int64)
    return Timeline(
        group,
        tuple(moments),
        queues,
        clients,
        {item: tuple(_ownership_intervals(segments, item)) for item in clients},
        {queue: tuple(_owner_intervals(segments, queue)) for queue in queues},
        tuple(_steps(moments, queues, offsets, times)),
        breaks,
        _rates(times, segments, queues, clients, offsets),
    )


def _distinct(values: Sequence[tuple[object, ...]]) -> Iterator[tuple]:  # type: ignore[type-arg]
    """Yield the values that are not the same object as the previous one."""
    previous: object = None
    for value in values:
        if value is not previous:
            previous = value
            yield value


def _breaks(moments: Sequence[GroupState]) -> Iterator[tuple[int, int]]:
    steps = np.diff([moment.time_ms for moment in moments])
    median_ms = float(np.median(steps)) if steps.size else 0.0
    for number, step in enumerate(steps.tolist()):
        if step > max(3 * median_ms, MIN_BREAK_MS):
            yield moments[number].time_ms, moments[number + 1].time_ms


def _offset_table(moments: Sequence[GroupState], queues: tuple[Queue, ...]) -> Ints:
    """Return the committed offsets: a row for each moment, a column for each queue; −1 if unknown."""
    places = {queue: number for number, queue in enumerate(queues)}
    table = np.full((len(moments), len(queues)), -1, np.int64)
    last_queues: object = None
    columns = np.zeros(0, np.int64)
    for number, moment in enumerate(moments):
        if moment.queues is not last_queues:
            last_queues, columns = moment.queues, np.array([places[queue] for queue in moment.queues], np.int64)
        table[number, columns] = moment.offsets
    return table


# Readings with the same owners and clients are one segment; lanes join the segments in which their own part is equal.
# A reading is valid until the next one. A time range without readings belongs to no segment and is drawn empty.
#
#     reading       r0   r1   r2   r3   r4           r5   r6
#     queue 0       A    A    –    B    B     none   B    B
#     queue 1       A    A    B    B    B            B    B
#     segments      ├─ 1 ─────┼ 2 ─┼ 3 ─┤            ├ 4 ─┤
#     lane queue 0  ├─ A ─────┼ – ─┼ B ─┤            ├ B ─┤
#     lane queue 1  ├─ A ─────┼─ B ─────┤            ├ B ─┤
#     step               ├─────────┤
#
# The step lasts from r1, the last reading before the first change, to r3: r2 and r3 are one step because a change
# follows soon, and longer than usual is waited while a queue has no owner. Queue 0 was without an owner at r2 only, so
# its pause took at least 0 ms (from r2 to r2) and at most r3 − r1.


@dataclass(frozen=True, slots=True)
class _Segment:
    """Successive readings with equal owners and clients: numbers of the first one and after the last one."""

    begin: int
    end: int
    start_index: int
    stop_index: int
    moment: GroupState


def _segments(moments: Sequence[GroupState], breaks: Sequence[tuple[int, int]]) -> list[_Segment]:
    """Return all segments in order. A reading is valid until the next one, but not across a break."""
    ends = {begin for begin, _ in breaks}
    bounds = [0]
    for number in range(1, len(moments)):
        moment, previous = moments[number], moments[number - 1]
        if (
            previous.time_ms in ends
            or moment.is_complete != previous.is_complete
            or not _is_same_allocation(previous, moment)
        ):
            bounds.append(number)
    segments = []
    for start, stop in itertools.pairwise([*bounds, len(moments)]):
        last_moment = moments[stop - 1]
        end = last_moment.time_ms if stop == len(moments) or last_moment.time_ms in ends else moments[stop].time_ms
        segments.append(_Segment(moments[start].time_ms, end, start, stop, moments[start]))
    return segments


def _owner_intervals(segments: Sequence[_Segment], queue: Queue) -> Iterator[OwnerInterval]:
    open_interval: OwnerInterval | None = None
    for segment in segments:
        moment = segment.moment
        index = moment.queues.index(queue) if queue in moment.queues else None
        owners, is_known = (moment.owners[index], moment.is_complete) if index is not None else ((), False)
        is_known = is_known or bool(owners)
        if (
            open_interval is not None
            and open_interval.end == segment.begin
            and open_interval.owners == owners
            and open_interval.is_known == is_known
        ):
            open_interval = replace(open_interval, end=segment.end)
            continue
        if open_interval is not None:
            yield open_interval
        open_interval = OwnerInterval(segment.begin, segment.end, owners, is_known)
    if open_interval is not None:
        yield open_interval


def _ownership_intervals(segments: Sequence[_Segment], client: str) -> Iterator[OwnershipInterval]:
    open_interval: OwnershipInterval | None = None
    for segment in segments:
        moment = segment.moment
        is_present = client in moment.clients
        owned = tuple(queue for queue, owners in zip(moment.queues, moment.owners, strict=True) if client in owners)
        queues = owned if is_present and (owned or moment.is_complete) else None
        if open_interval is None and not is_present:
            continue
        if (
            open_interval is not None
            and open_interval.end == segment.begin
            and open_interval.queues == queues
            and open_interval.is_present == is_present
        ):
            open_interval = replace(open_interval, end=segment.end)
            continue
        if open_interval is not None:
            yield open_interval
        open_interval = OwnershipInterval(segment.begin, segment.end, queues, is_present)
    if open_interval is not None:
        yield open_interval


def _rates(
    times: Ints, segments: Sequence[_Segment], queues: tuple[Queue, ...], clients: tuple[str, ...], offsets: Ints
) -> dict[str, tuple[Ints, NDArray[np.float64]]]:
    """Return for each client the rate of the queues it owned, over the preceding seconds."""
    if len(times) < 2:
        return {}
    window_start = np.searchsorted(times, times - RATE_WINDOW_MS)
    window_start = np.minimum(window_start, np.arange(len(times)) - 1).clip(0)
    has_offsets = (offsets >= 0) & (offsets[window_start] >= 0)
    seconds = np.maximum(times - times[window_start], 1)[:, None] / 1000
    speed = np.where(has_offsets, np.maximum(offsets - offsets[window_start], 0) / seconds, 0.0)
    rates_by_client = {client: np.zeros(len(times), np.float64) for client in clients}
    places = {queue: number for number, queue in enumerate(queues)}
    for segment in segments:
        rows = slice(segment.start_index, segment.stop_index)
        for queue, owners in zip(segment.moment.queues, segment.moment.owners, strict=True):
            for owner in owners:
                if owner in rates_by_client:
                    rates_by_client[owner][rows] += speed[rows, places[queue]]
    return {client: (times, rates) for client, rates in rates_by_client.items()}


# ---- steps and their impact ----------------------------------------------------------------------------------------


def _steps(
    moments: Sequence[GroupState], queues: tuple[Queue, ...], offsets: Ints, times: Ints
) -> Iterator[AllocationStep]:
    bounds = list(_changes(moments))
    for number, (start, stop) in enumerate(bounds):
        last_index = bounds[number + 1][0] - 1 if number + 1 < len(bounds) else len(moments) - 1
        previous = moments[start - 1] if start else None
        current = moments[stop]
        yield AllocationStep(
            number + 1,
            previous.time_ms if previous is not None else current.time_ms,
            current.time_ms,
            dict(zip(previous.queues, previous.owners, strict=True)) if previous is not None else {},
            dict(zip(current.queues, current.owners, strict=True)),
            previous.clients if previous is not None else (),
            current.clients,
            dict(_spans(moments, start, stop, queues, lambda owners, is_complete: is_complete and not owners))
            if start
            else {},
            dict(_spans(moments, start, stop, queues, lambda owners, _told: len(owners) > 1)) if start else {},
            dict(_bursts(times, queues, offsets, start - 1, stop, last_index)) if start else {},
            _offset_rollback(offsets, max(start - 1, 0), last_index),
            current.is_complete,
        )


def _changes(moments: Sequence[GroupState]) -> Iterator[tuple[int, int]]:
    """Yield the start and the final moment of each step; the first step is the initial allocation."""
    yield 0, 0
    number = 1
    while number < len(moments):
        if _is_same_allocation(moments[number - 1], moments[number]):
            number += 1
            continue
        start = stop = number
        clients_before = set(moments[start - 1].clients)
        while stop + 1 < len(moments):
            next_change = stop + 1
            while next_change < len(moments) and _is_same_allocation(moments[stop], moments[next_change]):
                next_change += 1
            if next_change == len(moments):
                break
            has_orphans = moments[stop].is_complete and any(not owners for owners in moments[stop].owners)
            timeout_ms = STEP_TIMEOUT_MS if has_orphans else SETTLED_MS
            if (
                moments[next_change].time_ms - moments[stop].time_ms > timeout_ms
                or moments[next_change].time_ms - moments[start].time_ms > STEP_TIMEOUT_MS
                or _reverts_membership(clients_before, set(moments[stop].clients), set(moments[next_change].clients))
            ):
                break
            stop = next_change
        yield start, stop
        number = stop + 1


def _reverts_membership(before: set[str], current: set[str], following: set[str]) -> bool:
    """Return True if a client that joined in a step leaves again, or one that left comes back: in one step nobody would
    have joined or left.
    """
    return bool((current - before) - following) or bool((before - current) & following)


def _is_same_allocation(moment: GroupState, other_moment: GroupState) -> bool:
    """Compare owners, clients and queues; fast if the parts are shared, as in successive readings."""
    return (
        (moment.owners is other_moment.owners or moment.owners == other_moment.owners)
        and (moment.clients is other_moment.clients or moment.clients == other_moment.clients)
        and (moment.queues is other_moment.queues or moment.queues == other_moment.queues)
    )


def _spans(
    moments: Sequence[GroupState], start: int, stop: int, queues: tuple[Queue, ...], condition: object
) -> Iterator[tuple[Queue, DurationBounds]]:
    """Yield the queues for which a condition held during a step, with its duration.

    The lower bound lies between two readings that meet the condition, the upper bound between the readings around
    them.
    """
    for queue in queues:
        min_ms = max_ms = 0
        begin_number: int | None = None
        for number in range(start, len(moments)):
            moment = moments[number]
            index = moment.queues.index(queue) if queue in moment.queues else None
            condition_holds = index is not None and condition(moment.owners[index], moment.is_complete)  # type: ignore[operator]
            if condition_holds and begin_number is None and number <= stop:
                begin_number = number
            if begin_number is not None and (not condition_holds or number == len(moments) - 1):
                min_ms += moments[number - 1 if not condition_holds else number].time_ms - moments[begin_number].time_ms
                max_ms += moment.time_ms - moments[begin_number - 1].time_ms
                begin_number = None
            if number > stop and begin_number is None:
                break
        if max_ms:
            yield queue, DurationBounds(min_ms, max_ms)


def _bursts(
    times: Ints, queues: tuple[Queue, ...], offsets: Ints, before_index: int, stop_index: int, last_index: int
) -> Iterator[tuple[Queue, Burst]]:
    begin = int(np.searchsorted(times, times[before_index] - RATE_WINDOW_MS))
    end = min(int(np.searchsorted(times, times[stop_index] + BURST_WINDOW_MS, "right")) - 1, last_index)
    if times[before_index] - times[begin] < RATE_WINDOW_MS // 2 or times[end] - times[stop_index] < RATE_WINDOW_MS // 2:
        return
    end_indexes = np.arange(stop_index, end + 1)
    begin_indexes = np.maximum(np.searchsorted(times, times[end_indexes] - RATE_WINDOW_MS // 2), stop_index)
    window_ms = times[end_indexes] - times[begin_indexes]
    end_indexes, begin_indexes = (
        end_indexes[window_ms >= RATE_WINDOW_MS // 2 - 1000],
        begin_indexes[window_ms >= RATE_WINDOW_MS // 2 - 1000],
    )
    rates_before = (offsets[before_index] - offsets[begin]) / (times[before_index] - times[begin]) * 1000
    max_rates = (
        (offsets[end_indexes] - offsets[begin_indexes]) / (times[end_indexes] - times[begin_indexes])[:, None] * 1000
    ).max(0, initial=0.0)
    for number in np.nonzero((offsets[begin] >= 0) & (rates_before > 0) & (max_rates > rates_before))[0].tolist():
        yield queues[number], Burst(float(rates_before[number]), float(max_rates[number]))


def _offset_rollback(offsets: Ints, start: int, stop: int) -> int:
    window = offsets[start : stop + 1]
    if len(window) < 2:
        return 0
    has_both = (window[1:] >= 0) & (window[:-1] >= 0)
    return int(np.where(has_both, np.maximum(window[:-1] - window[1:], 0), 0).sum())
