"""Checkpoints and acknowledgements on their way into the revive topic, and the offsets that wait for them
(docs/protocol/pop.md#checkpoints; docs/formats/transactions.md#pop).

RocketMQ may keep checkpoints in memory for some seconds and merge acknowledgements into them
(``enablePopBufferMerge``, off by default). Here that key has no effect: each checkpoint is stored before its messages
are handed out, each acknowledgement before it is answered, as with RocketMQ's default. A store written with the key on
holds fewer records of the same kind, so brokers of either kind go on with each other's. Java:
``PopBufferMergeService.addCkJustOffset``, ``PopMessageProcessor.buildCkMsg``, ``AckMessageProcessor.appendAck``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.broker.pop_state import Step, Unstored
from engine.broker.send_message import STORED_CODES, Pending, put_later
from engine.codec import pop as codec
from engine.codec import properties
from engine.codec.encode import Message
from engine.remoting.connection import Connection
from engine.remoting.frame import Command
from engine.store.put.message import PutMessageResult

if TYPE_CHECKING:
    from engine.broker.broker import Broker


CHECK_POINT, ACK = "CK", "ACK"
"""Names of the records in counters."""
EARLY_MS = 1_000
"""Checkpoints reach their revive queue this long before their messages are visible again: acknowledgements follow."""


def reached(broker: Broker, group: str, topic: str, queue_id: int, offset: int, *, stored: bool = False) -> Step:
    """Record that a pop has gone on to ``offset``; call :func:`commit` once its checkpoint is stored."""
    step = Step(offset, stored)
    broker.popped.steps.setdefault((group, topic, queue_id), deque()).append(step)
    if stored:
        commit(broker, group, topic, queue_id)
    return step


def commit(broker: Broker, group: str, topic: str, queue_id: int) -> None:
    """Commit the offsets in front whose checkpoints are stored."""
    steps = broker.popped.steps
    waiting = steps.get((group, topic, queue_id))
    while waiting and waiting[0].stored:
        broker.store.tables.commit_consumer_offset(group, topic, queue_id, waiting.popleft().offset)
    if waiting is not None and not waiting:
        del steps[group, topic, queue_id]


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
    """Return ``ip:port``, the birth place of the broker's own messages."""
    return broker.address or broker.store.parts.commit_log.store_host


def is_kept(result: PutMessageResult) -> bool:
    """Return True if the message is stored, even if it was not flushed or copied in time."""
    return result.status in STORED_CODES


def count(broker: Broker, record: codec.CheckPoint | codec.Ack, result: PutMessageResult) -> None:
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
    following: int,
    done: Callable[[], Command | None],
    request: Command,
    connection: Connection,
) -> None:
    """Store the checkpoint of a pop; its group has then read up to ``following``. ``done`` is called in any case: a
    checkpoint that could not be stored is tried again, and until then the group's offset stays in front of it.
    """
    step = reached(broker, check_point.group, check_point.topic, check_point.queue_id, following)

    def put(result: PutMessageResult) -> Command | None:
        count(broker, check_point, result)
        if is_kept(result):
            step.stored = True
            commit(broker, check_point.group, check_point.topic, check_point.queue_id)
        else:
            broker.popped.unstored.append(Unstored(check_point, revive_queue, step))
        return done()

    put_for(broker, request, connection, check_point_message(broker, check_point, revive_queue), put)


def put_unstored(broker: Broker) -> None:
    """Try again to store the checkpoints that could not be stored."""
    waiting, broker.popped.unstored = broker.popped.unstored, []
    for unstored in waiting:
        check_point = unstored.check_point
        result = broker.store.put_message(check_point_message(broker, check_point, unstored.revive_queue))
        count(broker, check_point, result)
        if is_kept(result):
            unstored.step.stored = True
            commit(broker, check_point.group, check_point.topic, check_point.queue_id)
        else:
            broker.popped.unstored.append(unstored)
