"""Queues that one consumer of a group alone reads, in order (docs/protocol/broker.md#locks,
docs/protocol/behaviour.md#locks). Java: ``RebalanceLockManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

LIVES_MS = 60_000


class QueueName(NamedTuple):
    """A queue as clients name it."""

    broker_name: str
    topic: str
    queue_id: int


@dataclass(slots=True)
class _Lock:
    client_id: str
    since: int


class QueueLocks:
    """Who holds which queue of which group; in memory only."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._locks: dict[str, dict[QueueName, _Lock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> list[QueueName]:
        """Those of ``queues`` that the client holds now: free ones, its own, and those whose time was over."""
        now, held = self._now(), self._locks.setdefault(group, {})
        granted = []
        for queue in queues:
            lock = held.get(queue)
            if lock is None or lock.client_id == client_id or now - lock.since > LIVES_MS:
                held[queue] = _Lock(client_id, now)
                granted.append(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> None:
        """The client holds them no more; those of others stay."""
        held = self._locks.get(group, {})
        for queue in queues:
            lock = held.get(queue)
            if lock is not None and lock.client_id == client_id:
                del held[queue]

    def is_held(self, group: str) -> bool:
        """Whether a queue of the group is held by anybody: its retries go to the dead letters then (5.x)."""
        now = self._now()
        return any(now - lock.since <= LIVES_MS for lock in self._locks.get(group, {}).values())
