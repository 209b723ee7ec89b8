"""The messages that a consumer holds of a queue, and the offset that it may commit."""

from __future__ import annotations

from engine.client.messages import ReceivedMessage, read_messages
from engine.client.process_queue import LOCK_LIVES, PULL_EXPIRES, ProcessQueue
from engine.client.routes import MessageQueue
from engine.codec.encode import Message, encode_unit

QUEUE = MessageQueue("T", "broker-a", 0)


def messages(*offsets: int) -> list[ReceivedMessage]:
    raw = [
        encode_unit(Message("T", b"x" * 10), queue_offset=offset, physical_offset=0, store_timestamp=0)
        for offset in offsets
    ]
    return read_messages(b"".join(raw), QUEUE)


def test_the_oldest_unfinished_offset_is_committed() -> None:
    queue = ProcessQueue(QUEUE)
    held_messages = messages(5, 6, 7, 9)
    assert queue.remove(held_messages) == -1
    queue.put(held_messages)
    assert (queue.count, queue.size, queue.lowest, queue.span) == (4, 40, 5, 4)
    assert queue.remove([held_messages[1]]) == 5
    assert queue.remove([held_messages[0]]) == 7
    assert queue.remove([held_messages[0]]) == 7
    assert queue.remove(held_messages[2:]) == 10
    assert (queue.count, queue.size, queue.lowest, queue.span) == (0, 0, None, 0)


def test_a_message_pulled_twice_is_held_once() -> None:
    queue = ProcessQueue(QUEUE)
    queue.put(messages(1, 2))
    queue.put(messages(2, 3))
    assert (queue.count, queue.size) == (3, 30)


def test_orderly_taken_messages_are_held_until_they_are_committed() -> None:
    queue = ProcessQueue(QUEUE)
    queue.put(messages(1, 2, 3))
    taken_messages = queue.take(2)
    assert [message.queue_offset for message in taken_messages] == [1, 2]
    queue.give_back(taken_messages)
    assert [message.queue_offset for message in queue.take(1)] == [1]
    assert (queue.count, queue.commit(), queue.count) == (3, 2, 2)
    assert queue.commit() == -1
    assert [message.queue_offset for message in queue.take(9)] == [2, 3]
    assert queue.commit() == 4
    assert queue.take(1) == []


def test_locks_and_pulls_expire() -> None:
    queue = ProcessQueue(QUEUE, locked=True, locked_at=1000, pulled_at=1000)
    assert queue.is_ours()
    assert queue.is_locked(1000 + LOCK_LIVES)
    assert not queue.is_locked(1001 + LOCK_LIVES)
    assert not queue.is_stuck(1000 + PULL_EXPIRES)
    assert queue.is_stuck(1001 + PULL_EXPIRES)
