"""The messages of one queue that a consumer holds: pulled, and not yet done with (docs/protocol/clients.md#pull-loop).
Passive.

Java: ``ProcessQueue``. Times are ms on the client's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.client.messages import ReceivedMessage
from engine.client.routes import MessageQueue

LOCK_LIVES = 30_000
"""Milliseconds after which a client counts its own lock as lost, where it was not renewed."""
PULL_EXPIRES = 120_000
"""Milliseconds without a pull after which a queue is dropped and taken anew."""


@dataclass(slots=True, eq=False)
class ProcessQueue:
    """What is held of ``queue``. ``next_offset`` is where the next pull begins.

    A queue that is ``dropped`` belongs to somebody else: nothing more of it is delivered, committed or pulled.
    """

    queue: MessageQueue
    next_offset: int = 0
    dropped: bool = False
    paused: bool = False
    locked: bool = False
    locked_at: int = 0
    pulled_at: int = 0
    consumed_at: int = 0
    size: int = 0
    """Bytes of the bodies that are held."""
    from_broker: int = 0
    """Id of the broker that is pulled from."""
    highest: int = 0
    """Offset of the newest message that was ever held."""
    held: dict[int, ReceivedMessage] = field(default_factory=dict)
    _order: deque[int] = field(default_factory=deque)
    _taken: dict[int, ReceivedMessage] = field(default_factory=dict)

    def is_ours(self) -> bool:
        """Whether it was not dropped."""
        return not self.dropped

    @property
    def count(self) -> int:
        """Messages that are held, those that are consumed just now with them."""
        return len(self.held)

    @property
    def lowest(self) -> int | None:
        """Offset of the oldest message that is held."""
        order, held = self._order, self.held
        while order and order[0] not in held:
            order.popleft()
        return order[0] if order else None

    @property
    def span(self) -> int:
        """Offsets between the oldest and the newest message that is held."""
        low = self.lowest
        return 0 if low is None else self._order[-1] - low

    def put(self, messages: Iterable[ReceivedMessage]) -> None:
        """Hold what was pulled, in the order of offsets."""
        held = self.held
        for one in messages:
            at = one.queue_offset
            if at not in held:
                held[at] = one
                self._order.append(at)
                self.size += len(one.body)
                self.highest = max(self.highest, at)

    def remove(self, messages: Iterable[ReceivedMessage]) -> int:
        """Done with these: the offset to be committed, the oldest that is left or behind the newest ever; −1 where
        nothing was held.
        """
        if not self.held:
            return -1
        for one in messages:
            if self.held.pop(one.queue_offset, None) is not None:
                self.size -= len(one.body)
        low = self.lowest
        return self.highest + 1 if low is None else low

    def take(self, most: int) -> list[ReceivedMessage]:
        """The oldest messages that nobody has taken, for consumption in order; they stay held until :meth:`commit`."""
        found: list[ReceivedMessage] = []
        for at in self._order:
            if len(found) == most:
                break
            if at in self.held and at not in self._taken:
                found.append(self.held[at])
        self._taken.update((one.queue_offset, one) for one in found)
        return found

    def commit(self) -> int:
        """Done with what was taken: the offset to be committed, −1 for none."""
        if not self._taken:
            return -1
        last = max(self._taken)
        for at, one in self._taken.items():
            if self.held.pop(at, None) is not None:
                self.size -= len(one.body)
        self._taken.clear()
        return last + 1

    def give_back(self, messages: Sequence[ReceivedMessage]) -> None:
        """These were taken, and are consumed again."""
        for one in messages:
            self._taken.pop(one.queue_offset, None)

    def clear(self) -> None:
        """Hold nothing."""
        self.held.clear()
        self._order.clear()
        self._taken.clear()
        self.size = 0

    def is_locked(self, now: int) -> bool:
        """Whether the broker's lock is this client's still."""
        return self.locked and now - self.locked_at <= LOCK_LIVES

    def is_stuck(self, now: int) -> bool:
        """Whether no pull was made for so long that the queue is taken anew."""
        return now - self.pulled_at > PULL_EXPIRES
