"""Choice of the queue for a message: in turn, away from brokers that were slow or failed, or by a key
(docs/protocol/clients.md#queue-choice). Pure; times are parameters (ms).

Pure; the clock is given (ms). Java: ``TopicPublishInfo``, ``MQFaultStrategy``, ``LatencyFaultToleranceImpl``,
``SelectMessageQueueByHash``.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.client.routes import MessageQueue
from engine.codec.java import jhash
from engine.releases import NEWEST, Release, rules_of


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """Times for which a broker is avoided, by the latency of its last send (both ms), and the latency that a failure
    counts as.

    ``shuns_last``: also where a broker is avoided for its latency, a retry goes elsewhere than the try before.
    """

    latencies: tuple[int, ...]
    avoided: tuple[int, ...]
    failure: int
    shuns_last: bool

    def avoid_for(self, latency: float) -> int:
        """Return for how many milliseconds a broker is avoided."""
        index = bisect_right(self.latencies, latency)
        return self.avoided[index - 1] if index else 0


TABLES = {
    5: LatencyTable(
        (50, 100, 550, 1800, 3000, 5000, 15000), (0, 0, 2000, 5000, 6000, 10000, 30000), 10_000, shuns_last=True
    ),
    4: LatencyTable(
        (50, 100, 550, 1000, 2000, 3000, 15000), (0, 0, 30000, 60000, 120000, 180000, 600000), 30_000, shuns_last=False
    ),
}
"""The tables of both releases."""


@dataclass(slots=True)
class BrokerFault:
    """State of a broker: ms that the last send took, and until when it is avoided."""

    latency: float
    avoided_until: float
    reachable: bool = True


class QueueChoice:
    """Chooses queues for one producer. Without ``avoid_slow`` only the broker of the previous try is avoided."""

    def __init__(
        self, release: Release = NEWEST, *, avoid_slow: bool = False, chance: random.Random | None = None
    ) -> None:
        self._chance = chance or random.Random()
        self._table = TABLES[rules_of(release).major]
        self._avoid_slow = avoid_slow
        self._turns: dict[str, int] = {}
        self._worst = self._chance.randrange(1 << 20)
        self.faults: dict[str, BrokerFault] = {}
        """By broker name."""

    def turn(self, topic: str, number: int) -> None:
        """Set the queue number of ``topic`` after which choosing continues; without this the first queue is random."""
        self._turns[topic] = number

    def _next(self, topic: str) -> int:
        now = self._turns.get(topic)
        now = (self._chance.randrange(1 << 20) if now is None else now) + 1 & 0x7FFFFFFF
        self._turns[topic] = now
        return now

    def record_send(
        self, broker: str, latency: float, now: float, *, failed: bool = False, reachable: bool = True
    ) -> None:
        """Record that a send to ``broker`` took ``latency`` ms, or ``failed``."""
        if self._avoid_slow:
            avoid = self._table.avoid_for(self._table.failure if failed else latency)
            self.faults[broker] = BrokerFault(latency, now + avoid, reachable)

    def is_available(self, broker: str, now: float) -> bool:
        """Return True if ``broker`` is not avoided now."""
        fault = self.faults.get(broker)
        return fault is None or now >= fault.avoided_until

    def choose(self, queues: Sequence[MessageQueue], last_broker: str | None, now: float) -> MessageQueue:
        """Return the queue to send to; ``last_broker`` is the broker of a try that failed. ``queues`` are of one
        topic, and not empty.
        """
        topic = queues[0].topic
        if not self._avoid_slow:
            return (
                self._first(queues, lambda queue: queue.broker != last_broker)
                or queues[self._next(topic) % len(queues)]
            )
        shunned = last_broker if self._table.shuns_last else None
        chosen = self._first(queues, lambda queue: queue.broker != shunned and self.is_available(queue.broker, now))
        if chosen is None and self._table.shuns_last:
            chosen = self._first(queues, lambda queue: queue.broker != last_broker and self._reachable(queue.broker))
        elif chosen is None:
            chosen = self._least_bad(queues, now)
        return chosen or queues[self._next(topic) % len(queues)]

    def _first(self, queues: Sequence[MessageQueue], fits: Callable[[MessageQueue], bool]) -> MessageQueue | None:
        """Return the next queue in turn that fits."""
        topic, count = queues[0].topic, len(queues)
        for _ in range(count):
            queue = queues[self._next(topic) % count]
            if fits(queue):
                return queue
        return None

    def _reachable(self, broker: str) -> bool:
        fault = self.faults.get(broker)
        return fault is None or fault.reachable

    def _least_bad(self, queues: Sequence[MessageQueue], now: float) -> MessageQueue | None:
        """4.9 with all brokers avoided: one of the better half, by latency (``pickOneAtLeast``)."""
        ranked = sorted(
            self.faults,
            key=lambda name: (
                not self.is_available(name, now),
                self.faults[name].latency,
                self.faults[name].avoided_until,
            ),
        )
        if not ranked:
            return None
        self._worst += 1
        broker = ranked[self._worst % (len(ranked) // 2)] if len(ranked) > 1 else ranked[0]
        queues_of_broker = [queue for queue in queues if queue.broker == broker]
        if not queues_of_broker:
            del self.faults[broker]
            return None
        return queues_of_broker[self._next(queues[0].topic) % len(queues_of_broker)]


def by_key(queues: Sequence[MessageQueue], key: str) -> MessageQueue:
    """Return the queue of all messages with that key: by Java's hash of it (``SelectMessageQueueByHash``)."""
    return queues[abs(jhash(key)) % len(queues)]
