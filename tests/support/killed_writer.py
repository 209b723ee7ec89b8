"""A process that puts messages until it is killed: forked from one with all imports, because lives are short.

The starter reads one JSON line a life from standard input and forks; every acknowledged put is one line on standard
output, written before the next put begins: so the promises to a killed process are known to the last message.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.codec.columns import twin
from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.store.put_message import PutMessageStatus

TOPICS = ("Orders", "Stock", "%RETRY%billing")
SIZES: dict[str, Any] = {
    "mapped_file_size_commit_log": 1 << 17,
    "mapped_file_size_consume_queue": 20 * 100,
    "max_hash_slot_num": 100,
    "max_index_num": 400,
    "message_index_safe": True,
    "max_message_size": 16_384,
    "commit_log_recover_max_num": 10_000,
}
"""Small files. A start of 5.4 or later looks back at ten log files only, and a busy machine may write more than that
before it dispatches them: messages in front of these would be in no queue.
"""


def puts(life: int, thread: int) -> Iterator[list[Message]]:
    """Yield the puts of one thread of a life, without end: mostly one message a put."""
    rng, number = random.Random(f"{life} {thread}"), 0
    while True:
        messages = []
        for _ in range(rng.randint(2, 8) if rng.random() < 0.1 else 1):
            number += 1
            body = b"%d-%d %d " % (life, thread, number) + rng.randbytes(rng.choice((0, 10, 200, 600, 5000)))
            topic, queue_id = rng.choice(TOPICS), rng.randrange(3)
            messages.append(Message(topic, body, queue_id, tags=rng.choice("AB"), keys=f"k{number} every"))
        yield messages


def live(order: dict[str, Any]) -> None:
    """Open the store, put, and close it if nobody has killed this process before."""
    config = MessageStoreConfig(**SIZES, **order["config"])
    with MessageStore(Path(order["store"]), config) as store:
        _print_line(f"open {os.getpid()}")
        threads = [
            threading.Thread(target=_put, args=(store, order["life"], number, order["puts"]))
            for number in range(order["threads"])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _print_line("closed")


def _put(store: MessageStore, life: int, thread: int, max_puts: int) -> None:
    for _, put in zip(range(max_puts), puts(life, thread), strict=False):
        results = [store.put_message(put[0])] if len(put) == 1 else list(store.put_messages(put))
        good = [r for r in results if r.status is PutMessageStatus.PUT_OK and r.append is not None]
        places = " ".join(f"{r.append.physical_offset}:{r.append.end_offset}" for r in good if r.append)
        _print_line(f"ack {thread} {len(good)} {store.positions().committed} {places}")


def _print_line(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def main() -> None:
    """Fork one life for each line."""
    twin()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                live(json.loads(line))
            except BaseException as error:  # noqa: BLE001  whatever it was: the parent hears of it
                _print_line(f"died {error!r}")
                os._exit(1)
            os._exit(0)
        _print_line(f"pid {child}")
        os.waitpid(child, 0)
        _print_line("end")


if __name__ == "__main__":
    main()
