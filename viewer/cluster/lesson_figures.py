"""What a lesson showed, as figures counted from what its clients told: sends, deliveries, commits, decisions. No Qt.

Nothing is told that was not measured: each function here counts in a :class:`Record`, and a test may count again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TypeVar

from engine.client.events import (
    Committed,
    Delivered,
    Event,
    QueueTaken,
    Rebalanced,
    Sent,
    SentBack,
    Started,
    Stopped,
    TransactionEnded,
)
from engine.client.messages import DEAD_LETTERS, RETRY
from engine.client.routes import MessageQueue
from viewer.cluster.clients_work import USUAL, Options
from viewer.cluster.rebalance_words import Harm
from viewer.cluster.words import UNTOLD
from viewer.look.assets import tr

GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
"""Where half messages go that nobody ended."""
_FEW = 3
"""Names that a note tells; the others are counted."""
E = TypeVar("E", bound=Event)
Names = Callable[[str], str]
"""Gives the short name of a client id."""


@dataclass
class Record:
    """What the clients of one run told, in order. ``clients``: how each was told to be, by client id; ``groups``: whose
    events are its.
    """

    group: str
    topic: str
    events: list[Event] = field(default_factory=list)
    clients: dict[str, Options] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    kept_by_brokers: int = 0
    """Offsets that brokers hold of the group."""
    closed: bool = False
    """The run has ended: what clients do as they say goodbye is none of its."""

    def take(self, events: Iterable[Event]) -> None:
        """Keep those of this run."""
        if not self.closed:
            self.events += [one for one in events if one.group in self.groups]

    def of(self, kind: type[E]) -> list[E]:
        """All events of a kind."""
        return [one for one in self.events if isinstance(one, kind)]

    @property
    def deliveries(self) -> list[Delivered]:
        """What the consumers of the lesson's own group were handed, messages that came again too."""
        return [one for one in self.of(Delivered) if one.group == self.group]

    def of_queue(self, topic: str) -> list[Delivered]:
        """What was handed out of a topic of another group's, dead letters and such, to whoever reads it."""
        mine = {one.keys for one in self.of(Sent)}
        return [one for one in self.of(Delivered) if one.queue.topic == topic and one.keys in mine]


def short(queue: MessageQueue) -> str:
    """``broker-a q2``."""
    return f"{queue.broker} q{queue.queue_id}"


def some(names: Sequence[str]) -> str:
    """The first of them, and how many more."""
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (" " + tr("and {n:,} more", n=more) if more > 0 else "")


def seconds(ms: float) -> str:
    """``0.61 s``, ``12.4 s``."""
    return f"{ms / 1000:.2f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"


def stretch(numbers: Sequence[float], words: Callable[[float], str]) -> str:
    """From the smallest to the largest, or the one that all are."""
    if not numbers:
        return UNTOLD
    low, high = words(min(numbers)), words(max(numbers))
    return low if low == high else f"{low}–{high}"


def figure(name: str, text: str, note: str, *, bad: bool = False) -> Harm:
    """One figure."""
    return Harm(name, text, note, "warn" if bad else "ok")


# ---- a kill ----------------------------------------------------------------------------------------------------------


def again_after_kill(record: Record) -> list[Harm]:
    """What came again since the kill, by key, held against what the new owners' first offsets say."""
    killed = next((one for one in record.of(Stopped) if not one.said_goodbye), None)
    if killed is None:
        return []
    places: set[tuple[MessageQueue, int]] = set()
    keys: set[str] = set()
    by_place = by_key = 0
    for one in record.deliveries:
        place = (one.queue, one.queue_offset)
        if one.at >= killed.at:
            by_place += place in places
            by_key += one.keys in keys
        places.add(place)
        keys.add(one.keys)
    note = tr("{n:,} by queue and offset, since it was killed", n=by_place)
    found = [figure(tr("Again by key"), f"{by_key:,}", note, bad=by_key > 0)]
    begun: dict[MessageQueue, int] = {}
    for taken in record.of(QueueTaken):
        if taken.at >= killed.at and taken.queue.topic == record.topic:
            begun.setdefault(taken.queue, taken.offset)
    before = {(one.queue, one.queue_offset) for one in record.deliveries if one.at < killed.at}
    ahead = sum(offset >= begun[queue] for queue, offset in before if queue in begun)
    note = tr("handed out before it behind the offsets at which the new owners began, in {n:,} queues", n=len(begun))
    return [*found, figure(tr("Not committed"), f"{ahead:,}", note, bad=ahead > 0)]


