"""Locks of queues for orderly consumption by one client of a group (docs/protocol/broker.md#locks,
docs/protocol/behaviour.md#locks).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from engine.callbacks import Clock

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
    """Locks of queues by group: the client that holds each queue; in memory only."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._locks: dict[str, dict[QueueName, _Lock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> list[QueueName]:
        """Lock ``queues`` for a client. Return those that it holds now: free ones, its own, and those whose lock
        expired.
        """
        now, locks = self._now(), self._locks.setdefault(group, {})
        granted = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None or lock.client_id == client_id or now - lock.since > LIVES_MS:
                locks[queue] = _Lock(client_id, now)
                granted.append(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> None:
        """Release the client's locks; those of other clients stay."""
        locks = self._locks.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]

    def is_held(self, group: str) -> bool:
        """Return True if any client of the group holds the queue: its retries go to the dead letters then (5.x)."""
        now = self._now()
        return any(now - lock.since <= LIVES_MS for lock in self._locks.get(group, {}).values())
