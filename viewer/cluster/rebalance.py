"""Rebalance as successive readings tell it: who owned which queue when, each allocation a step, and its harms. No Qt.

A reading is a moment; what happened lies between two of them, so every length has a bound below and above. Offsets are
those that the group committed: clients do that every 5 s by default. What administrators' requests cannot tell (what
was handed out twice) is None, never 0.
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
SETTLED = 4_000
"""Ms without a change after which an allocation stands."""
LONGEST_STEP = 45_000
"""Ms that a queue without owner keeps a step open: a client looks every 20 s whether it owns what it should."""
RATE_OVER = 10_000
"""Ms over which a rate is taken: commits come every 5 s."""
AFTER = 60_000
"""Ms after a step in which a burst is looked for."""
FEWEST_GAP = 5_000
"""Ms without a reading, at least, that are a break: nothing is said of them."""
MOST_MOMENTS = 3_600


@dataclass(frozen=True, slots=True)
class Moment:
    """A group at one reading: who was there, who owned each queue, committed and max offsets (−1: not told)."""

    at: int
    clients: tuple[str, ...]
    queues: tuple[Queue, ...]
    owners: tuple[Owners, ...]
    offsets: Ints
    ends: Ints
    told: bool
    """Whether every client said what it owns."""


def moment_of(state: ClusterState, name: str, queues: Sequence[Queue], before: Moment | None) -> Moment | None:
    """The group at a reading; None where it does not consume then. Parts that are as ``before`` are shared with it."""
    group = state.groups.get(name)
    if group is None:
        return None
    owned: dict[Queue, list[str]] = {}
    for client_id, mine in group.owned.items():
        for queue in mine:
            owned.setdefault(queue, []).append(client_id)
    committed, ends = state.offsets(name), state.queues
    made = Moment(
        state.at,
        tuple(one.client_id for one in group.clients),
        tuple(queues),
        tuple(tuple(sorted(owned.get(queue, ()))) for queue in queues),
        np.array([committed.get(queue, -1) for queue in queues], np.int64),
        np.array([ends[queue].max_offset if queue in ends else -1 for queue in queues], np.int64),
        group.asked_all,
    )
    if before is None:
        return made
    return replace(
        made,
        clients=before.clients if before.clients == made.clients else made.clients,
        queues=before.queues if before.queues == made.queues else made.queues,
        owners=before.owners if before.owners == made.owners else made.owners,
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a queue's lane: who owned it, ms from and to; ``known`` False where somebody did not tell."""

    begin: int
    end: int
    owners: Owners
    known: bool


@dataclass(frozen=True, slots=True)
class Stay:
    """A stretch of a client's lane: the queues that it owned; None for one that did not tell or was not there."""

    begin: int
    end: int
    queues: tuple[Queue, ...] | None
    there: bool = True