# ---- two clients disagree --------------------------------------------------------------------------------------------


def disagreement(record: Record, name_of: Names) -> list[Harm]:
    """Queues with two owners and with none, and what that does to messages."""
    last: dict[str, Rebalanced] = {}
    for one in record.of(Rebalanced):
        if one.topic == record.topic:
            last[one.client_id] = one
    owners: dict[MessageQueue, list[str]] = {queue: [] for one in last.values() for queue in one.queues}
    for one in last.values():
        for queue in one.owned:
            owners[queue].append(one.client_id)
    two = [queue for queue in sorted(owners) if len(owners[queue]) > 1]
    none = [queue for queue in sorted(owners) if not owners[queue]]
    lists = {one.client_ids for one in last.values()}
    seen = " · ".join(
        f"{name_of(who)}: {' '.join(map(name_of, one.client_ids))}, "
        f"{record.clients.get(who, USUAL).strategy} → {', '.join(map(short, one.owned)) or '–'}"
        for who, one in sorted(last.items())
    )
    by_place, by_key = _twice(record)
    lying = _lying(record, none)
    return [
        figure(
            tr("With two owners"),
            f"{len(two):,}",
            some([f"{short(queue)}: {' '.join(map(name_of, owners[queue]))}" for queue in two]) or tr("no queue"),
            bad=bool(two),
        ),
        figure(
            tr("With no owner"),
            f"{len(none):,}",
            some([short(queue) for queue in none]) or tr("no queue"),
            bad=bool(none),
        ),
        figure(
            tr("Handed out twice"), f"{by_place:,}", tr("by queue and offset; {n:,} by key", n=by_key), bad=by_place > 0
        ),
        figure(
            tr("Read by nobody"), f"{lying:,}", tr("sent to queues without owner, and never handed out"), bad=lying > 0
        ),
        figure(
            tr("Lists of clients"),
            tr("the same") if len(lists) == 1 else tr("{n:,} different", n=len(lists)),
            seen,
            bad=len(lists) > 1,
        ),
    ]


def _twice(record: Record) -> tuple[int, int]:
    """Deliveries that were not the first of their queue and offset, and of their key."""
    handed = record.deliveries
    places = {(one.queue, one.queue_offset) for one in handed}
    return len(handed) - len(places), len(handed) - len({one.keys for one in handed})


def _lying(record: Record, queues: Sequence[MessageQueue]) -> int:
    handed = {one.keys for one in record.deliveries}
    return sum(one.queue in queues and one.keys not in handed for one in record.of(Sent))


# ---- the slow queue --------------------------------------------------------------------------------------------------


