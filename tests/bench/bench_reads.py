"""The engine's reads and RocketMQ's own: the same shape of store as in the peer's ``bench --parts read``.

    python tests/bench/bench_reads.py [--messages 500000] [--body 200] [--peer PROGRAM] [--turns 3]
        [--queries]

One topic, 8 queues; each message has UNIQ_KEY, one key and a tag. Measured: getMessage at a random offset for 32 and
for 1, every queue streamed and scanned in steps of 32, queryMessage of a key with one hit (keys and unique keys in
turns, like the peer), and of 64 such keys in one call, for each of them. With ``--peer`` (the peer's start script)
both sides take turns. One JSON line a turn and side; microseconds, messages a second.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.message_store import Message, MessageStore
from engine.store.query_message import query_messages

QUEUES = 8
TOPIC = "bench"
STEP = 1000
SAMPLES = 20_000
TOGETHER = 64


def fill(store: MessageStore, messages: int, body: bytes) -> None:
    """Put messages like the peer's: a unique key, a key of its own and one of ten tags each."""
    for start in range(0, messages, STEP):
        store.put_messages(
            [
                Message(
                    TOPIC,
                    body,
                    n % QUEUES,
                    {"KEYS": f"K{n}", "TAGS": f"T{n % 10}", "UNIQ_KEY": f"{n:032X}", "WAIT": "true"},
                )
                for n in range(start, min(start + STEP, messages))
            ]
        )
    assert store.wait_dispatched(300_000)


def timed(call: Callable[[Any], Any], arguments: list[Any]) -> tuple[float, float]:
    """Return median and 99th percentile of one call, in microseconds."""
    clock, received = time.perf_counter_ns, []
    for argument in arguments:
        began = clock()
        result = call(argument)
        received.append(clock() - began)
        result.release()
        result = None  # letting go is not timed there either
    received.sort()
    return received[len(received) // 2] / 1000, received[len(received) * 99 // 100] / 1000


def measure(store: MessageStore, messages: int) -> dict[str, Any]:
    """Run one turn of ours."""
    pick = random.Random(7)
    ends = [store.max_offset_in_queue(TOPIC, queue) for queue in range(QUEUES)]
    offsets = [pick.randrange(min(ends) - 32) for _ in range(SAMPLES)]
    record: dict[str, Any] = {"side": "ours"}

    def get(count: int) -> Callable[[int], Any]:
        return lambda offset: store.get_message("group", TOPIC, offset % QUEUES, offset, count)

    for count in (32, 1):
        timed(get(count), offsets[:2000])
        record[f"get{count}P50"], record[f"get{count}P99"] = timed(get(count), offsets)
    for block in store.stream(TOPIC, 0):
        block.messages()
    record["scanPerSecond"] = rate(lambda queue: scanned(store, queue, ends[queue]))
    record["streamPerSecond"] = rate(lambda queue: sum(len(block) for block in store.stream(TOPIC, queue)))
    record["streamMessagesPerSecond"] = rate(
        lambda queue: sum(len(block.messages()) for block in store.stream(TOPIC, queue))
    )

    return record | queries(store, messages)


def queries(store: MessageStore, messages: int) -> dict[str, Any]:
    """Measure queries of one key a call, and of 64."""
    pick = random.Random(3)
    record: dict[str, Any] = {"side": "ours"}
    for _ in range(2):  # the second round counts, here as there
        keys = [key(number, pick.randrange(messages)) for number in range(3000)]
        record["queryP50"], record["queryP99"] = timed(partial(store.query_message, TOPIC), keys)
    for _ in range(2):
        many = [[key(number, pick.randrange(messages)) for number in range(TOGETHER)] for _ in range(1000)]
        received = timed(partial(query_messages, store.parts.index, store.parts.log, TOPIC), many)
        record["query64P50"], record["query64P99"] = (item / TOGETHER for item in received)
    return record


def key(turn: int, message: int) -> str:
    """Return a message's own key or its unique key, like the peer's queries."""
    return f"{message:032X}" if turn % 2 else f"K{message}"


def scanned(store: MessageStore, queue: int, end: int) -> int:
    """Read all of a queue in steps of 32, like a consumer."""
    position = 0
    while position < end:
        result = store.get_message("group", TOPIC, queue, position, 32)
        assert result is not None
        position = result.next_begin_offset
        result.release()
    return position


def rate(walk: Callable[[int], int]) -> float:
    """Return the messages a second over all queues."""
    began = time.perf_counter()
    return sum(walk(queue) for queue in range(QUEUES)) / (time.perf_counter() - began)


def peer_turn(program: str, messages: int, body: int, folder: str) -> dict[str, Any]:
    """Run one turn of the Java store in a process of its own."""
    command = [
        "bash",
        program,
        "bench",
        "--messages",
        str(messages),
        "--body",
        str(body),
        "--threads",
        "1",
        "--flush",
        "async",
        "--parts",
        "append,read",
        "--rounds",
        "20",
        "--dir",
        folder,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"side": "java", **json.loads(done.stdout.splitlines()[-1])}


def ratios_of(ours: dict[str, Any], java: dict[str, Any]) -> dict[str, float]:
    """Return our time of a call divided by the peer's of the same turn."""
    pairs = {
        "queryP50": "queryByKey",
        "query64P50": "queryByKey",
        "get32P50": "getByOffset32",
        "get1P50": "getByOffset1",
    }
    return {name: round(ours[name] / java[theirs]["p50us"], 2) for name, theirs in pairs.items() if name in ours}


def medians(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: round(median(row[name] for row in rows), 2) for name in rows[0] if name != "side"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--body", type=int, default=200)
    parser.add_argument("--peer")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--queries", action="store_true", help="nothing but the queries of ours")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="bench-reads-")
    rows: list[dict[str, Any]] = []
    ratios: list[dict[str, float]] = []
    try:
        with MessageStore(Path(folder) / "store") as store:
            fill(store, args.messages, random.Random(1).randbytes(args.body))
            for _ in range(args.turns):
                ours = queries(store, args.messages) if args.queries else measure(store, args.messages)
                rows.append(ours | {"load": round(os.getloadavg()[0], 1)})
                print(json.dumps(rows[-1]), flush=True)
                if args.peer:
                    java = peer_turn(args.peer, args.messages, args.body, folder)
                    print(json.dumps(java), flush=True)
                    ratios.append(ratios_of(ours, java))
        print(json.dumps({"side": "ours, median", **medians(rows)}))
        if ratios:
            print(json.dumps({"side": "ours / java, by turn", **{key: [r[key] for r in ratios] for key in ratios[0]}}))
            print(json.dumps({"side": "ours / java, median", **medians(ratios)}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
