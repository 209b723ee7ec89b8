"""Puts per second of our engine and of the real store's ``bench``, in turns on the same disk, and the ratio of the two.

``python tests/bench/bench_append.py [--turns N] [--release 5.3.3] [--body 200] [--folder DIR]``: one topic, 8 queues, a
body that does not compress, files of 1 GiB, ASYNC_FLUSH, one thread, dispatch beside the puts. Java builds each message
inside the time; so does ours with one message in a call. Prints one JSON line a figure, with the turns of the median,
and the load at their beginnings. Needs Java 17 and Maven like the tests of ``tests/peer``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from peer import PEER, missing  # noqa: E402

from engine.bench.append import (  # noqa: E402
    PUTS_BY_BODY_BYTES,
    batches_per_second,
    by_map,
    by_text,
    open_store,
    puts_per_second,
)
from engine.bench.reads import conditions  # noqa: E402

BUILD = os.environ.get("PEER_BUILD") or str(Path.home() / ".cache" / "storescope" / "store-peer")
JAVA_PUTS = 1_000_000
TARGETS = {
    200: {"one": 0.8, "64, built inside": 2.5, "64": 5},
    1024: {"one": 1, "64, built inside": 2.5, "64": 4},
}


def java(release: str, folder: Path, body: int) -> float:
    """Return the puts a second of the real store, the last million of two: a new JVM is half as quick."""
    command = [
        "bash",
        str(PEER),
        "-v",
        release,
        "bench",
        "--messages",
        str(JAVA_PUTS),
        "--warm",
        str(JAVA_PUTS),
        "--body",
        str(body),
        "--threads",
        "1",
        "--flush",
        "async",
        "--parts",
        "append",
        "--dir",
        str(folder),
    ]
    environment = {**os.environ, "PEER_BUILD": BUILD, "PEER_JVM": "-Xms2g -Xmx2g -XX:+UseG1GC"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return float(rows[-1]["putsPerSecond"])


def ours(folder: Path, body: int) -> dict[str, float]:
    """Return our messages a second: one a call, and 64 a call; after a warm-up of a tenth each, like the real
    store's.
    """
    payload, count = os.urandom(body), PUTS_BY_BODY_BYTES[body] // 64 * 64
    sides: dict[str, Callable[[Any, int, int], tuple[float, float]]] = {
        "one, text": lambda store, begin, n: puts_per_second(store, by_text, payload, begin, n),
        "one, map": lambda store, begin, n: puts_per_second(store, by_map, payload, begin, n),
        "64, text": lambda store, begin, n: batches_per_second(store, by_text, payload, begin, n, built=False),
        "64, map": lambda store, begin, n: batches_per_second(store, by_map, payload, begin, n, built=False),
        "64, text, built inside": lambda store, begin, n: batches_per_second(
            store, by_text, payload, begin, n, built=True
        ),
        "64, map, built inside": lambda store, begin, n: batches_per_second(
            store, by_map, payload, begin, n, built=True
        ),
    }
    rates = {}
    for name, side in sides.items():
        with open_store(folder, 1 << 30) as store:
            side(store, 0, count // 640 * 64)
            rates[name], _ = side(store, count, count)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--release", default="5.3.3")
    parser.add_argument("--body", type=int, choices=list(PUTS_BY_BODY_BYTES), action="append")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    args = parser.parse_args()
    if why := missing():
        sys.exit(why)
    for body in args.body or PUTS_BY_BODY_BYTES:
        observed: dict[str, list[float]] = {}
        loads = []
        for _ in range(args.turns):
            loads.append(round(os.getloadavg()[0], 2))
            for name, rate in {"java": java(args.release, args.folder, body), **ours(args.folder, body)}.items():
                observed.setdefault(name, []).append(rate)
        theirs = statistics.median(observed.pop("java"))
        for name, rates in observed.items():
            rate = statistics.median(rates)
            row = {
                "name": name,
                "body": body,
                "release": args.release,
                "putsPerSecond": round(rate),
                "javaPutsPerSecond": round(theirs),
                "ratio": round(rate / theirs, 2),
                "target": TARGETS[body][name.replace(", text", "").replace(", map", "")],
                "turns": [round(rate) for rate in rates],
                "loads": loads,
                "conditions": conditions(),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