def latencies(record: Record) -> list[Harm]:
    """Sends with and without ``sendLatencyFaultEnable``: how long all took, and the latency of each queue."""
    sends: dict[bool, list[Sent]] = {False: [], True: []}
    for one in record.of(Sent):
        sends[record.clients.get(one.client_id, USUAL).avoids].append(one)
    slow = _slowest(record.of(Sent))
    found = []
    for avoids, name in ((False, tr("Without avoidance")), (True, tr("With avoidance"))):
        mine = sends[avoids]
        took = mine[-1].at - mine[0].at + mine[0].ms if mine else 0.0
        there = sum(one.queue.broker == slow for one in mine)
        note = tr("{n:,} sends one after the other, {m:,} of them to {broker}", n=len(mine), m=there, broker=slow)
        found.append(figure(name, seconds(took), note, bad=2 * there >= len(mine) > 0))
    by_queue: dict[MessageQueue, dict[bool, list[float]]] = defaultdict(lambda: {False: [], True: []})
    for avoids, mine in sends.items():
        for one in mine:
            by_queue[one.queue][avoids].append(one.ms)
    for queue in sorted(by_queue):
        both = by_queue[queue]
        note = tr(
            "ms a send, half of them at most: {before} without, {after} with avoidance",
            before=_half(both[False]),
            after=_half(both[True]),
        )
        counts = f"{len(both[False]):,} → {len(both[True]):,}"
        found.append(figure(short(queue), counts, note, bad=queue.broker == slow))
    return found


def _half(ms: Sequence[float]) -> str:
    return f"{median(ms):,.1f}" if ms else UNTOLD


def _slowest(sends: Sequence[Sent]) -> str:
    """The broker of the highest median."""
    by_broker: dict[str, list[float]] = defaultdict(list)
    for one in sends:
        by_broker[one.queue.broker].append(one.ms)
    return max(by_broker, key=lambda name: median(by_broker[name]), default="")


# ---- broadcast -------------------------------------------------------------------------------------------------------


def broadcast(record: Record, name_of: Names) -> list[Harm]:
    """What each consumer got of all that was sent, and where its offsets lay while it was away."""
    sent = {one.keys for one in record.of(Sent)}
    found = [figure(tr("Sent"), f"{len(sent):,}", tr("by its keys"))]
    for client_id in sorted({one.client_id for one in record.deliveries}):
        handed = [one.keys for one in record.deliveries if one.client_id == client_id]
        got = len(set(handed) & sent)
        note = (
            tr("each once")
            if len(handed) == len(set(handed))
            else (tr("{n:,} more than once", n=len(handed) - len(set(handed))))
        )
        found.append(
            figure(
                name_of(client_id),
                tr("{n:,} of {m:,}", n=got, m=len(sent)),
                note,
                bad=got != len(sent) or len(handed) != got,
            )
        )
    returned = next((one for one, options in record.clients.items() if options.name), "")
    begun = [one.at for one in record.of(Started) if one.client_id == returned]
    if len(begun) > 1:
        at = begun[-1]
        later = [one for one in record.deliveries if one.client_id == returned and one.at >= at]
        before = {one.keys for one in record.deliveries if one.client_id == returned and one.at < at}
        again = sum(one.keys in before for one in later)
        kept = _last_commits(record, returned, at)
        note = tr(
            "{name} began again at the offsets in its file ({kept:,} in {n:,} queues); {again:,} came again",
            name=name_of(returned),
            kept=sum(kept.values()),
            n=len(kept),
            again=again,
        )
        found.append(figure(tr("After its return"), f"{len(later):,}", note, bad=again > 0))
    note = tr("offsets of the group that brokers hold: each client keeps its own")
    found.append(figure(tr("Kept by brokers"), f"{record.kept_by_brokers:,}", note, bad=record.kept_by_brokers > 0))
    return found


def _last_commits(record: Record, client_id: str, at: int) -> dict[MessageQueue, int]:
    """What stood in a client's file at a time."""
    return {one.queue: one.offset for one in record.of(Committed) if one.client_id == client_id and one.at < at}


# ---- dead letters ----------------------------------------------------------------------------------------------------


