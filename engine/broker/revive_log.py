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

from engine.broker.broker import Broker
from engine.broker.pending_sends import Pending
from engine.broker.pop_state import Step, Unstored
from engine.broker.send import KEPT, put_later
from engine.codec import pop as codec
from engine.codec import properties
from engine.codec.encode import Message
from engine.remoting.connection import Connection
from engine.remoting.frame import Command
from engine.store.put.message import PutMessageResult

CHECK_POINT, ACK = "CK", "ACK"
"""What records are called where they are counted."""
EARLY_MS = 1_000
"""Checkpoints reach their revive queue that long before their messages are visible again: acknowledgements follow."""


def reached(broker: Broker, group: str, topic: str, queue_id: int, offset: int, *, stored: bool = False) -> Step:
    """A pop has gone on to ``offset``; :func:`commit` is called once its checkpoint is stored."""
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


def check_point_message(broker: Broker, what: codec.CheckPoint, revive_queue: int) -> Message:
    """The timer message that brings a checkpoint to its revive queue."""
    return _message(broker, what.body(), codec.CHECK_POINT_TAG, what.unique_key, what.due - EARLY_MS, revive_queue)


def ack_message(broker: Broker, what: codec.Ack, due: int, revive_queue: int) -> Message:
    """The timer message that brings an acknowledgement to the revive queue of its checkpoint."""
    return _message(broker, what.body(), what.tag, what.unique_key, due, revive_queue)


def _message(broker: Broker, body: bytes, tag: str, key: str, due: int, revive_queue: int) -> Message:
    found = {properties.TIMER_DELIVER_MS: str(due), properties.UNIQUE_KEY: key, properties.TAGS: tag}
    return Message(
        codec.revive_topic(broker.config.cluster),
        body,
        revive_queue,
        found,
        born_timestamp=broker.now(),
        born_host=own_host(broker),
    )


def own_host(broker: Broker) -> str:
    """``ip:port`` that messages of the broker's own are born at."""
    return broker.address or broker.store.parts.commit_log.store_host


def is_kept(result: PutMessageResult) -> bool:
    """Whether the message is stored, be it flushed and copied in time or not."""
    return result.status in KEPT


def count(broker: Broker, what: codec.CheckPoint | codec.Ack, result: PutMessageResult) -> None:
    """One record more that went to the revive topic, or did not."""
    kind = CHECK_POINT if isinstance(what, codec.CheckPoint) else ACK
    broker.stats.revive_in[what.group, what.topic, kind, result.status.name] += 1


def put_for(
    broker: Broker,
    request: Command,
    connection: Connection,
    message: Message,
    answer: Callable[[PutMessageResult], Command | None],
) -> None:
    """Put ``message`` with the sends of this turn; ``answer`` gives what the asker is told, None for nothing (yet)."""
    put_later(broker, Pending(request, connection, message, message.queue_id, {}, answer))


def put_check_point(
    broker: Broker,
    what: codec.CheckPoint,
    revive_queue: int,
    following: int,
    done: Callable[[], Command | None],
    request: Command,
    connection: Connection,
) -> None:
    """Store the checkpoint of a pop; its group has read up to ``following`` then. ``done`` is called in any case: one
    that could not be stored is tried again, and until then the group's offset stays in front of it.
    """
    step = reached(broker, what.group, what.topic, what.queue_id, following)

    def put(result: PutMessageResult) -> Command | None:
        count(broker, what, result)
        if is_kept(result):
            step.stored = True
            commit(broker, what.group, what.topic, what.queue_id)
        else:
            broker.popped.unstored.append(Unstored(what, revive_queue, step))
        return done()

    put_for(broker, request, connection, check_point_message(broker, what, revive_queue), put)


def put_unstored(broker: Broker) -> None:
    """Try again to store checkpoints that could not be."""
    waiting, broker.popped.unstored = broker.popped.unstored, []
    for one in waiting:
        what = one.check_point
        result = broker.store.put_message(check_point_message(broker, what, one.revive_queue))
        count(broker, what, result)
        if is_kept(result):
            one.step.stored = True
            commit(broker, what.group, what.topic, what.queue_id)
        else:
            broker.popped.unstored.append(one)
