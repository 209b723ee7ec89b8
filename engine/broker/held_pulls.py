"""Pulls that wait for a message: a table by queue (docs/protocol/behaviour.md#long-polling)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.remoting.connection import Connection
from engine.remoting.frame import Command

Queue = tuple[str, int]
"""Topic and queue id."""


@dataclass(slots=True, eq=False)
class HeldPull:
    """A pull that found nothing behind ``offset``; ``retry`` answers it, at the latest at ``until`` (ms)."""

    request: Command
    connection: Connection
    queue: Queue
    offset: int
    until: int
    retry: Callable[[], Command | None]
    matches: Callable[[int, int], bool] | None = None
    """Returns True if an entry between two queue offsets matches; None: every entry matches."""


class HeldPulls:
    """The table of waiting pulls."""

    def __init__(self) -> None:
        self._by_queue: dict[Queue, list[HeldPull]] = {}
        self._by_connection: dict[Connection, set[HeldPull]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_queue.values()))

    def __iter__(self) -> Iterator[HeldPull]:
        for pulls in self._by_queue.values():
            yield from pulls

    @property
    def queues(self) -> list[Queue]:
        """Return the queues at which pulls wait."""
        return list(self._by_queue)

    def at(self, queue: Queue) -> list[HeldPull]:
        """Return the pulls that wait at a queue."""
        return list(self._by_queue.get(queue, ()))

    def by_group(self) -> dict[Queue, dict[str, int]]:
        """Count the waiting pulls of each consumer group at each queue."""
        counts: dict[Queue, dict[str, int]] = {}
        for queue, waiting in self._by_queue.items():
            groups = counts.setdefault(queue, {})
            for pull in waiting:
                name = pull.request.fields.get("consumerGroup", "")
                groups[name] = groups.get(name, 0) + 1
        return counts

    def hold(self, pull: HeldPull) -> None:
        """Add a waiting pull."""
        self._by_queue.setdefault(pull.queue, []).append(pull)
        self._by_connection.setdefault(pull.connection, set()).add(pull)

    def release(self, pull: HeldPull) -> None:
        """Remove an answered pull."""
        waiting = self._by_queue.get(pull.queue)
        if waiting is None or pull not in waiting:
            return
        waiting.remove(pull)
        if not waiting:
            del self._by_queue[pull.queue]
        of_connection = self._by_connection.get(pull.connection)
        if of_connection is not None:
            of_connection.discard(pull)
            if not of_connection:
                del self._by_connection[pull.connection]

    def forget(self, connection: Connection) -> None:
        """Remove the pulls of a closed connection."""
        for pull in list(self._by_connection.get(connection, ())):
            self.release(pull)
