"""Checkpoints and acknowledgements of pops (docs/protocol/pop.md#checkpoints; docs/formats/transactions.md#pop).

They are stored in the revive topic, where :mod:`engine.broker.pop_revive` matches them. A group's offset is committed
once the checkpoints before it are stored.

RocketMQ may keep checkpoints in memory for some seconds and merge acknowledgements into them (``enablePopBufferMerge``,
off by default). Here that key has no effect: each checkpoint is stored before its messages are handed out, each
acknowledgement before it is answered, as with RocketMQ's default. A store written with the key on holds fewer records
of the same kind, so both kinds of brokers can continue each other's stores. Java:
``PopBufferMergeService.addCkJustOffset``, ``PopMessageProcessor.buildCkMsg``, ``AckMessageProcessor.appendAck``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.broker.send_message import STORED_CODES, Pending, put_later
from engine.codec import pop as codec
from engine.codec import properties
from engine.codec.encode import Message
from engine.codec.pop import CheckPoint
from engine.remoting.connection import Connection
from engine.remoting.frame import Command
from engine.store.put_message import PutMessageResult

if TYPE_CHECKING:
    from engine.broker.broker import Broker


@dataclass(slots=True)
class PendingOffset:
    """An offset that a group's pops have reached in a queue; it may be committed when its checkpoint is ``stored``."""

    offset: int
    stored: bool = False


@dataclass(slots=True)
class UnstoredCheckpoint:
    """A checkpoint that could not be stored; the put is retried."""

    check_point: CheckPoint
    revive_queue: int
    pending: PendingOffset


@dataclass(slots=True)
class ReviveQueue:
    """State of one revive queue.

    ``handled_offset`` is that of the last finished checkpoint, −1 before the first; ``next_offset`` is read next; all
    that is due up to ``end_ms`` has been read. Checkpoints and their acknowledged offsets are stored by merge key.
    """

    handled_offset: int = -1
    next_offset: int = 0
    end_ms: int = 0
    check_points: dict[str, CheckPoint] = field(default_factory=dict)
    acked_offsets: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class PopState:
    """Messages that pops have read and not committed yet.

    ``pending_offsets`` are by group, topic and queue, in the order in which pops reached them. They are committed from
    the front, so that a group's offset never passes a checkpoint that is not stored. Pops use the revive queues in
    turn, by ``count``.
    """

    count: int = 0
    pending_offsets: dict[tuple[str, str, int], deque[PendingOffset]] = field(default_factory=dict)
    unstored: list[UnstoredCheckpoint] = field(default_factory=list)
    revive_queues: list[ReviveQueue] = field(default_factory=list)
    popping_groups: set[tuple[str, str]] = field(default_factory=set)
    """Groups that have popped, with their topics."""
    in_flight: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Messages handed out and neither acknowledged nor revived, by group, topic and queue."""

    def latest(self, group: str, topic: str, queue_id: int) -> int:
        """Return the offset at which the next pop continues; −1 if none is pending: then at the committed offset."""
        waiting = self.pending_offsets.get((group, topic, queue_id))
        return waiting[-1].offset if waiting else -1

    def clear(self, group: str, topic: str, queue_id: int) -> None:
        """Drop the pending offsets, after an administrator has set the group's offset."""
        self.pending_offsets.pop((group, topic, queue_id), None)
        self.in_flight.pop((group, topic, queue_id), None)

    def done(self, group: str, topic: str, queue_id: int, count: int = 1) -> None:
        """Count messages that were acknowledged or revived as no longer in flight."""
        remaining = self.in_flight.pop((group, topic, queue_id), 0) - count
        if remaining > 0:
            self.in_flight[group, topic, queue_id] = remaining


CHECK_POINT, ACK = "CK", "ACK"
"""Names of the kinds of records in statistics."""
EARLY_MS = 1_000
"""Checkpoints reach their revive queue this long before their messages become visible again, so that they come before
acknowledgements.
"""


def add_pending_offset(
    broker: Broker, group: str, topic: str, queue_id: int, offset: int, *, stored: bool = False
) -> PendingOffset:
    """Record that a pop reached ``offset``; call :func:`commit_stored_offsets` when its checkpoint is stored."""
    pending = PendingOffset(offset, stored)
    broker.popped.pending_offsets.setdefault((group, topic, queue_id), deque()).append(pending)
    if stored:
        commit_stored_offsets(broker, group, topic, queue_id)
    return pending


