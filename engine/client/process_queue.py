"""The messages of one queue that a consumer holds: pulled, but not consumed yet
(docs/protocol/clients.md#pull-loop). Passive.

Java: ``ProcessQueue``. Times are ms on the client's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.client.messages import ReceivedMessage
from engine.client.routes import MessageQueue

LOCK_LIVES = 30_000
"""Milliseconds after which a client counts its own lock as lost, if it was not renewed."""
PULL_EXPIRES = 120_000
"""Milliseconds without a pull after which a queue is dropped and taken again."""


@dataclass(slots=True, eq=False)
class ProcessQueue:
    """Messages that are held of ``queue``. ``next_offset`` is where the next pull begins.

    A queue that is ``dropped`` belongs to another client: nothing more of it is delivered, committed or pulled.
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
    """Largest offset of all messages that were ever held."""
    held: dict[int, ReceivedMessage] = field(default_factory=dict)
    _order: deque[int] = field(default_factory=deque)
    _taken_messages: dict[int, ReceivedMessage] = field(default_factory=dict)

    def is_ours(self) -> bool:
        """Return True if the queue was not dropped."""
        return not self.dropped

    @property
    def count(self) -> int:
        """Number of messages held, with those that are being consumed."""
        return len(self.held)

    @property
    def lowest(self) -> int | None:
        """Offset of the oldest message that is held."""
        order, held_messages = self._order, self.held
        while order and order[0] not in held_messages:
            order.popleft()
        return order[0] if order else None

    @property
    def span(self) -> int:
        """Offsets between the oldest and the newest message that is held."""
        lowest_offset = self.lowest
        return 0 if lowest_offset is None else self._order[-1] - lowest_offset

    def put(self, messages: Iterable[ReceivedMessage]) -> None:
        """Hold pulled messages, in the order of offsets."""
        held_messages = self.held
        for message in messages:
            offset = message.queue_offset
            if offset not in held_messages:
                held_messages[offset] = message
                self._order.append(offset)
                self.size += len(message.body)
                self.highest = max(self.highest, offset)

    def remove(self, messages: Iterable[ReceivedMessage]) -> int:
        """Remove consumed messages. Return the offset to commit: the oldest that is still held, or the one behind
        the newest ever; −1 if nothing was held.
        """
        if not self.held:
            return -1
        for message in messages:
            if self.held.pop(message.queue_offset, None) is not None:
                self.size -= len(message.body)
        lowest_offset = self.lowest
        return self.highest + 1 if lowest_offset is None else lowest_offset

    def take(self, max_messages: int) -> list[ReceivedMessage]:
        """Take the oldest messages that nobody has taken, for consumption in order; they stay held until
        :meth:`commit`.
        """
        messages: list[ReceivedMessage] = []
        for offset in self._order:
            if len(messages) == max_messages:
                break
            if offset in self.held and offset not in self._taken_messages:
                messages.append(self.held[offset])
        self._taken_messages.update((message.queue_offset, message) for message in messages)
        return messages

    def commit(self) -> int:
        """Remove the taken messages. Return the offset to commit, −1 for none."""
        if not self._taken_messages:
            return -1
        last_offset = max(self._taken_messages)
        for offset, message in self._taken_messages.items():
            if self.held.pop(offset, None) is not None:
                self.size -= len(message.body)
        self._taken_messages.clear()
        return last_offset + 1

    def give_back(self, messages: Sequence[ReceivedMessage]) -> None:
        """Give back taken messages; they are consumed again."""
        for message in messages:
            self._taken_messages.pop(message.queue_offset, None)

    def clear(self) -> None:
        """Drop all messages."""
        self.held.clear()
        self._order.clear()
        self._taken_messages.clear()
        self.size = 0

    def is_locked(self, now: int) -> bool:
        """Return True if the broker's lock is still this client's."""
        return self.locked and now - self.locked_at <= LOCK_LIVES

    def is_stuck(self, now: int) -> bool:
        """Return True if no pull was made for so long that the queue is taken again."""
        return now - self.pulled_at > PULL_EXPIRES
