"""``storescope serve`` and RocketMQ's own broker, in turns: the same Java client uses both.

``python tests/bench/bench_serve.py [--turns 3] [--release 5.3.3] [--what send,batch,pull,push,latency,connections]`` on
an idle machine; five minutes a turn. Needs Java 17 and Maven. Prints one JSON line a figure, then the medians as a
table, with the load at the beginning of each turn.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
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

SPEED = ROOT / "tests" / "clients" / "java" / "speed"
COMMANDS = {
    "send": ("send", "8", "1,8,64"),
    "batch": ("batch", "8"),
    "pull": ("pull", "0", "200000"),
    "push": ("push", "0", "200000"),
    "latency": ("latency", "0", "3000"),
}
Figures = dict[str, float]


def print_record(record: dict[str, Any]) -> None:
    """Print one JSON line."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def ours(folder: Path) -> Iterator[tuple[dict[str, Any], int, float]]:
    """Run ``serve`` over a new store; yield its first line, its process, seconds until it accepted."""
    words = [sys.executable, "-m", "engine.cli", "serve", str(folder / "store"), "--port", "0", "--namesrv-port", "0"]
    began = time.monotonic()
    process = subprocess.Popen(
        [*words, "--json"], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert process.stdout is not None
    try:
        record = json.loads(process.stdout.readline())
        yield record, process.pid, time.monotonic() - began
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()


@contextlib.contextmanager
def theirs(folder: Path, release: str) -> Iterator[tuple[dict[str, Any], int, float]]:
    """Run RocketMQ's name server and broker in one process, with the sizes and the memory of its defaults here."""
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    real_cluster._LEAN = "-Xms512m -Xmx1g -XX:MaxDirectMemorySize=1g"  # the compiler's second tier too
    began = time.monotonic()
    with real_cluster.real(folder, *options, release=release) as output:
        yield output, int(output["pid"]), time.monotonic() - began


def resident(pid: int) -> float:
    """Return the MiB of a process's own memory: pages mapped from the store's files belong to the page cache."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"no process {pid}")


def figures(kind: str, addresses: dict[str, Any], pid: int, release: str) -> Figures:
    """Return the figures of one broker for ``what``."""
    if kind == "connections":
        return {"connections 1000, MiB": _with_connections(addresses["broker"], pid)}
    done = subprocess.run(
        ["bash", str(SPEED), release, addresses["namesrv"], *COMMANDS[kind]],
        env=real_cluster.environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    rates: Figures = {}
    for line in map(json.loads, done.stdout.splitlines()):
        if kind == "latency":
            rates |= {"latency p50, ms": line["p50"], "latency p99, ms": line["p99"]}
        elif kind in ("pull", "push"):
            rates[f"{kind}, messages a second"] = line["rate"]  # the last turn, which is warm
        else:
            rates[f"{kind}, {line['number']} threads, messages a second"] = line["rate"]
    return rates


def _with_connections(address: str, pid: int) -> float:
    host, _, port = address.rpartition(":")
    with contextlib.ExitStack() as opened:
        for _ in range(1000):
            opened.enter_context(socket.create_connection((host, int(port))))
        time.sleep(2)
        return resident(pid)


def one_turn(side: str, expected: list[str], release: str) -> Iterator[tuple[str, float]]:
    """Yield every figure of one broker, each kind over a store of its own."""
    for kind in expected:
        with tempfile.TemporaryDirectory() as folder:
            broker = ours(Path(folder)) if side == "ours" else theirs(Path(folder), release)
            with broker as (output, pid, seconds):
                if kind == expected[0]:
                    yield "until it accepts, s", seconds
                    time.sleep(5)
                    yield "at rest, MiB", resident(pid)
                yield from figures(kind, output, pid, release).items()


def main() -> None:
    """Run the turns, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--release", default="5.3.3")
    parser.add_argument("--what", default="connections,send,batch,pull,push,latency")
    args = parser.parse_args()
    results: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"ours": [], "theirs": []})
    for turn in range(args.turns):
        for text in ("ours", "theirs") if turn % 2 == 0 else ("theirs", "ours"):
            load = os.getloadavg()[0]
            for name, value in one_turn(text, args.what.split(","), args.release):
                results[name][text].append(value)
                print_record(
                    {"turn": turn, "who": text, "what": name, "value": round(value, 3), "load": round(load, 2)}
                )
    sys.stdout.write(f"\n| what | ours | RocketMQ {args.release} | ratio |\n|---|---|---|---|\n")
    for name, by in results.items():
        median, real = statistics.median(by["ours"]), statistics.median(by["theirs"])
        sys.stdout.write(f"| {name} | {median:,.2f} | {real:,.2f} | {median / real:.2f} |\n")


if __name__ == "__main__":
    main()