def commit_stored_offsets(broker: Broker, group: str, topic: str, queue_id: int) -> None:
    """Commit the leading offsets whose checkpoints are stored."""
    pending_offsets = broker.popped.pending_offsets
    waiting = pending_offsets.get((group, topic, queue_id))
    while waiting and waiting[0].stored:
        broker.store.tables.commit_consumer_offset(group, topic, queue_id, waiting.popleft().offset)
    if waiting is not None and not waiting:
        del pending_offsets[group, topic, queue_id]


def check_point_message(broker: Broker, check_point: codec.CheckPoint, revive_queue: int) -> Message:
    """Return the timer message that brings a checkpoint to its revive queue."""
    return _message(
        broker,
        check_point.body(),
        codec.CHECK_POINT_TAG,
        check_point.unique_key,
        check_point.due - EARLY_MS,
        revive_queue,
    )


def ack_message(broker: Broker, ack: codec.Ack, due: int, revive_queue: int) -> Message:
    """Return the timer message that brings an acknowledgement to the revive queue of its checkpoint."""
    return _message(broker, ack.body(), ack.tag, ack.unique_key, due, revive_queue)


def _message(broker: Broker, body: bytes, tag: str, key: str, due: int, revive_queue: int) -> Message:
    message_properties = {properties.TIMER_DELIVER_MS: str(due), properties.UNIQUE_KEY: key, properties.TAGS: tag}
    return Message(
        codec.revive_topic(broker.config.cluster),
        body,
        revive_queue,
        message_properties,
        born_timestamp=broker.now(),
        born_host=own_host(broker),
    )


def own_host(broker: Broker) -> str:
    """Return ``ip:port``, the born host of the broker's own messages."""
    return broker.address or broker.store.parts.commit_log.store_host


def is_stored(result: PutMessageResult) -> bool:
    """Return True if the message is stored, even if it was not flushed or copied in time."""
    return result.status in STORED_CODES


def count_record(broker: Broker, record: codec.CheckPoint | codec.Ack, result: PutMessageResult) -> None:
    """Count a record for the revive topic by the status of its put."""
    kind = CHECK_POINT if isinstance(record, codec.CheckPoint) else ACK
    broker.stats.revive_in[record.group, record.topic, kind, result.status.name] += 1


def put_for(
    broker: Broker,
    request: Command,
    connection: Connection,
    message: Message,
    answer: Callable[[PutMessageResult], Command | None],
) -> None:
    """Put ``message`` with the sends of this turn; ``answer`` returns the client's answer, None for no answer (yet)."""
    put_later(broker, Pending(request, connection, message, message.queue_id, {}, answer))


def put_check_point(
    broker: Broker,
    check_point: codec.CheckPoint,
    revive_queue: int,
    next_offset: int,
    on_put: Callable[[], Command | None],
    request: Command,
    connection: Connection,
) -> None:
    """Store the checkpoint of a pop; its group has then read up to ``next_offset``.

    ``on_put`` is called in any case. A checkpoint that could not be stored is retried, and until then the group's
    offset stays before it.
    """
    pending = add_pending_offset(broker, check_point.group, check_point.topic, check_point.queue_id, next_offset)

    def put(result: PutMessageResult) -> Command | None:
        count_record(broker, check_point, result)
        if is_stored(result):
            pending.stored = True
            commit_stored_offsets(broker, check_point.group, check_point.topic, check_point.queue_id)
        else:
            broker.popped.unstored.append(UnstoredCheckpoint(check_point, revive_queue, pending))
        return on_put()

    put_for(broker, request, connection, check_point_message(broker, check_point, revive_queue), put)


def put_unstored(broker: Broker) -> None:
    """Retry the checkpoints that could not be stored."""
    waiting, broker.popped.unstored = broker.popped.unstored, []
    for unstored in waiting:
        check_point = unstored.check_point
        result = broker.store.put_message(check_point_message(broker, check_point, unstored.revive_queue))
        count_record(broker, check_point, result)
        if is_stored(result):
            unstored.pending.stored = True
            commit_stored_offsets(broker, check_point.group, check_point.topic, check_point.queue_id)
        else:
            broker.popped.unstored.append(unstored)
