"""A store with small files, messages in some queues of a topic, and the bodies of a queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.codec.message import decode
from engine.message_store import Message, MessageStore

SMALL: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 200,
    "maxHashSlotNum": 50,
    "maxIndexNum": 400,
    "mappedFileSizeConsumeQueueExt": 1 << 12,
}
ROOT = Path("/store")


def put(store: MessageStore, count: int, topic: str = "Orders", queues: int = 2) -> list[tuple[int, int]]:
    """Put messages; return queue and queue offset of each."""
    created_items = []
    for number in range(count):
        result = store.put_message(Message(topic, b"x" * 50, queue_id=number % queues))
        assert result.append is not None
        created_items.append((number % queues, result.append.queue_offset))
    return created_items


def bodies(store: MessageStore, topic: str, queue_id: int) -> list[bytes]:
    results: list[bytes] = []
    for block in store.stream(topic, queue_id):
        with block:
            results += [decode(message).body for message in block.messages()]
    return results
