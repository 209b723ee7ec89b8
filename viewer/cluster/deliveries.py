"""What consumers of one's own were handed, message by message: pauses, duplicates and bursts counted, not told. No Qt.

A message is the same one by its queue and offset. Only what our own clients saw is here: where strangers share the
group, counts are at least so much.
"""

from __future__ import annotations

import bisect
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from engine.cluster.state import Queue
from engine.rules.system_names import RETRY

MOST = 400_000
"""Deliveries of a queue that are kept; older ones go."""
KEPT_MS = 1_800_000
"""Deliveries older than that go: as long ago as readings can be gone back to that are taken each second."""
MOST_TWICE = 100_000
MOST_SHARED = 2_000
RATE_OVER = 2_000
"""Ms over which a rate is counted."""
AROUND = 60_000
"""Ms behind a step in which a burst is looked for."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A message was handed to a listener."""

    at: int
    client_id: str
    group: str
    queue: Queue
    offset: int


@dataclass(frozen=True, slots=True)
class Shared:
    """A client shared a topic out anew: the list of clients that it saw, and what it took and gave up for it."""

    at: int
    client_id: str
    group: str
    topic: str
    client_ids: tuple[str, ...]
    owned: tuple[Queue, ...]
    taken: tuple[Queue, ...]
    given_up: tuple[Queue, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Twice:
    """A message that was handed out again."""

    at: int
    queue: Queue
    offset: int
    first: str
    again: str


class _Firsts:
    """Who was handed each offset first, as a number above 0: some bytes an offset where a dictionary has a hundred."""

    __slots__ = ("_pages",)
    _BITS = 6

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def find(self, offset: int) -> int:
        """0: nobody."""
        page = self._pages.get(offset >> self._BITS)
        return page[offset & (1 << self._BITS) - 1] if page is not None else 0

    def put(self, offset: int, who: int) -> None:
        """0 forgets it; a page of which nothing is left goes."""
        number = offset >> self._BITS
        page = self._pages.get(number)
        if page is None:
            if not who:
                return
            page = self._pages[number] = array("I", bytes(4 << self._BITS))
        page[offset & (1 << self._BITS) - 1] = who
        if not who and not any(page):
            del self._pages[number]


class _QueueLog:
    """The deliveries of one queue to one group, in arrays: half an hour of a busy queue is some hundred thousand."""

    __slots__ = ("again", "again_offsets", "again_times", "firsts", "offsets", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self.offsets = array("q")
        self.firsts = _Firsts()
        self.again_times = array("q")
        self.again_offsets = array("q")
        self.again = array("I")
        """Of each message that was handed out again: the numbers of who had it first and who again, one after the
        other.
        """

    def add(self, at: int, offset: int, who: int) -> None:
        """One more."""
        first = self.firsts.find(offset)
        if first:
            self.again_times.append(at)
            self.again_offsets.append(offset)
            self.again.extend((first, who))
        else:
            self.firsts.put(offset, who)
        self.times.append(at)
        self.offsets.append(offset)

    def forget(self) -> None:
        """Let the oldest go where there are too many, or where they are too old, a tenth of them at a time."""
        oldest = self.times[-1] - KEPT_MS
        gone = _over(self.times, MOST, oldest)
        if gone:
            for offset in self.offsets[:gone]:
                self.firsts.put(offset, 0)
            del self.times[:gone], self.offsets[:gone]
        gone = _over(self.again_times, MOST_TWICE, oldest)
        if gone:
            del self.again_times[:gone], self.again_offsets[:gone], self.again[: 2 * gone]


def _over(times: array[int], most: int, oldest: int) -> int:
    """How many of the first are to go."""
    old = bisect.bisect_left(times, oldest)
    return most // 10 if len(times) > most else old if old * 10 > len(times) else 0


class Deliveries:
    """All of them, by group."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, Queue], _QueueLog] = {}
        self._clients: list[str] = [""]
        self._numbers: dict[str, int] = {}
        """Of each client that was ever seen, its place among ``_clients``."""
        self.shared: deque[Shared] = deque(maxlen=MOST_SHARED)
        self.dropped = 0
        """Events that were too many to be told: counts are at least so much."""

    def add(self, handed: Iterable[Handed], shared: Iterable[Shared] = (), dropped: int = 0) -> None:
        """What was seen since the last time, in order."""
        self.dropped += dropped
        self.shared.extend(self._slim(one) for one in shared)
        busy = {}
        for one in handed:
            log = self._logs.get((one.group, one.queue))
            if log is None:
                log = self._logs[one.group, one.queue] = _QueueLog()
            log.add(one.at, one.offset, self._number(one.client_id))
            busy[id(log)] = log
        for log in busy.values():
            log.forget()

    def _number(self, client_id: str) -> int:
        found = self._numbers.get(client_id)
        if found is None:
            found = self._numbers[client_id] = len(self._clients)
            self._clients.append(client_id)
        return found

    def _slim(self, one: Shared) -> Shared:
        """Lists that are as in the one before are that one's: each came over a pipe as a copy of its own."""
        before = self.shared[-1] if self.shared else None
        client_id = self._clients[self._number(one.client_id)]
        if before is None:
            return replace(one, client_id=client_id)
        known = {queue: queue for queue in (*before.owned, *before.taken, *(key[1] for key in self._logs))}

        def slim(queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
            return tuple(known.get(queue, queue) for queue in queues)

        ids = tuple(self._clients[self._number(name)] for name in one.client_ids)
        return replace(
            one,
            client_id=client_id,
            client_ids=before.client_ids if before.client_ids == ids else ids,
            group=before.group if before.group == one.group else one.group,
            topic=before.topic if before.topic == one.topic else one.topic,
            owned=slim(one.owned),
            taken=slim(one.taken),
            given_up=slim(one.given_up),
        )

    def knows(self, group: str) -> bool:
        """Whether anything was handed out to a client of ours in that group."""
        return any(name == group for name, _ in self._logs)

    def _of(self, group: str) -> Iterator[tuple[Queue, _QueueLog]]:
        return ((queue, log) for (name, queue), log in self._logs.items() if name == group)

    def twice(self, group: str, begin: int, end: int) -> list[Twice]:
        """What was handed out again from ``begin`` on, before ``end`` (ms)."""
        found = []
        for queue, log in self._of(group):
            for number in range(bisect.bisect_left(log.again_times, begin), bisect.bisect_left(log.again_times, end)):
                first, again = (self._clients[who] for who in log.again[2 * number : 2 * number + 2])
                found.append(Twice(log.again_times[number], queue, log.again_offsets[number], first, again))
        return found

    def handed(self, group: str, begin: int, end: int) -> int:
        """Messages handed out in that time."""
        return sum(
            bisect.bisect_left(log.times, end) - bisect.bisect_left(log.times, begin) for _, log in self._of(group)
        )

    def known_until(self, group: str) -> int:
        """The time (ms) behind the newest message that was handed out; 0 where none was."""
        return max((log.times[-1] + 1 for _, log in self._of(group) if log.times), default=0)

    def pauses(self, group: str, begin: int, end: int, until: int) -> dict[Queue, int]:
        """Of each queue the longest time (ms) without a delivery that touches the stretch from ``begin`` to ``end``,
        looked for up to ``until``; queues that were not handed out on both sides are left out.
        """
        found = {}
        for queue, log in self._of(group):
            low = max(bisect.bisect_right(log.times, begin) - 1, 0)
            longest = 0
            for number in range(low, len(log.times) - 1):
                one, other = log.times[number], log.times[number + 1]
                if one > end or one > until:
                    break
                if other >= begin:
                    longest = max(longest, other - one)
            if longest and log.times[0] <= begin:
                found[queue] = longest
        return found

    def since(self, group: str, queue: Queue, end: int) -> int | None:
        """Ms from the last delivery of a queue before ``end`` up to then; None where there was none."""
        log = self._logs.get((group, queue))
        number = bisect.bisect_left(log.times, end) if log is not None else 0
        return end - log.times[number - 1] if log is not None and number else None

    def bursts(self, group: str, begin: int, end: int, until: int) -> dict[Queue, tuple[float, float]]:
        """Of each queue messages a second before a step, and at most after it."""
        found = {}
        for queue, log in self._of(group):
            first = bisect.bisect_left(log.times, begin - 5 * RATE_OVER)
            before = bisect.bisect_left(log.times, begin) - first
            since = max(begin - 5 * RATE_OVER, log.times[0] if log.times else begin)
            if before < 2 or begin - since < RATE_OVER:
                continue
            usual = before / (begin - since) * 1000
            most = 0.0
            low = bisect.bisect_left(log.times, end)
            high = bisect.bisect_right(log.times, min(until, end + AROUND))
            for number in range(low, high):
                then = bisect.bisect_left(log.times, log.times[number] - RATE_OVER, lo=low)
                most = max(most, (number - then + 1) / RATE_OVER * 1000)
            if most:
                found[queue] = (usual, most)
        return found

    def lists(self, group: str, begin: int, end: int) -> list[Shared]:
        """What clients saw and did in that time: where the list was another than before, or queues were taken or given
        up. The topic of messages that come again is left out.
        """
        last: dict[tuple[str, str], tuple[str, ...]] = {}
        found = []
        for one in self.shared:
            if one.group != group or one.topic.startswith(RETRY):
                continue
            other = last.get((one.client_id, one.topic)) != one.client_ids
            last[one.client_id, one.topic] = one.client_ids
            if begin <= one.at < end and (one.taken or one.given_up or other):
                found.append(one)
        return found
