"""What a client sees and does, as values, for whoever watches: sends, rebalances, pulls, deliveries, commits.

A :class:`EventStream` hands them to functions at once, or keeps the latest in a ring that is emptied at leisure. With
nobody watching, an event is not even made (:attr:`EventStream.wanted`). Times are ms since the epoch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from engine.client.routes import MessageQueue

RING = 10_000
"""Events that a ring keeps; older ones are dropped, and counted."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a client saw or did. ``client_id`` is the id that brokers know, ``group`` the client's group."""

    at: int
    client_id: str
    group: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The client is known to its brokers."""


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """The client has ended; ``said_goodbye`` is False where it was killed."""

    said_goodbye: bool


@dataclass(frozen=True, slots=True)
class Paced(Event):
    """The client was paused, goes on, or takes ``delay`` seconds longer for each message."""

    paused: bool
    delay: float


@dataclass(frozen=True, slots=True)
class Sent(Event):
    """A message, or a batch of ``count``, is stored, or a one-way send is written (``queue_offset`` −1)."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str
    keys: str
    status: str
    tries: int
    count: int
    size: int
    ms: float


@dataclass(frozen=True, slots=True)
class SendFailed(Event):
    """One try to send failed; ``again`` where another follows."""

    queue: MessageQueue
    msg_id: str
    words: str
    again: bool
    ms: float


@dataclass(frozen=True, slots=True)
class TransactionEnded(Event):
    """A half message was decided: ``decision`` is COMMIT, ROLLBACK or UNKNOWN; ``checked`` where a broker asked."""

    topic: str
    msg_id: str
    decision: str
    checked: bool


@dataclass(frozen=True, slots=True)
class Rebalanced(Event):
    """A consumer shared a topic out anew: the lists that it saw, and what it took and gave up for them.

    ``refused`` queues are its own by allocation, and could not be taken now (locked elsewhere, no offset).
    """

    topic: str
    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    owned: tuple[MessageQueue, ...]
    taken: tuple[MessageQueue, ...]
    given_up: tuple[MessageQueue, ...]
    refused: tuple[MessageQueue, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueueTaken(Event):
    """A queue is read from now on, from ``offset``."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class QueueGivenUp(Event):
    """A queue is read no more; ``offset`` is what was committed for it, −1 for nothing."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class PullSent(Event):
    """A broker is asked for messages from ``offset`` on; it may hold the question."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class PullAnswered(Event):
    """The answer to a pull: ``status`` in RocketMQ's words, ``held`` ms between question and answer."""

    queue: MessageQueue
    status: str
    count: int
    next_offset: int
    max_offset: int
    held: float


@dataclass(frozen=True, slots=True)
class PullPutOff(Event):
    """No pull now: ``reason`` says which limit of flow control holds it, or that the consumer is paused."""

    queue: MessageQueue
    reason: str


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """A message is handed to the listener."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str
    keys: str
    reconsume_times: int
    stored: int


@dataclass(frozen=True, slots=True)
class Consumed(Event):
    """The listener is done with ``count`` messages from ``queue_offset`` on; ``status`` is its answer."""

    queue: MessageQueue
    queue_offset: int
    count: int
    status: str
    ms: float


@dataclass(frozen=True, slots=True)
class SentBack(Event):
    """A message that was not consumed goes back, to come again or to be a dead letter."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str
    reconsume_times: int
    by_broker: bool


@dataclass(frozen=True, slots=True)
class Acknowledged(Event):
    """A popped message is done with, and comes to nobody again."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """The offset of a queue was written: to the broker (answered or one-way), or to the client's file."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class OffsetReset(Event):
    """A queue is read from elsewhere: by an administrator's order, a seek, or because its broker moved the offset."""

    queue: MessageQueue
    offset: int
    reason: str


class EventRing:
    """The latest events until somebody takes them."""

    def __init__(self, size: int = RING) -> None:
        self._kept: deque[Event] = deque(maxlen=size)
        self._seen = 0
        self._taken = 0

    def put(self, event: Event) -> None:
        """Keep an event; the oldest goes where there is no room."""
        self._seen += 1
        self._kept.append(event)

    def take(self) -> list[Event]:
        """What came since the last time, oldest first."""
        found = []
        while self._kept:
            found.append(self._kept.popleft())
        self._taken += len(found)
        return found

    @property
    def dropped(self) -> int:
        """Events that went before anybody took them."""
        return self._seen - self._taken - len(self._kept)


class EventStream:
    """The events of one client, or of several that share it. Functions are called by the client's event loop."""

    def __init__(self) -> None:
        self._told: list[Callable[[Event], None]] = []
        self.wanted = False
        """Whether anybody watches."""

    def subscribe(self, told: Callable[[Event], None]) -> Callable[[], None]:
        """Hand each event from now on to ``told``; the answer ends that."""
        self._told.append(told)
        self.wanted = True

        def end() -> None:
            if told in self._told:
                self._told.remove(told)
            self.wanted = bool(self._told)

        return end

    def ring(self, size: int = RING) -> EventRing:
        """A ring that gets each event from now on."""
        found = EventRing(size)
        self.subscribe(found.put)
        return found

    def emit(self, event: Event) -> None:
        """Tell all who watch."""
        for told in tuple(self._told):
            told(event)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
