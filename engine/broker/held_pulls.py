"""Pulls that wait for a message: values in a table by queue (docs/protocol/behaviour.md#long-polling). Java:
``PullRequestHoldService``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.remoting.connection import Connection
from engine.remoting.frame import Command

Queue = tuple[str, int]
"""Topic and queue id."""


@dataclass(slots=True, eq=False)
class HeldPull:
    """A pull that found nothing behind ``offset``; ``again`` answers it, at the latest at ``until`` (ms)."""

    request: Command
    connection: Connection
    queue: Queue
    offset: int
    until: int
    again: Callable[[], Command | None]
    matches: Callable[[int, int], bool] | None = None
    """Whether entries between two queue offsets hold one for it; None: any."""


class HeldPulls:
    """The table."""

    def __init__(self) -> None:
        self._by_queue: dict[Queue, list[HeldPull]] = {}
        self._by_connection: dict[Connection, set[HeldPull]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_queue.values()))

    def __iter__(self) -> Iterator[HeldPull]:
        for held in self._by_queue.values():
            yield from held

    @property
    def queues(self) -> list[Queue]:
        """Queues that somebody waits at."""
        return list(self._by_queue)

    def at(self, queue: Queue) -> list[HeldPull]:
        """Those that wait at a queue."""
        return list(self._by_queue.get(queue, ()))

    def by_group(self) -> dict[Queue, dict[str, int]]:
        """How many of each consumer group wait at each queue."""
        found: dict[Queue, dict[str, int]] = {}
        for queue, waiting in self._by_queue.items():
            groups = found.setdefault(queue, {})
            for pull in waiting:
                name = pull.request.fields.get("consumerGroup", "")
                groups[name] = groups.get(name, 0) + 1
        return found

    def hold(self, pull: HeldPull) -> None:
        """One more."""
        self._by_queue.setdefault(pull.queue, []).append(pull)
        self._by_connection.setdefault(pull.connection, set()).add(pull)

    def release(self, pull: HeldPull) -> None:
        """It is answered."""
        waiting = self._by_queue.get(pull.queue)
        if waiting is None or pull not in waiting:
            return
        waiting.remove(pull)
        if not waiting:
            del self._by_queue[pull.queue]
        of = self._by_connection.get(pull.connection)
        if of is not None:
            of.discard(pull)
            if not of:
                del self._by_connection[pull.connection]

    def forget(self, connection: Connection) -> None:
        """A connection has ended: nothing waits for it."""
        for pull in list(self._by_connection.get(connection, ())):
            self.release(pull)
