"""Answers that wait for slaves under ``brokerRole=SYNC_MASTER`` (docs/protocol/behaviour.md#waits;
docs/formats/writing.md#put, docs/formats/replication.md). The message is stored, whatever they end with.

Since 5.x a put waits until ``inSyncReplicas`` stores have it, this one among them: with 1, which is the default, nobody
waits. Before, it always waits for one slave, and not at all where none is linked or the nearest is far behind.
Java: ``HAService``, ``GroupTransferService``.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.config import MessageStoreConfig
from engine.releases import Release, rules_of
from engine.store.put_message import PutMessageStatus

_OK, _TIMEOUT = PutMessageStatus.PUT_OK, PutMessageStatus.FLUSH_SLAVE_TIMEOUT


@dataclass(slots=True)
class _Waiting:
    end: int
    deadline: float
    on_status: Callable[[PutMessageStatus], None] | None


class SlaveWaits:
    """Puts that wait for slaves, in the order of their ends. ``wrote`` returns the log's end; offsets are of the
    log.
    """

    def __init__(self, config: MessageStoreConfig, release: Release, wrote: Callable[[], int]) -> None:
        self._always = rules_of(release).major < 5
        self._needed = 1 if self._always else config.in_sync_replicas - 1
        self._timeout_s = config.slave_timeout / 1000
        self._far = config.ha_slave_fallbehind_max
        self._wrote = wrote
        self._by_end: list[tuple[int, int, _Waiting]] = []
        self._by_time: deque[_Waiting] = deque()
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._pushed = 0
        self.are_asked_for = config.broker_role == "SYNC_MASTER" and self._needed > 0
        """True if puts wait for slaves at all."""
        self.acknowledged: Callable[[], Sequence[int]] = tuple
        """Returns the offset that each connected slave acknowledged."""
        self.hurry: Callable[[], None] = lambda: None
        """Called when a put begins to wait: the log must be sent now."""

    def wait(self, end: int, on_status: Callable[[PutMessageStatus], None]) -> None:
        """Call ``on_status`` once, now or later, with the result of a put whose last byte stands before ``end``:
        PUT_OK, FLUSH_SLAVE_TIMEOUT after ``slaveTimeout``, SLAVE_NOT_AVAILABLE (before 5.x).
        """
        if self._always and not self._one_is_near():
            on_status(PutMessageStatus.SLAVE_NOT_AVAILABLE)
            return
        if self._reached() >= end:
            on_status(_OK)
            return
        loop = asyncio.get_running_loop()
        waiting = _Waiting(end, loop.time() + self._timeout_s, on_status)
        heapq.heappush(self._by_end, (end, next(self._numbers), waiting))
        self._by_time.append(waiting)
        if self._timer is None:
            self._timer = loop.call_at(waiting.deadline, self._late)
        self.hurry()

    def answer_covered(self) -> None:
        """Answer the puts that are covered after a slave came, went, or acknowledged an offset."""
        if not self.are_asked_for:
            return
        reached = self._reached()
        while self._by_end and self._by_end[0][0] <= reached:
            self._tell(heapq.heappop(self._by_end)[2], _OK)

    def end(self) -> None:
        """Stop waiting for slaves."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiting in self._by_time:
            self._tell(waiting, _TIMEOUT)
        self._by_time.clear()
        self._by_end.clear()

    def _one_is_near(self) -> bool:
        self._note()
        return bool(self.acknowledged()) and self._wrote() - self._pushed < self._far

    def _note(self) -> None:
        """Note the furthest offset that any slave ever acknowledged: a slave that leaves takes nothing back."""
        self._pushed = max(self._pushed, *self.acknowledged(), 0)

    def _reached(self) -> int:
        """Return the offset up to which as many slaves as are needed have the log; −1 if there are too few."""
        if self._always:
            self._note()
            return self._pushed
        furthest = sorted(self.acknowledged(), reverse=True)
        return furthest[self._needed - 1] if len(furthest) >= self._needed else -1

    def _late(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        while self._by_time and (self._by_time[0].on_status is None or self._by_time[0].deadline <= loop.time()):
            self._tell(self._by_time.popleft(), _TIMEOUT)
        while self._by_end and self._by_end[0][2].on_status is None:
            heapq.heappop(self._by_end)
        if self._by_time:
            self._timer = loop.call_at(self._by_time[0].deadline, self._late)

    def _tell(self, waiting: _Waiting, status: PutMessageStatus) -> None:
        on_status, waiting.on_status = waiting.on_status, None
        if on_status is not None:
            on_status(status)