@dataclass(frozen=True, slots=True)
class Span:
    """A length in ms that lies between two bounds."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Burst:
    """Messages a second of a queue before a step and at most after it."""

    before: float
    after: float

    @property
    def factor(self) -> float:
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Step:
    """An allocation that became another: owners before and after by queue, who came and left, the harm it did.

    ``begin`` is the last reading before, ``end`` the first at which the new allocation stood.
    """

    number: int
    begin: int
    end: int
    before: dict[Queue, Owners]
    after: dict[Queue, Owners]
    clients_before: tuple[str, ...]
    clients: tuple[str, ...]
    pauses: dict[Queue, Span] = field(default_factory=dict)
    """Queues that nobody owned, and how long."""
    doubles: dict[Queue, Span] = field(default_factory=dict)
    """Queues that two owned at once, and how long."""
    bursts: dict[Queue, Burst] = field(default_factory=dict)
    """Queues that went faster afterwards."""
    went_back: int = 0
    """Messages by which committed offsets fell: these are read again."""
    told: bool = True
    """Whether every client said what it owned when it stood."""

    @property
    def came(self) -> tuple[str, ...]:
        return tuple(one for one in self.clients if one not in self.clients_before)

    @property
    def left(self) -> tuple[str, ...]:
        return tuple(one for one in self.clients_before if one not in self.clients)

    @property
    def moved(self) -> int:
        """Queues that have another owner than before."""
        return sum(self.before.get(queue, ()) != owners for queue, owners in self.after.items())

    @property
    def idle_before(self) -> int:
        return _idle(self.clients_before, self.before)

    @property
    def idle(self) -> int:
        """Clients that own nothing now."""
        return _idle(self.clients, self.after)

    @property
    def worst_pause(self) -> tuple[Queue, Span] | None:
        """The queue that nobody owned longest."""
        return max(self.pauses.items(), key=lambda one: one[1].high, default=None)

    @property
    def worst_burst(self) -> tuple[Queue, Burst] | None:
        """The queue that went fastest beside what it did before."""
        return max(self.bursts.items(), key=lambda one: one[1].factor, default=None)


def _idle(clients: Sequence[str], owners: dict[Queue, Owners]) -> int:
    busy = {one for mine in owners.values() for one in mine}
    return sum(one not in busy for one in clients)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A group over all the time that was read."""

    group: str = ""
    moments: tuple[Moment, ...] = ()
    queues: tuple[Queue, ...] = ()
    clients: tuple[str, ...] = ()
    """In the order in which they came."""
    lanes: dict[str, tuple[Stay, ...]] = field(default_factory=dict)
    pieces: dict[Queue, tuple[Piece, ...]] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    breaks: tuple[tuple[int, int], ...] = ()
    """Stretches without a reading."""
    rates: dict[str, tuple[Ints, NDArray[np.float64]]] = field(default_factory=dict)
    """Of each client, messages a second: times and values."""

    @property
    def begin(self) -> int:
        return self.moments[0].at if self.moments else 0

    @property
    def end(self) -> int:
        return self.moments[-1].at if self.moments else 0


def timeline(group: str, moments: Sequence[Moment]) -> Timeline:
    """What the moments of one group tell."""
    if not moments:
        return Timeline(group)
    queues = tuple(sorted({queue for queues in _each([one.queues for one in moments]) for queue in queues}))
    clients = tuple(dict.fromkeys(one for clients in _each([one.clients for one in moments]) for one in clients))
    breaks = tuple(_breaks(moments))
    offsets = _table(moments, queues)
    segments = _segments(moments, breaks)
    at = np.array([one.at for one in moments], np.int64)
    return Timeline(
        group,
        tuple(moments),
        queues,
        clients,
        {one: tuple(_stays(segments, one)) for one in clients},
        {queue: tuple(_pieces(segments, queue)) for queue in queues},
        tuple(_steps(moments, queues, offsets, at)),
        breaks,
        _rates(at, segments, queues, clients, offsets),
    )


def _each(values: Sequence[tuple[object, ...]]) -> Iterator[tuple]:  # type: ignore[type-arg]
    """Those that are not the same object as the one before."""
    last: object = None
    for value in values:
        if value is not last:
            last = value
            yield value


def _breaks(moments: Sequence[Moment]) -> Iterator[tuple[int, int]]:
    steps = np.diff([one.at for one in moments])
    usual = float(np.median(steps)) if steps.size else 0.0
    for number, step in enumerate(steps.tolist()):
        if step > max(3 * usual, FEWEST_GAP):
            yield moments[number].at, moments[number + 1].at


def _table(moments: Sequence[Moment], queues: tuple[Queue, ...]) -> Ints:
    """Committed offsets: a row a moment, a column a queue; −1 where nobody told."""
    places = {queue: number for number, queue in enumerate(queues)}
    table = np.full((len(moments), len(queues)), -1, np.int64)
    last: object = None
    at = np.zeros(0, np.int64)
    for number, one in enumerate(moments):
        if one.queues is not last:
            last, at = one.queues, np.array([places[queue] for queue in one.queues], np.int64)
        table[number, at] = one.offsets
    return table


