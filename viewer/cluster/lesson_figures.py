"""Figures of a lesson, counted from the events of its clients: sends, deliveries, commits, decisions. No Qt.

Every figure is measured: each function counts in a :class:`Record`, and a test can count again.
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
    QueueAcquired,
    Rebalanced,
    Sent,
    SentBack,
    Started,
    Stopped,
    TransactionEnded,
)
from engine.client.routes import MessageQueue
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX
from viewer.cluster.clients_process import DEFAULT_OPTIONS, Options
from viewer.cluster.rebalance_words import Impact
from viewer.cluster.words import UNKNOWN
from viewer.look.assets import tr, tr_plural

GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
"""Topic of half messages that were never decided."""
_MAX_NAMES = 3
"""Maximum number of names in a note; the others are counted."""
E = TypeVar("E", bound=Event)
Names = Callable[[str], str]
"""Returns the short name of a client id."""


@dataclass
class Record:
    """Events of the clients of one run, in order.

    ``clients``: options of each client, by client id; ``groups``: consumer groups whose events belong to this
    run.
    """

    group: str
    topic: str
    events: list[Event] = field(default_factory=list)
    clients: dict[str, Options] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    kept_by_brokers: int = 0
    """Number of offsets of the group that brokers store."""
    closed: bool = False
    """True once the run has ended: events of clients that say goodbye do not belong to it."""

    def take(self, events: Iterable[Event]) -> None:
        """Store the events that belong to this run."""
        if not self.closed:
            self.events += [event for event in events if event.group in self.groups]

    def of(self, kind: type[E]) -> list[E]:
        """Return all events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def deliveries(self) -> list[Delivered]:
        """Deliveries to the lesson's own group, repeated ones too."""
        return [delivery for delivery in self.of(Delivered) if delivery.group == self.group]

    def of_queue(self, topic: str) -> list[Delivered]:
        """Return the deliveries of the run's messages from another topic, for example dead letters, to any group."""
        sent_keys = {event.keys for event in self.of(Sent)}
        return [event for event in self.of(Delivered) if event.queue.topic == topic and event.keys in sent_keys]


def short_name(queue: MessageQueue) -> str:
    """Return ``broker-a q2``."""
    return f"{queue.broker} q{queue.queue_id}"


def first_names(names: Sequence[str]) -> str:
    """Return the first names and the number of further ones."""
    further_count = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (" " + tr("and {n:,} more", n=further_count) if further_count > 0 else "")


def seconds(ms: float) -> str:
    """Return ``0.61 s``, ``12.4 s``."""
    return f"{ms / 1000:.2f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"


def range_text(numbers: Sequence[float], format_number: Callable[[float], str]) -> str:
    """Return the smallest and the largest number, or the single value."""
    if not numbers:
        return UNKNOWN
    smallest, largest = format_number(min(numbers)), format_number(max(numbers))
    return smallest if smallest == largest else f"{smallest}–{largest}"


def figure(name: str, text: str, note: str, *, bad: bool = False) -> Impact:
    """Return a figure with its severity."""
    return Impact(name, text, note, "warn" if bad else "ok")


# ---- a kill ----------------------------------------------------------------------------------------------------------


def again_after_kill(record: Record) -> list[Impact]:
    """Count the messages delivered again since the kill, by key, and compare with the new owners' first offsets."""
    killed = next((delivery for delivery in record.of(Stopped) if not delivery.unregistered), None)
    if killed is None:
        return []
    positions: set[tuple[MessageQueue, int]] = set()
    keys: set[str] = set()
    repeated_positions = repeated_keys = 0
    for delivery in record.deliveries:
        position = (delivery.queue, delivery.queue_offset)
        if delivery.time_ms >= killed.time_ms:
            repeated_positions += position in positions
            repeated_keys += delivery.keys in keys
        positions.add(position)
        keys.add(delivery.keys)
    note = tr("{n:,} by queue and offset, since it was killed", n=repeated_positions)
    figures = [figure(tr("Again by key"), f"{repeated_keys:,}", note, bad=repeated_keys > 0)]
    first_offsets: dict[MessageQueue, int] = {}
    for acquisition in record.of(QueueAcquired):
        if acquisition.time_ms >= killed.time_ms and acquisition.queue.topic == record.topic:
            first_offsets.setdefault(acquisition.queue, acquisition.offset)
    delivered_before = {
        (delivery.queue, delivery.queue_offset) for delivery in record.deliveries if delivery.time_ms < killed.time_ms
    }
    uncommitted_count = sum(
        offset >= first_offsets[queue] for queue, offset in delivered_before if queue in first_offsets
    )
    note = tr_plural(
        "delivered before it, after the offsets at which the new owners began, in {n:,} queue",
        "delivered before it, after the offsets at which the new owners began, in {n:,} queues",
        n=len(first_offsets),
    )
    return [*figures, figure(tr("Not committed"), f"{uncommitted_count:,}", note, bad=uncommitted_count > 0)]


