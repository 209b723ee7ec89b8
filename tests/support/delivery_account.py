"""Account of clients while their broker failed in every way, compared with the store: at least once, counted.

A message is its queue and its sender's number; its body contains both. Each sender sends one message (or batch) at a
time, again and again until it is acknowledged, so a queue's order is known.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.codec.message import Unit

Number = tuple[int, int]
"""Queue, and number within it."""


def body_of(queue: int, number: int) -> bytes:
    """Return a body whose length varies, so that files end at any place."""
    return b"%d %d " % (queue, number) + bytes(number * 37 % 300)


def number_of(body: bytes) -> Number:
    """Return the message that a body names."""
    queue, number, _ = body.split(b" ", 2)
    return int(queue), int(number)


@dataclass
class QueueReading:
    """A consumer reads a queue, from the queue offset ``start`` on, until it gives it up or ends: (queue offset, its
    message) in the order of delivery. ``cause`` is the last event before it began.
    """

    start: int
    cause: str
    given: list[tuple[int, Number]] = field(default_factory=list)


def _lists() -> dict[int, list[Any]]:
    return defaultdict(list)


@dataclass
class Account:
    """The senders' and consumers' side of a run, and the faults of their broker."""

    acknowledged: dict[Number, str] = field(default_factory=dict)
    """Message to the status of its answer."""
    statuses: Counter[str] = field(default_factory=Counter)
    """How many messages were acknowledged with which status."""
    unanswered: dict[Number, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Tries to send a message to which no answer came, by the last fault: each may be a copy in the store."""
    refused: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Answers that are errors, by code and words: nothing is stored by any of them."""
    faults: list[tuple[int, str]] = field(default_factory=list)
    """When (ns of the machine's monotonic clock), and what."""
    happened: list[tuple[int, str]] = field(default_factory=list)
    """The same with consumers that joined their group."""
    readings: dict[str, dict[int, list[QueueReading]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """By group and queue, in the order in which they began."""
    order: dict[str, dict[int, list[int]]] = field(default_factory=lambda: defaultdict(_lists))
    """By group and queue the queue offsets of all deliveries, in order of time."""

    distinct: dict[str, dict[int, set[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    """The same without doubles."""

    def acknowledge(self, messages: Collection[Number], status: str) -> None:
        """Note that messages were acknowledged."""
        self.acknowledged.update(dict.fromkeys(messages, status))
        self.statuses[status] += len(messages)

    def miss(self, messages: Collection[Number], when: int | None = None) -> None:
        """Note that a sender gets no answer, now or at a time."""
        cause = _event_before(self.faults, when)
        for message in messages:
            self.unanswered[message].append(cause)

    def strike(self, fault: str) -> None:
        """Note a fault of the broker, or of a consumer."""
        self.note(fault)
        self.faults.append(self.happened[-1])

    def note(self, event: str) -> None:
        """Note an event after which queues are read anew."""
        self.happened.append((time.monotonic_ns(), event))

    def take(self, group: str, queue: int, start: int, when: int | None = None) -> QueueReading:
        """Note that a consumer begins to read a queue, now or at a time."""
        reading = QueueReading(start, _event_before(self.happened, when))
        self.readings[group][queue].append(reading)
        return reading

    def deliver(self, group: str, reading: QueueReading, queue: int, offset: int, message: Number) -> None:
        """Note that a message was handed to a listener."""
        reading.given.append((offset, message))
        self.order[group][queue].append(offset)
        self.distinct[group][queue].add(offset)

    def has_all(self, group: str, ends: Sequence[int]) -> bool:
        """Return True if each queue offset before its queue's end was delivered."""
        return all(len(self.distinct[group][queue]) >= end for queue, end in enumerate(ends))


def _event_before(happened: Sequence[tuple[int, str]], when: int | None) -> str:
    """Return the last event before a time, or up to now; "" if there was none."""
    number = len(happened) if when is None else bisect_right(happened, when, key=lambda item: item[0])
    return happened[number - 1][1] if number else ""


@dataclass
class Report:
    """The account in numbers. ``again`` is, by group, the number of deliveries that were not the first of their queue
    offset, by the last event before the reading that repeated them; ``copies`` are units beyond the first of a message,
    by the fault before the sends that had no answer.
    """

    faults: int
    acknowledged: int
    stored: int
    copies: Counter[str]
    unanswered: int
    refused: int
    delivered: dict[str, int] = field(default_factory=dict)
    again: dict[str, Counter[str]] = field(default_factory=dict)

    def line(self) -> str:
        """Return the report in one line."""
        reported = [
            f"{self.faults} faults",
            f"{self.acknowledged} acknowledged",
            f"{self.stored} stored",
            _by_cause(self.copies, "of them twice"),
            f"{self.unanswered} tries without an answer",
            f"{self.refused} refused",
        ]
        reported += [
            f"{group}: {count} delivered, {_by_cause(self.again[group], 'again')}"
            for group, count in self.delivered.items()
        ]
        return "; ".join(reported)


def _by_cause(counts: Counter[str], noun: str) -> str:
    causes = ", ".join(f"{number} behind {fault}" for fault, number in counts.most_common())
    return f"{counts.total()} {noun}" + (f" ({causes})" if causes else "")


def settle(
    account: Account, units: Iterable[Unit], ordered: Collection[str] = (), batched: Collection[int] = ()
) -> Report:
    """Compare the account with the units of the topic, in the order of the log; ``ordered`` groups consume in order,
    ``batched`` queues get batches: consumers see the id of the batch, and each send of one has its own.
    Raise ``AssertionError`` if a message is lost, stored without being sent, out of order, or doubled without a reason.
    """
    by_queue: dict[int, list[Number]] = defaultdict(list)
    keys: dict[Number, set[str]] = defaultdict(set)
    for unit in units:
        message = number_of(unit.body)
        assert message[0] == unit.queue_id
        assert unit.queue_offset == len(by_queue[unit.queue_id]), "the queue has a gap"
        by_queue[unit.queue_id].append(message)
        keys[message].add(unit.properties["UNIQ_KEY"])
    copies = Counter(message for messages in by_queue.values() for message in messages)
    lost = account.acknowledged.keys() - copies.keys()
    assert not lost, f"acknowledged and not stored: {sorted(lost)[:5]}"
    doubles: Counter[str] = Counter()
    for message, count in copies.items():
        tries = account.unanswered.get(message, [])
        possible_copies = (message in account.acknowledged) + len(tries)
        assert count <= possible_copies, (
            f"{message} is stored {count} times, and {possible_copies} tries may have done that"
        )
        assert len(keys[message]) == 1 or message[0] in batched, (
            f"copies of {message} have ids of their own: {keys[message]}"
        )
        doubles.update(tries[: count - 1])
    assert "" not in doubles, "a message is stored twice for no reason"
    for queue, messages in by_queue.items():
        firsts = [number for _, number in dict.fromkeys(messages)]
        assert firsts == list(range(len(firsts))), f"queue {queue}: out of order"
    report = Report(
        len(account.faults),
        len(account.acknowledged),
        len(copies),
        doubles,
        sum(map(len, account.unanswered.values())),
        account.refused.total(),
    )
    for group in account.readings:
        report.delivered[group] = sum(len(messages) for messages in by_queue.values())
        report.again[group] = Counter()
        for queue, messages in by_queue.items():
            report.again[group] += _settle_queue(account, group, queue, messages, in_order=group in ordered)
    return report


def _settle_queue(
    account: Account, group: str, queue: int, messages: Sequence[Number], *, in_order: bool
) -> Counter[str]:
    """Assert that every unit of a queue was delivered to a group; return the number of repetitions by fault."""
    where, readings = f"{group}, queue {queue}", account.readings[group][queue]
    given_offsets = {offset for reading in readings for offset, _ in reading.given}
    assert given_offsets == set(range(len(messages))), (
        f"{where}: not delivered {set(range(len(messages))) - given_offsets}"
    )
    if in_order:
        firsts = list(dict.fromkeys(account.order[group][queue]))
        assert firsts == sorted(firsts), f"{where}: out of order"
    observed: set[int] = set()
    second_counts: Counter[str] = Counter()
    for reading in readings:
        offsets = [offset for offset, _ in reading.given]
        assert len(set(offsets)) == len(offsets), f"{where}: a reading from {reading.start} had something twice"
        assert all(messages[offset] == message for offset, message in reading.given), f"{where}: another message"
        if in_order:
            assert offsets == list(range(reading.start, reading.start + len(offsets))), f"{where}: a reading has gaps"
        repeated = observed & set(offsets)
        assert not repeated or reading.cause, f"{where}: {sorted(repeated)[:5]} came twice for no reason"
        assert reading.start <= max(observed, default=-1) + 1, f"{where}: a reading from {reading.start} leaves a gap"
        second_counts[reading.cause] += len(repeated)
        observed |= set(offsets)
    return +second_counts