def dead_letters(record: Record) -> list[Harm]:
    """How often a message that nobody takes comes, after which delays, and where it ends."""
    handed: dict[str, list[Delivered]] = defaultdict(list)
    for one in record.deliveries:
        handed[one.keys].append(one)
    back: dict[str, list[SentBack]] = defaultdict(list)
    by_place = {(one.queue, one.queue_offset): one.keys for one in record.deliveries}
    for gone in record.of(SentBack):
        back[by_place.get((gone.queue, gone.queue_offset), "")].append(gone)
    refused = sorted(back)
    at_once = sum(len(all_) == 1 and keys not in back for keys, all_ in handed.items())
    times = [len(handed[keys]) for keys in refused]
    found = [
        figure(
            tr("Taken at once"),
            tr("{n:,} of {m:,}", n=at_once, m=len({one.keys for one in record.of(Sent)})),
            tr("handed out once each"),
        ),
        figure(
            tr("Refused"),
            f"{len(refused):,}",
            tr("each handed out {times} times", times=stretch(times, lambda n: f"{n:,.0f}")),
            bad=bool(refused),
        ),
    ]
    for number in range(1, max(times, default=0)):
        waits = [
            handed[keys][number].at - back[keys][number - 1].at
            for keys in refused
            if number < len(handed[keys]) and number <= len(back[keys])
        ]
        again = [handed[keys][number].reconsume_times for keys in refused if number < len(handed[keys])]
        note = tr(
            "level {level}, from {topic}; reconsumeTimes {n}",
            level=2 + number,
            topic=RETRY + record.group,
            n=stretch(again, lambda n: f"{n:,.0f}"),
        )
        found.append(figure(tr("Wait {n:,}", n=number), stretch(waits, seconds), note, bad=True))
    dead = record.of_queue(DEAD_LETTERS + record.group)
    again = [one.reconsume_times for one in dead]
    note = tr(
        "read from {topic}, reconsumeTimes {n}. As RocketMQ is set: 16 times, over 4 h 46 min",
        topic=DEAD_LETTERS + record.group,
        n=stretch(again, lambda n: f"{n:,.0f}"),
    )
    found.append(figure(tr("Dead letters"), f"{len({one.keys for one in dead}):,}", note, bad=bool(dead)))
    return found


# ---- a transaction that nobody finishes ------------------------------------------------------------------------------


def transactions(record: Record) -> list[Harm]:
    """Half messages, what was asked of their producer, and what became of those that nobody ended."""
    sent = {one.msg_id: one for one in record.of(Sent)}
    ended = record.of(TransactionEnded)
    committed = {one.msg_id for one in ended if one.decision == "COMMIT"}
    open_ = [msg_id for msg_id in sent if msg_id not in committed]
    checks = Counter(one.msg_id for one in ended if one.checked)
    asked: dict[str, list[int]] = defaultdict(list)
    for one in ended:
        if one.checked:
            asked[one.msg_id].append(one.at)
    between = [later - at for all_ in asked.values() for at, later in pairwise(all_)]
    keys = {sent[msg_id].keys: sent[msg_id] for msg_id in open_}
    handed = {one.keys for one in record.deliveries}
    lost = record.of_queue(GIVEN_UP)
    waits = [one.at - keys[one.keys].at for one in lost if one.keys in keys]
    times = [checks[msg_id] for msg_id in open_]
    return [
        figure(
            tr("Half messages"),
            f"{len(sent):,}",
            tr("{n:,} committed at once, {m:,} ended by nobody", n=len(sent) - len(open_), m=len(open_)),
        ),
        figure(
            tr("Handed out"),
            f"{len(handed):,}",
            tr("of those that nobody ended: {n:,}", n=len(handed & keys.keys())),
            bad=bool(handed & keys.keys()),
        ),
        figure(
            tr("Checks"),
            f"{sum(checks.values()):,}",
            tr(
                "{times} for each, {wait} apart: the producer says UNKNOWN",
                wait=stretch(between, seconds),
                times=stretch(times, lambda n: f"{n:,.0f}"),
            ),
            bad=bool(checks),
        ),
        figure(
            tr("Given up"),
            f"{len({one.keys for one in lost}):,}",
            tr(
                "after {wait}, in {topic}. As RocketMQ 5 is set: 15 checks, 30 s apart",
                wait=stretch(waits, seconds),
                topic=GIVEN_UP,
            ),
            bad=bool(lost),
        ),
    ]
