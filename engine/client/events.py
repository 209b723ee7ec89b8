"""Events of a client, as values: sends, rebalances, pulls, deliveries, commits.

A :class:`EventStream` hands them to functions at once, or keeps the latest in a ring that can be emptied later.
Without subscribers no event is created (:attr:`EventStream.wanted`). Times are ms since the epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from engine.client.routes import MessageQueue

RING = 10_000
"""Events that a ring keeps; older ones are dropped, and counted."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a client did or received.

    ``client_id`` is the id that brokers know, ``group`` the client's group.
    """

    at: int
    client_id: str
    group: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The client is registered with its brokers."""


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """The client has ended; ``unregistered`` is False where it was killed."""

    unregistered: bool


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
    """A failed attempt to send; ``again`` is True if another attempt follows."""

    queue: MessageQueue
    msg_id: str
    words: str
    again: bool
    ms: float


@dataclass(frozen=True, slots=True)
class TransactionEnded(Event):
    """A half message was decided: COMMIT, ROLLBACK or UNKNOWN; ``checked`` is True if a broker asked."""

    topic: str
    msg_id: str
    decision: str
    checked: bool


@dataclass(frozen=True, slots=True)
class Rebalanced(Event):
    """A consumer shared a topic out anew: the lists that it used, and the queues that it took and gave up.

    ``refused`` queues are its own by allocation, but could not be taken now (locked elsewhere, no offset).

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
    """A queue is read no more; ``offset`` is the committed offset, −1 for none."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class PullSent(Event):
    """A broker is asked for messages from ``offset`` on; it may hold the request."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class PullAnswered(Event):
    """The answer to a pull: ``status`` in RocketMQ's words, ``held`` ms between request and answer."""

    queue: MessageQueue
    status: str
    count: int
    next_offset: int
    max_offset: int
    held: float


@dataclass(frozen=True, slots=True)
class PullPutOff(Event):
    """A pull that is put off. ``reason`` is the limit of flow control that delays it, or that the client is paused."""

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
    """A message that was not consumed goes back; it comes again, or becomes a dead letter."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str
    reconsume_times: int
    by_broker: bool


@dataclass(frozen=True, slots=True)
class Acknowledged(Event):
    """A popped message is acknowledged, and does not come again."""

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
    """A queue is read from another offset: by an administrator, by a seek, or because its broker moved the offset."""

    queue: MessageQueue
    offset: int
    reason: str


class EventRing:
    """A ring of the latest events, until :meth:`take`."""

    def __init__(self, size: int = RING) -> None:
        self._kept: deque[Event] = deque(maxlen=size)
        self._seen = 0
        self._taken = 0

    def put(self, event: Event) -> None:
        """Add an event; a full ring drops its oldest one."""
        self._seen += 1
        self._kept.append(event)

    def take(self) -> list[Event]:
        """Return the events since the last call, oldest first."""
        events = []
        while self._kept:
            events.append(self._kept.popleft())
        self._taken += len(events)
        return events

    @property
    def dropped(self) -> int:
        """Number of events that were dropped before they were taken."""
        return self._seen - self._taken - len(self._kept)


class EventStream:
    """The events of one client, or of several that share it. Functions are called by the client's event loop."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Event], None]] = []
        self.wanted = False
        """True if there are subscribers."""

    def subscribe(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``on_event`` with each event from now on; the returned function ends that."""
        self._subscribers.append(on_event)
        self.wanted = True

        def end() -> None:
            if on_event in self._subscribers:
                self._subscribers.remove(on_event)
            self.wanted = bool(self._subscribers)

        return end

    def ring(self, size: int = RING) -> EventRing:
        """Return a ring that gets each event from now on."""
        event_ring = EventRing(size)
        self.subscribe(event_ring.put)
        return event_ring

    def emit(self, event: Event) -> None:
        """Pass an event to all subscribers."""
        for on_event in tuple(self._subscribers):
            on_event(event)
