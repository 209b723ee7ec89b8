"""Our clients and the Java client, in turns, with the same real broker.

``python tests/bench/bench_client.py [--turns 3] [--release 5.3.3] [--what send,batch,pull,push] [--short]``
on an idle machine; three minutes a turn. Needs Java 17 and Maven. Bodies of 1 KiB, like those of
``tests/clients/java/speed``. Prints one JSON line a figure, then the medians as a table, with the load at the beginning
of each turn. ``--short`` only shows that it runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import real_cluster  # noqa: E402

from engine.client.blocking import BlockingProducer  # noqa: E402
from engine.client.consumer import Consumer  # noqa: E402
from engine.client.consuming import FROM_FIRST, ConsumerConfig  # noqa: E402
from engine.client.messages import Message  # noqa: E402
from engine.client.producer import Producer, ProducerConfig  # noqa: E402
from engine.client.pulling import PullConsumer  # noqa: E402

SPEED = ROOT / "tests" / "clients" / "java" / "speed"
BODY = bytes(1024)
CONFIG = ProducerConfig(send_timeout=10.0, new_topic_queues=8)


def print_record(record: dict[str, Any]) -> None:
    """Print one JSON line."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def speed_arguments(kind: str, *, short: bool) -> list[str]:
    """Return the arguments of ``speed`` and of this program."""
    seconds, count = ("2", "2000") if short else ("8", "200000")
    if kind == "send":
        return [kind, seconds, "1,64"]
    return [kind, seconds] if kind == "batch" else [kind, "0", count]


# Our side, in a process of its own


async def ours(namesrv: str, words: list[str]) -> None:
    """Measure like ``Speed.java``: the first part of each run warms both sides."""
    word, seconds = words[0], float(words[1])
    topic = f"Speed{time.time_ns()}"
    async with Producer("speed-producers", namesrv, CONFIG) as producer:
        await producer.send(Message(topic, BODY, tags="warm"))
        await asyncio.sleep(1.0)
        if word == "send":
            for many in map(int, words[2].split(",")):
                await sent(producer, topic, many, 1, seconds / 2)
                print_record({"what": word, "number": many, "rate": await sent(producer, topic, many, 1, seconds)})
        elif word == "batch":
            await sent(producer, topic, 8, 64, seconds / 2)
            print_record({"what": word, "number": 8, "rate": await sent(producer, topic, 8, 64, seconds)})
        else:
            count = int(words[2])
            for _ in range(0, count, 50):
                await producer.send([Message(topic, BODY, tags="tag") for _ in range(50)])
            await asyncio.sleep(2.0)
            for turn in range(3):
                rate = await (pulled(namesrv, topic, count) if word == "pull" else pushed(namesrv, topic, count, turn))
                print_record({"what": word, "number": turn, "rate": rate})


async def sent(producer: Producer, topic: str, many: int, batch: int, seconds: float) -> float:
    """Return the messages a second of ``many`` senders, each of which waits for its answers."""
    count, begun = 0, time.monotonic()

    async def scenario() -> None:
        nonlocal count
        while time.monotonic() - begun < seconds:
            if batch == 1:
                await producer.send(Message(topic, BODY, tags="tag"))
            else:
                await producer.send([Message(topic, BODY, tags="tag") for _ in range(batch)])
            count += batch

    await asyncio.gather(*(scenario() for _ in range(many)))
    return count / (time.monotonic() - begun)


async def pulled(namesrv: str, topic: str, count: int) -> float:
    """Return the messages a second, one queue after another."""
    async with PullConsumer("speed-pullers", namesrv) as consumer:
        begun, results = time.monotonic(), 0
        for queue in await consumer.queues(topic):
            position = 0
            while (result := await consumer.pull(queue, position)).status == "FOUND":
                results += len(result.messages)
                position = result.next_offset
        rate = results / (time.monotonic() - begun)
    assert results >= count, f"{results} of {count}"
    return rate


async def pushed(namesrv: str, topic: str, count: int, turn: int) -> float:
    """Return the messages a second from the first delivered one on."""
    ended, received, begun = asyncio.Event(), 0, 0.0

    def listener(messages: Any, _context: object) -> None:
        nonlocal received, begun
        begun = begun or time.monotonic()
        received += len(messages)
        if received >= count:
            ended.set()

    consumer = Consumer(f"speed-pushed-{turn}-{topic}", listener, namesrv, ConsumerConfig(start=FROM_FIRST))
    consumer.subscribe(topic)
    async with consumer:
        await ended.wait()
        return received / (time.monotonic() - begun)


def blocking(namesrv: str, seconds: float) -> None:
    """Measure one thread of code without an event loop."""
    topic = f"Speed{time.time_ns()}"
    with BlockingProducer("speed-blocking", namesrv, CONFIG) as producer:
        for part in (seconds / 2, seconds):
            count, begun = 0, time.monotonic()
            while time.monotonic() - begun < part:
                producer.send(Message(topic, BODY, tags="tag"))
                count += 1
        print_record({"what": "send, blocking", "number": 1, "rate": count / (time.monotonic() - begun)})


# Both sides, in turns


def figures(side: str, words: list[str], namesrv: str, release: str) -> Iterator[tuple[str, float]]:
    """Yield name and messages a second."""
    program: list[Any] = ["bash", SPEED, release, namesrv, *words]
    if side == "ours":
        program = [sys.executable, __file__, "--ask", namesrv, *words]
    done = subprocess.run(
        program, env=real_cluster.environment(), capture_output=True, text=True, timeout=900, check=True
    )
    last_rates: dict[str, float] = {}
    for line in map(json.loads, done.stdout.splitlines()):
        warm = line["what"] in ("pull", "push")
        last_rates[line["what"] if warm else f"{line['what']}, {line['number']} at once"] = line["rate"]
    yield from last_rates.items()


def main() -> None:
    """Run the turns, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--release", default="5.3.3")
    parser.add_argument("--what", default="send,batch,pull,push")
    parser.add_argument("--short", action="store_true", help="one turn of seconds")
    parser.add_argument("--ask", nargs="+", metavar="WORD", help="our side alone: NAMESRV, then what is asked")
    args = parser.parse_args()
    if args.ask:
        asyncio.run(ours(args.ask[0], args.ask[1:]))
        if args.ask[1] == "send":
            blocking(args.ask[0], float(args.ask[2]))
        return
    record: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"ours": [], "theirs": []})
    for turn in range(1 if args.short else args.turns):
        for word in args.what.split(","):
            with tempfile.TemporaryDirectory() as folder:
                ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
                with real_cluster.real(Path(folder), *ports, release=args.release) as output:
                    for text in ("ours", "theirs") if turn % 2 == 0 else ("theirs", "ours"):
                        load = round(os.getloadavg()[0], 2)
                        words = speed_arguments(word, short=args.short)
                        for name, rate in figures(text, words, output["namesrv"], args.release):
                            record[name][text].append(rate)
                            print_record(
                                {"turn": turn, "who": text, "what": name, "rate": round(rate, 1), "load": load}
                            )
    sys.stdout.write(f"\n| messages a second | ours | Java {args.release} | ratio |\n|---|---|---|---|\n")
    for name, by in record.items():
        median = statistics.median(by["ours"])
        theirs = statistics.median(by["theirs"] or record["send, 1 at once"]["theirs"] or [median])
        sys.stdout.write(f"| {name} | {median:,.0f} | {theirs:,.0f} | {median / theirs:.2f} |\n")


if __name__ == "__main__":
    main()