@dataclass(frozen=True, slots=True)
class _Segment:
    """Readings after each other at which owners and clients were the same: numbers of the first and behind the last."""

    begin: int
    end: int
    first: int
    behind: int
    moment: Moment


def _segments(moments: Sequence[Moment], breaks: Sequence[tuple[int, int]]) -> list[_Segment]:
    """All of them, in order. A reading holds until the next one; over a break it does not."""
    ends = {begin for begin, _ in breaks}
    bounds = [0]
    for number in range(1, len(moments)):
        one, before = moments[number], moments[number - 1]
        if before.at in ends or one.told != before.told or not _same(before, one):
            bounds.append(number)
    found = []
    for first, behind in itertools.pairwise([*bounds, len(moments)]):
        last = moments[behind - 1]
        end = last.at if behind == len(moments) or last.at in ends else moments[behind].at
        found.append(_Segment(moments[first].at, end, first, behind, moments[first]))
    return found


def _pieces(segments: Sequence[_Segment], queue: Queue) -> Iterator[Piece]:
    held: Piece | None = None
    for part in segments:
        one = part.moment
        at = one.queues.index(queue) if queue in one.queues else None
        owners, known = (one.owners[at], one.told) if at is not None else ((), False)
        known = known or bool(owners)
        if held is not None and held.end == part.begin and held.owners == owners and held.known == known:
            held = replace(held, end=part.end)
            continue
        if held is not None:
            yield held
        held = Piece(part.begin, part.end, owners, known)
    if held is not None:
        yield held


def _stays(segments: Sequence[_Segment], client: str) -> Iterator[Stay]:
    held: Stay | None = None
    for part in segments:
        one = part.moment
        there = client in one.clients
        mine = tuple(queue for queue, owners in zip(one.queues, one.owners, strict=True) if client in owners)
        queues = mine if there and (mine or one.told) else None
        if held is None and not there:
            continue
        if held is not None and held.end == part.begin and held.queues == queues and held.there == there:
            held = replace(held, end=part.end)
            continue
        if held is not None:
            yield held
        held = Stay(part.begin, part.end, queues, there)
    if held is not None:
        yield held


def _rates(
    at: Ints, segments: Sequence[_Segment], queues: tuple[Queue, ...], clients: tuple[str, ...], offsets: Ints
) -> dict[str, tuple[Ints, NDArray[np.float64]]]:
    """Of each client what the queues that it owned went on by, over the seconds before."""
    if len(at) < 2:
        return {}
    first = np.searchsorted(at, at - RATE_OVER)
    first = np.minimum(first, np.arange(len(at)) - 1).clip(0)
    known = (offsets >= 0) & (offsets[first] >= 0)
    seconds = np.maximum(at - at[first], 1)[:, None] / 1000
    speed = np.where(known, np.maximum(offsets - offsets[first], 0) / seconds, 0.0)
    found = {one: np.zeros(len(at), np.float64) for one in clients}
    places = {queue: number for number, queue in enumerate(queues)}
    for part in segments:
        rows = slice(part.first, part.behind)
        for queue, owners in zip(part.moment.queues, part.moment.owners, strict=True):
            for owner in owners:
                if owner in found:
                    found[owner][rows] += speed[rows, places[queue]]
    return {one: (at, rates) for one, rates in found.items()}


# ---- steps and their harm --------------------------------------------------------------------------------------------


def _steps(moments: Sequence[Moment], queues: tuple[Queue, ...], offsets: Ints, at: Ints) -> Iterator[Step]:
    bounds = list(_changes(moments))
    for number, (first, last) in enumerate(bounds):
        until = bounds[number + 1][0] - 1 if number + 1 < len(bounds) else len(moments) - 1
        before = moments[first - 1] if first else None
        now = moments[last]
        yield Step(
            number + 1,
            before.at if before is not None else now.at,
            now.at,
            dict(zip(before.queues, before.owners, strict=True)) if before is not None else {},
            dict(zip(now.queues, now.owners, strict=True)),
            before.clients if before is not None else (),
            now.clients,
            dict(_spans(moments, first, last, queues, lambda owners, told: told and not owners)) if first else {},
            dict(_spans(moments, first, last, queues, lambda owners, _told: len(owners) > 1)) if first else {},
            dict(_bursts(at, queues, offsets, first - 1, last, until)) if first else {},
            _went_back(offsets, max(first - 1, 0), until),
            now.told,
        )