# ---- two clients disagree --------------------------------------------------------------------------------------------


def disagreement(record: Record, name_of: Names) -> list[Impact]:
    """Count the queues with two owners and with none, and the effect on messages."""
    last_rebalance: dict[str, Rebalanced] = {}
    for rebalance in record.of(Rebalanced):
        if rebalance.topic == record.topic:
            last_rebalance[rebalance.client_id] = rebalance
    owners: dict[MessageQueue, list[str]] = {
        queue: [] for rebalance in last_rebalance.values() for queue in rebalance.queues
    }
    for rebalance in last_rebalance.values():
        for queue in rebalance.owned:
            owners[queue].append(rebalance.client_id)
    shared_queues = [queue for queue in sorted(owners) if len(owners[queue]) > 1]
    orphans = [queue for queue in sorted(owners) if not owners[queue]]
    distinct_lists = {rebalance.client_ids for rebalance in last_rebalance.values()}
    lists_text = " · ".join(
        f"{name_of(client_id)}: {' '.join(map(name_of, rebalance.client_ids))}, "
        f"{record.clients.get(client_id, DEFAULT_OPTIONS).strategy} → "
        f"{', '.join(map(short_name, rebalance.owned)) or '–'}"
        for client_id, rebalance in sorted(last_rebalance.items())
    )
    repeated_positions, repeated_keys = _count_repeated(record)
    unread_count = _count_unread(record, orphans)
    return [
        figure(
            tr("With two owners"),
            f"{len(shared_queues):,}",
            first_names([f"{short_name(queue)}: {' '.join(map(name_of, owners[queue]))}" for queue in shared_queues])
            or tr("no queue"),
            bad=bool(shared_queues),
        ),
        figure(
            tr("With no owner"),
            f"{len(orphans):,}",
            first_names([short_name(queue) for queue in orphans]) or tr("no queue"),
            bad=bool(orphans),
        ),
        figure(
            tr("Delivered twice"),
            f"{repeated_positions:,}",
            tr("by queue and offset; {n:,} by key", n=repeated_keys),
            bad=repeated_positions > 0,
        ),
        figure(
            tr("Read by nobody"),
            f"{unread_count:,}",
            tr("sent to queues without owner, and never delivered"),
            bad=unread_count > 0,
        ),
        figure(
            tr("Lists of clients"),
            tr("the same") if len(distinct_lists) == 1 else tr("{n:,} different", n=len(distinct_lists)),
            lists_text,
            bad=len(distinct_lists) > 1,
        ),
    ]


def _count_repeated(record: Record) -> tuple[int, int]:
    """Count the deliveries that repeat a queue and offset, and those that repeat a key."""
    deliveries = record.deliveries
    positions = {(delivery.queue, delivery.queue_offset) for delivery in deliveries}
    return len(deliveries) - len(positions), len(deliveries) - len({delivery.keys for delivery in deliveries})


def _count_unread(record: Record, queues: Sequence[MessageQueue]) -> int:
    delivered_keys = {event.keys for event in record.deliveries}
    return sum(event.queue in queues and event.keys not in delivered_keys for event in record.of(Sent))


# ---- the slow queue --------------------------------------------------------------------------------------------------


