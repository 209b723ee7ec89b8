"""Pops that wait for messages, by topic, group and queue (docs/protocol/pop.md#holding).

Each hold has its own timer. Everything runs in one event loop, so nothing is locked. Java: ``PopLongPollingService``,
``PopRequest``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.broker.pull_message import Queue
from engine.callbacks import Clock
from engine.remoting.codes import Refused, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.message_filter import MessageFilter

EARLY_MS = 50
"""A hold ends this long before the time that its client requested."""
CONGESTED_RETRY_S = 1.0
"""Retry interval of a hold whose client does not read its answers."""


class PopKey(NamedTuple):
    """The requests that a message wakes; queue −1 stands for every queue, and is a key of its own."""

    topic: str
    group: str
    queue_id: int


@dataclass(slots=True, eq=False)
class HeldPop:
    """A request without messages yet. ``retry`` returns its answer, or None to wait further; it is called at ``until``
    (ms) at the latest.
    """

    request: Command
    connection: Connection
    key: PopKey
    until: int
    retry: Callable[[], Command | None]
    message_filter: MessageFilter | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _Holders:
    """Requests that wait at one key, earliest deadline first.

    ``seen_ends``: the end up to which each queue was searched.
    """

    waiting: list[HeldPop] = field(default_factory=list)
    seen_ends: dict[Queue, int] = field(default_factory=dict)


class PopHolds:
    """The table of waiting requests. ``limits`` returns how many may wait in all, and at one key (one more than
    that, as RocketMQ counts).
    """

    def __init__(self, now: Clock, limits: Callable[[], tuple[int, int]]) -> None:
        self._now = now
        self._limits = limits
        self._held: dict[PopKey, _Holders] = {}
        self._by_connection: dict[Connection, set[HeldPop]] = {}
        self._count = 0
        self.ended = False
        """True when the broker ends: no request waits any more."""

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> list[PopKey]:
        """Return the keys at which requests wait."""
        return list(self._held)

    def count(self, key: PopKey) -> int:
        """Return how many requests wait at a key."""
        holders = self._held.get(key)
        return 0 if holders is None else len(holders.waiting)

    def is_full(self, key: PopKey) -> bool:
        """Return True if one more request is too many."""
        max_total, max_per_key = self._limits()
        return self._count >= max_total or self.count(key) > max_per_key

    def is_late(self, until: int) -> bool:
        """Return True if the time of a hold is over."""
        return self._now() > until - EARLY_MS

    def hold(self, pop: HeldPop, ends: dict[Queue, int]) -> None:
        """Add a waiting request. ``ends`` are the queues whose messages wake it, with the offsets up to which it has
        looked.
        """
        holders = self._held.setdefault(pop.key, _Holders())
        if not holders.waiting:
            holders.seen_ends = ends
        index = next(
            (index for index, holder in enumerate(holders.waiting) if holder.until > pop.until), len(holders.waiting)
        )
        holders.waiting.insert(index, pop)
        self._count += 1
        self._by_connection.setdefault(pop.connection, set()).add(pop)
        delay_s = (pop.until - EARLY_MS + 1 - self._now()) / 1000
        pop.timer = asyncio.get_running_loop().call_later(max(delay_s, 0.0), self.wake, pop)

    def wake(self, pop: HeldPop) -> None:
        """Retry a request. If it finds nothing and has time left, it waits again.

        A client that does not read its answers gets none; its request stays.
        """
        if pop.connection.is_congested and not self.ended:
            if pop.timer is not None:
                pop.timer.cancel()
            pop.timer = asyncio.get_running_loop().call_later(CONGESTED_RETRY_S, self.wake, pop)
            return
        if not self.release(pop):
            return
        try:
            answer = pop.retry()
        except Refused as error:
            answer = answer_to(pop.request, error.code, fields=error.fields, remark=str(error))
        if answer is not None:
            pop.connection.send(answer)

    def wake_first(self, key: PopKey) -> bool:
        """Retry the request that has waited longest. Return False if none waits."""
        holders = self._held.get(key)
        longest_waiting = None if holders is None else self._first(holders)
        if longest_waiting is None:
            return False
        self.wake(longest_waiting)
        return True

    def _first(self, holders: _Holders) -> HeldPop | None:
        """Return the longest waiting request whose client reads its answers."""
        return next((pop for pop in holders.waiting if self.ended or not pop.connection.is_congested), None)

    def release(self, pop: HeldPop) -> bool:
        """Remove a waiting request. Return False if it did not wait."""
        holders = self._held.get(pop.key)
        if holders is None or pop not in holders.waiting:
            return False
        holders.waiting.remove(pop)
        self._count -= 1
        if not holders.waiting:
            del self._held[pop.key]
        if pop.timer is not None:
            pop.timer.cancel()
        of_connection = self._by_connection.get(pop.connection)
        if of_connection is not None:
            of_connection.discard(pop)
            if not of_connection:
                del self._by_connection[pop.connection]
        return True

    def grown(self, end_of: Callable[[Queue], int]) -> Iterator[tuple[HeldPop, Queue, int, int]]:
        """Yield for each key whose queues have grown its longest waiting request, the queue, and the old and new
        end. The new messages count as looked at.
        """
        for key in self.keys:
            for queue in list(self._held[key].seen_ends) if key in self._held else ():
                holders = self._held.get(key)
                if holders is None or queue not in holders.seen_ends:
                    break
                old_end, end = holders.seen_ends[queue], end_of(queue)
                if end > old_end:
                    longest_waiting = self._first(holders)
                    if longest_waiting is None:
                        break
                    holders.seen_ends[queue] = end
                    yield longest_waiting, queue, old_end, end

    def forget(self, connection: Connection) -> None:
        """Remove the requests of a closed connection."""
        for pop in list(self._by_connection.get(connection, ())):
            self.release(pop)

    def end(self) -> None:
        """The broker ends: retry every request a last time; none waits."""
        self.ended = True
        for key in self.keys:
            while self.wake_first(key):
                pass


def refusal_to_hold(table: PopHolds, key: PopKey, until: int, *, may_wait: bool) -> int | None:
    """Return the code of the answer to a request that finds nothing and may not wait; None if it waits."""
    if not may_wait or table.ended:
        return ResponseCode.POLLING_TIMEOUT
    if table.is_late(until):
        return ResponseCode.POLLING_TIMEOUT
    return ResponseCode.POLLING_FULL if table.is_full(key) else None