def _changes(moments: Sequence[Moment]) -> Iterator[tuple[int, int]]:
    """(first moment that is another, moment from which it stands) of each step; the first is how it was found."""
    yield 0, 0
    number = 1
    while number < len(moments):
        if _same(moments[number - 1], moments[number]):
            number += 1
            continue
        first = last = number
        while last + 1 < len(moments):
            ahead = last + 1
            while ahead < len(moments) and _same(moments[last], moments[ahead]):
                ahead += 1
            if ahead == len(moments):
                break
            waits = moments[last].told and any(not owners for owners in moments[last].owners)
            room = LONGEST_STEP if waits else SETTLED
            if moments[ahead].at - moments[last].at > room or moments[ahead].at - moments[first].at > LONGEST_STEP:
                break
            last = ahead
        yield first, last
        number = last + 1


def _same(one: Moment, other: Moment) -> bool:
    """Quickly where they share their parts, as readings after each other do."""
    return (
        (one.owners is other.owners or one.owners == other.owners)
        and (one.clients is other.clients or one.clients == other.clients)
        and (one.queues is other.queues or one.queues == other.queues)
    )


def _spans(
    moments: Sequence[Moment], first: int, last: int, queues: tuple[Queue, ...], is_so: object
) -> Iterator[tuple[Queue, Span]]:
    """Queues of which something was so during a step: at least between two readings at which it was, at most between
    those around them at which it was not.
    """
    for queue in queues:
        low = high = 0
        begun: int | None = None
        for number in range(first, len(moments)):
            one = moments[number]
            at = one.queues.index(queue) if queue in one.queues else None
            so = at is not None and is_so(one.owners[at], one.told)  # type: ignore[operator]
            if so and begun is None and number <= last:
                begun = number
            if begun is not None and (not so or number == len(moments) - 1):
                low += moments[number - 1 if not so else number].at - moments[begun].at
                high += one.at - moments[begun - 1].at
                begun = None
            if number > last and begun is None:
                break
        if high:
            yield queue, Span(low, high)


def _bursts(
    at: Ints, queues: tuple[Queue, ...], offsets: Ints, before: int, last: int, until: int
) -> Iterator[tuple[Queue, Burst]]:
    begin = int(np.searchsorted(at, at[before] - RATE_OVER))
    end = min(int(np.searchsorted(at, at[last] + AFTER, "right")) - 1, until)
    if at[before] - at[begin] < RATE_OVER // 2 or at[end] - at[last] < RATE_OVER // 2:
        return
    later = np.arange(last, end + 1)
    then = np.maximum(np.searchsorted(at, at[later] - RATE_OVER // 2), last)
    wide = at[later] - at[then]
    later, then = later[wide >= RATE_OVER // 2 - 1000], then[wide >= RATE_OVER // 2 - 1000]
    usual = (offsets[before] - offsets[begin]) / (at[before] - at[begin]) * 1000
    most = ((offsets[later] - offsets[then]) / (at[later] - at[then])[:, None] * 1000).max(0, initial=0.0)
    for number in np.nonzero((offsets[begin] >= 0) & (usual > 0) & (most > usual))[0].tolist():
        yield queues[number], Burst(float(usual[number]), float(most[number]))


def _went_back(offsets: Ints, first: int, last: int) -> int:
    part = offsets[first : last + 1]
    if len(part) < 2:
        return 0
    both = (part[1:] >= 0) & (part[:-1] >= 0)
    return int(np.where(both, np.maximum(part[:-1] - part[1:], 0), 0).sum())
