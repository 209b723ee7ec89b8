"""Pops and notifications that wait for a message: by topic, group and queue (docs/protocol/pop.md#holding).

Passive but for its timers: each hold ends at its own time. Java: ``PopLongPollingService``, ``PopRequest``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.broker.held_pulls import Queue
from engine.remoting.codes import Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.message_filter import MessageFilter

EARLY_MS = 50
"""A hold ends that long before the time that its client asked for."""
CONGESTED_S = 1.0
"""Seconds from one look to the next at a hold whose client does not read its answers."""


class Key(NamedTuple):
    """Whom a message wakes; queue −1 is every queue, and a key of its own."""

    topic: str
    group: str
    queue_id: int


@dataclass(slots=True, eq=False)
class HeldPop:
    """A request that found nothing. ``again`` answers it, None where it waits on; at the latest at ``until`` (ms)."""

    request: Command
    connection: Connection
    key: Key
    until: int
    again: Callable[[], Command | None]
    wanted: MessageFilter | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _Holders:
    """Who waits at one key, whose time ends first in front; ``seen`` tells how far each queue has been looked at."""

    waiting: list[HeldPop] = field(default_factory=list)
    seen: dict[Queue, int] = field(default_factory=dict)


class PopHolds:
    """The table. ``limits`` gives how many may wait in all, and at one key (one more than that, as RocketMQ counts)."""

    def __init__(self, now: Callable[[], int], limits: Callable[[], tuple[int, int]]) -> None:
        self._now = now
        self._limits = limits
        self._held: dict[Key, _Holders] = {}
        self._by_connection: dict[Connection, set[HeldPop]] = {}
        self._count = 0
        self.ended = False
        """The broker ends: nobody waits any more."""

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> list[Key]:
        """Where somebody waits."""
        return list(self._held)

    def count(self, key: Key) -> int:
        """How many wait there."""
        held = self._held.get(key)
        return 0 if held is None else len(held.waiting)

    def is_full(self, key: Key) -> bool:
        """Whether one more is too many."""
        most, most_at = self._limits()
        return self._count >= most or self.count(key) > most_at

    def is_late(self, until: int) -> bool:
        """Whether the time of a hold is over."""
        return self._now() > until - EARLY_MS

    def hold(self, pop: HeldPop, ends: dict[Queue, int]) -> None:
        """One more. ``ends`` are the queues whose messages wake it, with the offsets that it has looked at."""
        held = self._held.setdefault(pop.key, _Holders())
        if not held.waiting:
            held.seen = ends
        at = next((at for at, one in enumerate(held.waiting) if one.until > pop.until), len(held.waiting))
        held.waiting.insert(at, pop)
        self._count += 1
        self._by_connection.setdefault(pop.connection, set()).add(pop)
        late = (pop.until - EARLY_MS + 1 - self._now()) / 1000
        pop.timer = asyncio.get_running_loop().call_later(max(late, 0.0), self.wake, pop)

    def wake(self, pop: HeldPop) -> None:
        """Ask it again; where it finds nothing and has time left it holds itself anew. Whoever does not read is handed
        nothing, and stays.
        """
        if pop.connection.is_congested and not self.ended:
            if pop.timer is not None:
                pop.timer.cancel()
            pop.timer = asyncio.get_running_loop().call_later(CONGESTED_S, self.wake, pop)
            return
        if not self.release(pop):
            return
        try:
            answer = pop.again()
        except Refused as error:
            answer = answer_to(pop.request, error.code, fields=error.fields, remark=str(error))
        if answer is not None:
            pop.connection.send(answer)

    def wake_first(self, key: Key) -> bool:
        """Ask who has waited longest; whether anybody waited."""
        held = self._held.get(key)
        first = None if held is None else self._first(held)
        if first is None:
            return False
        self.wake(first)
        return True

    def _first(self, held: _Holders) -> HeldPop | None:
        """Who has waited longest of those that read their answers."""
        return next((pop for pop in held.waiting if self.ended or not pop.connection.is_congested), None)

    def release(self, pop: HeldPop) -> bool:
        """It waits no more; whether it did."""
        held = self._held.get(pop.key)
        if held is None or pop not in held.waiting:
            return False
        held.waiting.remove(pop)
        self._count -= 1
        if not held.waiting:
            del self._held[pop.key]
        if pop.timer is not None:
            pop.timer.cancel()
        of = self._by_connection.get(pop.connection)
        if of is not None:
            of.discard(pop)
            if not of:
                del self._by_connection[pop.connection]
        return True

    def grown(self, end_of: Callable[[Queue], int]) -> Iterator[tuple[HeldPop, Queue, int, int]]:
        """Of each key whose queues have grown: its first holder, the queue, and the offsets between which messages are
        new. They are taken as looked at.
        """
        for key in self.keys:
            for queue in list(self._held[key].seen) if key in self._held else ():
                held = self._held.get(key)
                if held is None or queue not in held.seen:
                    break
                before, end = held.seen[queue], end_of(queue)
                if end > before:
                    first = self._first(held)
                    if first is None:
                        break
                    held.seen[queue] = end
                    yield first, queue, before, end

    def forget(self, connection: Connection) -> None:
        """A connection has ended: nothing waits for it."""
        for pop in list(self._by_connection.get(connection, ())):
            self.release(pop)

    def end(self) -> None:
        """The broker ends: everybody is asked a last time, and nobody waits."""
        self.ended = True
        for key in self.keys:
            while self.wake_first(key):
                pass