def latencies(record: Record) -> list[Impact]:
    """Compare sends with and without ``sendLatencyFaultEnable``: total time, and the latency of each queue."""
    sends: dict[bool, list[Sent]] = {False: [], True: []}
    for send in record.of(Sent):
        sends[record.clients.get(send.client_id, DEFAULT_OPTIONS).avoid_slow_brokers].append(send)
    slow = _slowest(record.of(Sent))
    figures = []
    for avoids_slow, name in ((False, tr("Without avoidance")), (True, tr("With avoidance"))):
        own_sends = sends[avoids_slow]
        duration_ms = own_sends[-1].time_ms - own_sends[0].time_ms + own_sends[0].ms if own_sends else 0.0
        slow_count = sum(send.queue.broker == slow for send in own_sends)
        note = tr_plural(
            "{n:,} send one after the other, {m:,} of them to {broker}",
            "{n:,} sends one after the other, {m:,} of them to {broker}",
            n=len(own_sends),
            m=slow_count,
            broker=slow,
        )
        figures.append(figure(name, seconds(duration_ms), note, bad=2 * slow_count >= len(own_sends) > 0))
    by_queue: dict[MessageQueue, dict[bool, list[float]]] = defaultdict(lambda: {False: [], True: []})
    for avoids_slow, own_sends in sends.items():
        for send in own_sends:
            by_queue[send.queue][avoids_slow].append(send.ms)
    for queue in sorted(by_queue):
        by_mode = by_queue[queue]
        note = tr(
            "median ms of a send: {before} without avoidance, {after} with it",
            before=_median_text(by_mode[False]),
            after=_median_text(by_mode[True]),
        )
        counts = f"{len(by_mode[False]):,} → {len(by_mode[True]):,}"
        figures.append(figure(short_name(queue), counts, note, bad=queue.broker == slow))
    return figures


def _median_text(ms: Sequence[float]) -> str:
    return f"{median(ms):,.1f}" if ms else UNKNOWN


def _slowest(sends: Sequence[Sent]) -> str:
    """Return the broker with the highest median latency."""
    by_broker: dict[str, list[float]] = defaultdict(list)
    for send in sends:
        by_broker[send.queue.broker].append(send.ms)
    return max(by_broker, key=lambda name: median(by_broker[name]), default="")


# ---- broadcast -------------------------------------------------------------------------------------------------------


def broadcast(record: Record, name_of: Names) -> list[Impact]:
    """Count for each consumer its share of the messages, and compare its offsets before and after its absence."""
    sent = {item.keys for item in record.of(Sent)}
    figures = [figure(tr("Sent"), f"{len(sent):,}", tr("by its keys"))]
    for client_id in sorted({item.client_id for item in record.deliveries}):
        delivered_keys = [item.keys for item in record.deliveries if item.client_id == client_id]
        received_count = len(set(delivered_keys) & sent)
        note = (
            tr("each once")
            if len(delivered_keys) == len(set(delivered_keys))
            else (tr("{n:,} more than once", n=len(delivered_keys) - len(set(delivered_keys))))
        )
        figures.append(
            figure(
                name_of(client_id),
                tr("{n:,} of {m:,}", n=received_count, m=len(sent)),
                note,
                bad=received_count != len(sent) or len(delivered_keys) != received_count,
            )
        )
    returned = next((item for item, options in record.clients.items() if options.client_id), "")
    start_times = [item.time_ms for item in record.of(Started) if item.client_id == returned]
    if len(start_times) > 1:
        return_ms = start_times[-1]
        deliveries_after = [
            item for item in record.deliveries if item.client_id == returned and item.time_ms >= return_ms
        ]
        keys_before = {
            item.keys for item in record.deliveries if item.client_id == returned and item.time_ms < return_ms
        }
        repeated_count = sum(item.keys in keys_before for item in deliveries_after)
        saved_offsets = _last_commits(record, returned, return_ms)
        note = tr_plural(
            "{name} began again at the offsets in its file ({kept:,} in {n:,} queue); {again:,} came again",
            "{name} began again at the offsets in its file ({kept:,} in {n:,} queues); {again:,} came again",
            name=name_of(returned),
            kept=sum(saved_offsets.values()),
            n=len(saved_offsets),
            again=repeated_count,
        )
        figures.append(figure(tr("After its return"), f"{len(deliveries_after):,}", note, bad=repeated_count > 0))
    note = tr("offsets of the group that brokers hold: each client keeps its own")
    figures.append(figure(tr("Kept by brokers"), f"{record.kept_by_brokers:,}", note, bad=record.kept_by_brokers > 0))
    return figures


def _last_commits(record: Record, client_id: str, time_ms: int) -> dict[MessageQueue, int]:
    """Return the offsets in a client's file at a time."""
    return {
        commit.queue: commit.offset
        for commit in record.of(Committed)
        if commit.client_id == client_id and commit.time_ms < time_ms
    }


# ---- dead letters ----------------------------------------------------------------------------------------------------


