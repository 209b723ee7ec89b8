"""Events of a client, as values: sends, rebalances, pulls, deliveries, commits.

An :class:`EventStream` hands them to functions at once, or keeps the latest in a ring that can be emptied later.
Without subscribers no event is created (:attr:`EventStream.has_subscribers`). Times are ms since the epoch.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from engine.client.routes import MessageQueue
from engine.older_names import renamed_attribute

RING_SIZE = 10_000
"""Default number of events in a ring. A full ring drops and counts its oldest events."""
RING = RING_SIZE  # the older name


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a client did or received.

    ``client_id`` is the id that brokers know, ``group`` the client's group.
    """

    time_ms: int
    client_id: str
    group: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The client has registered with its brokers."""


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """The client has ended; ``unregistered`` is False if it was killed."""

    unregistered: bool


@dataclass(frozen=True, slots=True)
class Paced(Event):
    """The client was paused or resumed, or its processing of each message was delayed by ``delay`` seconds."""

    paused: bool
    delay: float


@dataclass(frozen=True, slots=True)
class Sent(Event):
    """A message or a batch of ``count`` messages was stored, or sent one-way (``queue_offset`` −1)."""

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
    """A failed attempt to send; ``will_retry`` is True if another attempt follows."""

    queue: MessageQueue
    msg_id: str
    cause: str
    will_retry: bool
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
    """A consumer allocated the queues of a topic again.

    ``queues`` and ``client_ids`` are the lists that it allocated from; ``owned`` are the queues that it has now.
    ``refused`` queues are allocated to it, but could not be added now (locked by another client, no offset).
    """

    topic: str
    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    owned: tuple[MessageQueue, ...]
    added: tuple[MessageQueue, ...]
    released: tuple[MessageQueue, ...]
    refused: tuple[MessageQueue, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueueAcquired(Event):
    """The client reads the queue from now on, beginning at ``offset``."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class QueueReleased(Event):
    """The client no longer reads the queue. ``offset`` is the committed offset, −1 for none."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class PullSent(Event):
    """The client asks a broker for messages from ``offset`` on. The broker may hold the request until it has some."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class PullAnswered(Event):
    """The answer to a pull: ``status`` in RocketMQ's words, ``waited_ms`` between request and answer."""

    queue: MessageQueue
    status: str
    count: int
    next_offset: int
    max_offset: int
    waited_ms: float


@dataclass(frozen=True, slots=True)
class PullDelayed(Event):
    """A pull was delayed. ``reason`` is the flow control limit that delays it, or that the client is paused."""

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
    store_time_ms: int


@dataclass(frozen=True, slots=True)
class Consumed(Event):
    """The listener has processed ``count`` messages from ``queue_offset`` on; ``status`` is what it returned."""

    queue: MessageQueue
    queue_offset: int
    count: int
    status: str
    ms: float


@dataclass(frozen=True, slots=True)
class SentBack(Event):
    """A message that was not consumed was sent back: it is delivered again later, or becomes a dead letter."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str
    reconsume_times: int
    by_broker: bool


@dataclass(frozen=True, slots=True)
class Acknowledged(Event):
    """A popped message was acknowledged: it is not delivered again."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """The offset of a queue was saved: on the broker (acknowledged or one-way), or in the client's file."""

    queue: MessageQueue
    offset: int


@dataclass(frozen=True, slots=True)
class OffsetReset(Event):
    """A queue is read from another offset: by an administrator, by a seek, or because its broker moved the offset."""

    queue: MessageQueue
    offset: int
    reason: str


# Older names; all of them go with the next version.
_RENAMED_EVENTS = {"QueueTaken": QueueAcquired, "QueueGivenUp": QueueReleased, "PullPutOff": PullDelayed}
_RENAMED_FIELDS: tuple[tuple[type[Event], str, str], ...] = (
    (Event, "at", "time_ms"),
    (SendFailed, "words", "cause"),
    (SendFailed, "again", "will_retry"),
    (Rebalanced, "taken", "added"),
    (Rebalanced, "given_up", "released"),
    (PullAnswered, "held", "waited_ms"),
    (Delivered, "stored", "store_time_ms"),
)
"""Class, older name and name of each renamed field."""


def __getattr__(name: str) -> type[Event]:
    """Return an event class by its older name."""
    if name in _RENAMED_EVENTS:
        event_class = _RENAMED_EVENTS[name]
        warnings.warn(f"{name} is called {event_class.__name__} now", DeprecationWarning, stacklevel=2)
        return event_class
    raise AttributeError(name)


for _event_class, _old_name, _new_name in _RENAMED_FIELDS:
    setattr(_event_class, _old_name, renamed_attribute(_old_name, _new_name))


class EventRing:
    """The latest events that :meth:`take` has not returned yet."""

    def __init__(self, size: int = RING_SIZE) -> None:
        self._events: deque[Event] = deque(maxlen=size)
        self._added_count = 0
        self._taken_count = 0

    def put(self, event: Event) -> None:
        """Add an event; a full ring drops its oldest one."""
        self._added_count += 1
        self._events.append(event)

    def take(self) -> list[Event]:
        """Return the events since the last call, oldest first."""
        events = []
        while self._events:
            events.append(self._events.popleft())
        self._taken_count += len(events)
        return events

    @property
    def dropped(self) -> int:
        """Number of events that were dropped before :meth:`take` could return them."""
        return self._added_count - self._taken_count - len(self._events)


class EventStream:
    """The events of one client, or of several that share it. Functions are called by the client's event loop."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Event], None]] = []
        self.has_subscribers = False
        """True if there are subscribers."""

    wanted = renamed_attribute("wanted", "has_subscribers")

    def subscribe(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``on_event`` with each event from now on; the returned function ends that."""
        self._subscribers.append(on_event)
        self.has_subscribers = True

        def end() -> None:
            if on_event in self._subscribers:
                self._subscribers.remove(on_event)
            self.has_subscribers = bool(self._subscribers)

        return end

    def ring(self, size: int = RING_SIZE) -> EventRing:
        """Return a ring that gets each event from now on."""
        event_ring = EventRing(size)
        self.subscribe(event_ring.put)
        return event_ring

    def emit(self, event: Event) -> None:
        """Pass an event to all subscribers."""
        for on_event in tuple(self._subscribers):
            on_event(event)
