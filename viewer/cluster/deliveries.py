"""Deliveries to the user's own consumers: pauses, duplicates and bursts counted message by message. No Qt.

A message is identified by queue and offset. Only deliveries to our own clients are known: if other clients share the
group, the counts are lower bounds.
"""

from __future__ import annotations

import bisect
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from engine.cluster.state import Queue
from engine.system_names import RETRY_PREFIX

MAX_DELIVERIES = 400_000
"""Maximum number of stored deliveries of a queue; older ones are dropped."""
MAX_AGE_MS = 1_800_000
"""Maximum age of a delivery: as far as readings reach back that are taken each second."""
MAX_REPEATED = 100_000
MAX_REBALANCES = 2_000
RATE_WINDOW_MS = 2_000
"""Ms over which a rate is computed."""
BURST_WINDOW_MS = 60_000
"""Ms after a step in which a burst is searched."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message was delivered to a listener."""

    time_ms: int
    client_id: str
    group: str
    queue: Queue
    offset: int


@dataclass(frozen=True, slots=True)
class RebalanceEvent:
    """A client rebalanced a topic: the list of clients it saw, and the queues it added and released."""

    time_ms: int
    client_id: str
    group: str
    topic: str
    client_ids: tuple[str, ...]
    owned: tuple[Queue, ...]
    added: tuple[Queue, ...]
    released: tuple[Queue, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class RepeatedDelivery:
    """A message that was delivered again."""

    time_ms: int
    queue: Queue
    offset: int
    first_client: str
    second_client: str


class _FirstClients:
    """Client number (from 1) of the first delivery of each offset.

    A few bytes an offset, in pages; a dictionary would need a hundred.
    """

    __slots__ = ("_pages",)
    _BITS = 6

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def find(self, offset: int) -> int:
        """Return the client number, 0 for none."""
        page = self._pages.get(offset >> self._BITS)
        return page[offset & (1 << self._BITS) - 1] if page is not None else 0

    def put(self, offset: int, client_number: int) -> None:
        """Store the client number; 0 removes it, and an empty page is dropped."""
        number = offset >> self._BITS
        page = self._pages.get(number)
        if page is None:
            if not client_number:
                return
            page = self._pages[number] = array("I", bytes(4 << self._BITS))
        page[offset & (1 << self._BITS) - 1] = client_number
        if not client_number and not any(page):
            del self._pages[number]


class _QueueLog:
    """Deliveries of one queue to one group, in arrays: half an hour of a busy queue is some hundred thousand."""

    __slots__ = ("firsts", "offsets", "repeated_clients", "repeated_offsets", "repeated_times", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self.offsets = array("q")
        self.firsts = _FirstClients()
        self.repeated_times = array("q")
        self.repeated_offsets = array("q")
        self.repeated_clients = array("I")
        """For each repeated delivery, the client numbers of the first and of the repeated delivery, in pairs."""

    def add(self, time_ms: int, offset: int, client_number: int) -> None:
        """Add a delivery."""
        first_client = self.firsts.find(offset)
        if first_client:
            self.repeated_times.append(time_ms)
            self.repeated_offsets.append(offset)
            self.repeated_clients.extend((first_client, client_number))
        else:
            self.firsts.put(offset, client_number)
        self.times.append(time_ms)
        self.offsets.append(offset)

    def forget(self) -> None:
        """Drop the oldest deliveries if there are too many or they are too old, a tenth at a time."""
        min_time_ms = self.times[-1] - MAX_AGE_MS
        drop_count = _drop_count(self.times, MAX_DELIVERIES, min_time_ms)
        if drop_count:
            for offset in self.offsets[:drop_count]:
                self.firsts.put(offset, 0)
            del self.times[:drop_count], self.offsets[:drop_count]
        drop_count = _drop_count(self.repeated_times, MAX_REPEATED, min_time_ms)
        if drop_count:
            del (
                self.repeated_times[:drop_count],
                self.repeated_offsets[:drop_count],
                self.repeated_clients[: 2 * drop_count],
            )


def _drop_count(times: array[int], max_count: int, min_time_ms: int) -> int:
    """Return how many of the first entries to drop."""
    expired_count = bisect.bisect_left(times, min_time_ms)
    return max_count // 10 if len(times) > max_count else expired_count if expired_count * 10 > len(times) else 0


class Deliveries:
    """All deliveries, by group."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, Queue], _QueueLog] = {}
        self._clients: list[str] = [""]
        self._numbers: dict[str, int] = {}
        """Index in ``_clients`` of each client that was ever seen."""
        self.rebalances: deque[RebalanceEvent] = deque(maxlen=MAX_REBALANCES)
        self.dropped = 0
        """Events that were lost; if any, the counts are lower bounds."""

    def add(self, delivered: Iterable[Delivery], rebalanced: Iterable[RebalanceEvent] = (), dropped: int = 0) -> None:
        """Add the events since the last call, in order."""
        self.dropped += dropped
        self.rebalances.extend(self._share_values(event) for event in rebalanced)
        busy = {}
        for event in delivered:
            log = self._logs.get((event.group, event.queue))
            if log is None:
                log = self._logs[event.group, event.queue] = _QueueLog()
            log.add(event.time_ms, event.offset, self._number(event.client_id))
            busy[id(log)] = log
        for log in busy.values():
            log.forget()

    def _number(self, client_id: str) -> int:
        client_number = self._numbers.get(client_id)
        if client_number is None:
            client_number = self._numbers[client_id] = len(self._clients)
            self._clients.append(client_id)
        return client_number

    def _share_values(self, rebalance: RebalanceEvent) -> RebalanceEvent:
        """Share equal lists with the previous event: each came over the pipe as a copy."""
        previous = self.rebalances[-1] if self.rebalances else None
        client_id = self._clients[self._number(rebalance.client_id)]
        if previous is None:
            return replace(rebalance, client_id=client_id)
        shared_queues = {queue: queue for queue in (*previous.owned, *previous.added, *(key[1] for key in self._logs))}

        def slim(queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
            return tuple(shared_queues.get(queue, queue) for queue in queues)

        ids = tuple(self._clients[self._number(name)] for name in rebalance.client_ids)
        return replace(
            rebalance,
            client_id=client_id,
            client_ids=previous.client_ids if previous.client_ids == ids else ids,
            group=previous.group if previous.group == rebalance.group else rebalance.group,
            topic=previous.topic if previous.topic == rebalance.topic else rebalance.topic,
            owned=slim(rebalance.owned),
            added=slim(rebalance.added),
            released=slim(rebalance.released),
        )

    def knows(self, group: str) -> bool:
        """Return True if anything was delivered to our clients in that group."""
        return any(name == group for name, _ in self._logs)

    def _of(self, group: str) -> Iterator[tuple[Queue, _QueueLog]]:
        return ((queue, log) for (name, queue), log in self._logs.items() if name == group)

    def repeated(self, group: str, begin: int, end: int) -> list[RepeatedDelivery]:
        """Return the repeated deliveries from ``begin`` on, before ``end`` (ms)."""
        repeated = []
        for queue, log in self._of(group):
            for number in range(
                bisect.bisect_left(log.repeated_times, begin), bisect.bisect_left(log.repeated_times, end)
            ):
                first_client, second_client = (
                    self._clients[client_number] for client_number in log.repeated_clients[2 * number : 2 * number + 2]
                )
                repeated.append(
                    RepeatedDelivery(
                        log.repeated_times[number], queue, log.repeated_offsets[number], first_client, second_client
                    )
                )
        return repeated

    def delivered_count(self, group: str, begin: int, end: int) -> int:
        """Count the deliveries in that time."""
        return sum(
            bisect.bisect_left(log.times, end) - bisect.bisect_left(log.times, begin) for _, log in self._of(group)
        )

    def known_until(self, group: str) -> int:
        """Return the time (ms) after the newest delivery; 0 if there was none."""
        return max((log.times[-1] + 1 for _, log in self._of(group) if log.times), default=0)

    def pauses(self, group: str, begin: int, end: int, until: int) -> dict[Queue, int]:
        """Return for each queue the longest time (ms) without a delivery that overlaps ``begin`` to ``end``.

        Looks up to ``until``. Queues without deliveries on both sides are left out.
        """
        longest_pauses = {}
        for queue, log in self._of(group):
            first_index = max(bisect.bisect_right(log.times, begin) - 1, 0)
            longest_ms = 0
            for number in range(first_index, len(log.times) - 1):
                delivery_ms, next_delivery_ms = log.times[number], log.times[number + 1]
                if delivery_ms > end or delivery_ms > until:
                    break
                if next_delivery_ms >= begin:
                    longest_ms = max(longest_ms, next_delivery_ms - delivery_ms)
            if longest_ms and log.times[0] <= begin:
                longest_pauses[queue] = longest_ms
        return longest_pauses

    def since(self, group: str, queue: Queue, end: int) -> int | None:
        """Return the ms from the last delivery of a queue before ``end``; None if there was none."""
        log = self._logs.get((group, queue))
        number = bisect.bisect_left(log.times, end) if log is not None else 0
        return end - log.times[number - 1] if log is not None and number else None

    def bursts(self, group: str, begin: int, end: int, until: int) -> dict[Queue, tuple[float, float]]:
        """Return for each queue the messages a second before a step, and the maximum after it."""
        rates = {}
        for queue, log in self._of(group):
            first_index = bisect.bisect_left(log.times, begin - 5 * RATE_WINDOW_MS)
            count_before = bisect.bisect_left(log.times, begin) - first_index
            begin_counted = max(begin - 5 * RATE_WINDOW_MS, log.times[0] if log.times else begin)
            if count_before < 2 or begin - begin_counted < RATE_WINDOW_MS:
                continue
            rate_before = count_before / (begin - begin_counted) * 1000
            max_rate = 0.0
            start_index = bisect.bisect_left(log.times, end)
            end_index = bisect.bisect_right(log.times, min(until, end + BURST_WINDOW_MS))
            for number in range(start_index, end_index):
                window_index = bisect.bisect_left(log.times, log.times[number] - RATE_WINDOW_MS, lo=start_index)
                max_rate = max(max_rate, (number - window_index + 1) / RATE_WINDOW_MS * 1000)
            if max_rate:
                rates[queue] = (rate_before, max_rate)
        return rates

    def lists(self, group: str, begin: int, end: int) -> list[RebalanceEvent]:
        """Return the rebalances in that time that saw a changed client list, or added or released queues.

        Retry topics are left out.
        """
        last_lists: dict[tuple[str, str], tuple[str, ...]] = {}
        rebalances = []
        for rebalance in self.rebalances:
            if rebalance.group != group or rebalance.topic.startswith(RETRY_PREFIX):
                continue
            list_changed = last_lists.get((rebalance.client_id, rebalance.topic)) != rebalance.client_ids
            last_lists[rebalance.client_id, rebalance.topic] = rebalance.client_ids
            if begin <= rebalance.time_ms < end and (rebalance.added or rebalance.released or list_changed):
                rebalances.append(rebalance)
        return rebalances