def dead_letters(record: Record) -> list[Impact]:
    """Count how often a refused message is delivered, with which delays, and the dead letters."""
    deliveries_by_key: dict[str, list[Delivered]] = defaultdict(list)
    for delivery in record.deliveries:
        deliveries_by_key[delivery.keys].append(delivery)
    returns_by_key: dict[str, list[SentBack]] = defaultdict(list)
    key_at = {(delivery.queue, delivery.queue_offset): delivery.keys for delivery in record.deliveries}
    for sent_back in record.of(SentBack):
        returns_by_key[key_at.get((sent_back.queue, sent_back.queue_offset), "")].append(sent_back)
    refused = sorted(returns_by_key)
    accepted_count = sum(
        len(key_deliveries) == 1 and keys not in returns_by_key for keys, key_deliveries in deliveries_by_key.items()
    )
    times = [len(deliveries_by_key[keys]) for keys in refused]
    figures = [
        figure(
            tr("Taken at once"),
            tr("{n:,} of {m:,}", n=accepted_count, m=len({delivery.keys for delivery in record.of(Sent)})),
            tr("delivered once each"),
        ),
        figure(
            tr("Refused"),
            f"{len(refused):,}",
            tr("each delivered {times} times", times=range_text(times, lambda n: f"{n:,.0f}")),
            bad=bool(refused),
        ),
    ]
    for number in range(1, max(times, default=0)):
        waits = [
            deliveries_by_key[keys][number].time_ms - returns_by_key[keys][number - 1].time_ms
            for keys in refused
            if number < len(deliveries_by_key[keys]) and number <= len(returns_by_key[keys])
        ]
        reconsume_times = [
            deliveries_by_key[keys][number].reconsume_times for keys in refused if number < len(deliveries_by_key[keys])
        ]
        note = tr(
            "level {level}, from {topic}; reconsumeTimes {n}",
            level=2 + number,
            topic=RETRY_PREFIX + record.group,
            n=range_text(reconsume_times, lambda n: f"{n:,.0f}"),
        )
        figures.append(figure(tr("Wait {n:,}", n=number), range_text(waits, seconds), note, bad=True))
    dead = record.of_queue(DLQ_PREFIX + record.group)
    reconsume_times = [delivery.reconsume_times for delivery in dead]
    note = tr(
        "read from {topic}, reconsumeTimes {n}. As RocketMQ is set: 16 times, over 4 h 46 min",
        topic=DLQ_PREFIX + record.group,
        n=range_text(reconsume_times, lambda n: f"{n:,.0f}"),
    )
    figures.append(figure(tr("Dead letters"), f"{len({delivery.keys for delivery in dead}):,}", note, bad=bool(dead)))
    return figures


# ---- a transaction that nobody finishes ------------------------------------------------------------------------------


def transactions(record: Record) -> list[Impact]:
    """Count half messages, checks of their producer, and the fate of those that were never decided."""
    sent = {event.msg_id: event for event in record.of(Sent)}
    ended = record.of(TransactionEnded)
    committed = {event.msg_id for event in ended if event.decision == "COMMIT"}
    undecided = [msg_id for msg_id in sent if msg_id not in committed]
    checks = Counter(event.msg_id for event in ended if event.checked)
    check_times: dict[str, list[int]] = defaultdict(list)
    for event in ended:
        if event.checked:
            check_times[event.msg_id].append(event.time_ms)
    intervals = [
        later - time_ms for times_of_message in check_times.values() for time_ms, later in pairwise(times_of_message)
    ]
    keys = {sent[msg_id].keys: sent[msg_id] for msg_id in undecided}
    delivered_keys = {event.keys for event in record.deliveries}
    given_up = record.of_queue(GIVEN_UP)
    waits = [event.time_ms - keys[event.keys].time_ms for event in given_up if event.keys in keys]
    times = [checks[msg_id] for msg_id in undecided]
    return [
        figure(
            tr("Half messages"),
            f"{len(sent):,}",
            tr("{n:,} committed at once, {m:,} never finished", n=len(sent) - len(undecided), m=len(undecided)),
        ),
        figure(
            tr("Delivered"),
            f"{len(delivered_keys):,}",
            tr("of the unfinished ones: {n:,}", n=len(delivered_keys & keys.keys())),
            bad=bool(delivered_keys & keys.keys()),
        ),
        figure(
            tr("Checks"),
            f"{sum(checks.values()):,}",
            tr(
                "{times} for each, {wait} apart: the producer says UNKNOWN",
                wait=range_text(intervals, seconds),
                times=range_text(times, lambda n: f"{n:,.0f}"),
            ),
            bad=bool(checks),
        ),
        figure(
            tr("Given up"),
            f"{len({event.keys for event in given_up}):,}",
            tr(
                "after {wait}, in {topic}. As RocketMQ 5 is set: 15 checks, 30 s apart",
                wait=range_text(waits, seconds),
                topic=GIVEN_UP,
            ),
            bad=bool(given_up),
        ),
    ]
