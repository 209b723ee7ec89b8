"""A consumer of ours in a process of its own: ``NAMESRV GROUP TOPIC [orderly]``. Twin of ``Member.java``: prints as
JSON lines its queues whenever they change, and each consumed message; ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.messages import ReceivedMessage


def print_row(**row: Any) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def listener(messages: Sequence[ReceivedMessage], _context: object) -> None:
    for message in messages:
        print_row(
            kind="received",
            at=time.time_ns() // 1_000_000,
            queueId=message.queue.queue_id,
            queueOffset=message.queue_offset,
            msgId=message.msg_id,
            keys=message.keys,
            reconsumeTimes=message.reconsume_times,
        )


async def consume(namesrv: str, group: str, topic: str, *, orderly: bool) -> None:
    config = ConsumerConfig(start=FROM_FIRST, orderly=orderly, commit_interval=1.0)
    consumer = Consumer(group, listener, namesrv, config)
    consumer.subscribe(topic)
    async with consumer:
        ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        printed_queues: list[int] | None = []
        while not ended.done():
            owned = sorted(queue.queue_id for queue in consumer.owned if queue.topic == topic)
            if owned != printed_queues:
                printed_queues = owned
                print_row(kind="owned", queues=owned)
            await asyncio.wait([ended], timeout=0.05)


if __name__ == "__main__":
    asyncio.run(consume(*sys.argv[1:4], orderly="orderly" in sys.argv[4:]))
