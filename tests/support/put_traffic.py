"""Messages from a seed for our own engine, of every kind that the real store's peer writes."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import Any

from engine.codec.encode import Message
from engine.message_store import MessageStore

PREPARED, COMMITTED, ROLLED_BACK, COMPRESSED = 4, 8, 12, 1
_WORDS = ("order", "Größe", "订单", "𝄞", "x", "key-with-a-longer-name")


def messages(seed: object, plan: dict[str, Any], count: int) -> Iterator[list[Message]]:
    """Yield lists of messages in the topics of ``plan``: most of one, some batches of one topic and queue."""
    pick = random.Random(f"traffic {seed}")
    topics = [(topic["name"], topic["queues"]) for topic in plan["topics"]]
    sample = 0
    while sample < count:
        name, queues = pick.choice(topics)
        queue_id = pick.randrange(queues)
        size = pick.randrange(2, 9) if pick.random() < 0.05 and not name.startswith("%RETRY%") else 1
        batch = [_message(pick, name, queue_id, f"{seed}-{sample + n}", alone=size == 1) for n in range(size)]
        sample += size
        yield batch


def _message(pick: random.Random, topic: str, queue_id: int, number: str, *, alone: bool) -> Message:
    body = pick.randbytes(pick.choice([0, 1, 40, 300, 300, 300, 5000]) or 1)
    properties = {"UNIQ_KEY": f"7F000001{zlib.crc32(number.encode()):024X}"}
    if pick.random() < 0.7:
        properties["KEYS"] = " ".join(f"{pick.choice(_WORDS)}{pick.randrange(60)}" for _ in range(pick.randrange(1, 4)))
    if pick.random() < 0.7:
        properties["TAGS"] = pick.choice(["TagA", "TagB", "Ärger", "标签"])
    sys_flag = 0
    if alone:
        chance = pick.random()
        if chance < 0.04:
            sys_flag = pick.choice([PREPARED, COMMITTED, ROLLED_BACK])
        elif chance < 0.08:
            sys_flag, body = COMPRESSED, zlib.compress(body)
    host = "[2001:db8::12:34]:40002" if alone and pick.random() < 0.1 else "10.1.2.3:40001"
    return Message(topic, body, queue_id, properties, sys_flag=sys_flag, born_host=host, flag=pick.randrange(3))


def put(store: MessageStore, batches: Iterator[list[Message]] | list[list[Message]]) -> int:
    """Put the lists, each as one batch; return the number of stored messages."""
    received = 0
    for batch in batches:
        result = store.put_message(batch[0]) if len(batch) == 1 else store.put_batch(batch)
        assert result.ok, result
        received += len(batch)
    return received


def put_last(store: MessageStore, plan: dict[str, Any]) -> None:
    """Put a plain message at the end: 4.9 indexes again the units after the last queue entry (a prepared unit, say)."""
    put(store, [[Message(plan["topics"][0]["name"], b"the last one", 0, {"KEYS": "last"})]])
