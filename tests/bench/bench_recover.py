"""Recovery after a crash: the real store's ``bench --parts append,recover`` and ours in turns, and the ratio.

``python tests/bench/bench_recover.py [--turns N] [--release 5.3.3] [--body 200] [--folder DIR]``: on both sides
``abort`` exists, the checkpoint is all zero, the queues are whole, and the log, which is hot, is walked with its CRCs,
the index deleted and built again. Java recovers the log that it has just written, as many bytes as ours, four times in
one JVM, and the last time counts; ours recovers 1 GiB of bodies of about the same size in a process that has done it
once. Prints one JSON line a body size. Needs Java 17 and Maven like ``tests/peer``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from peer import PEER, missing  # noqa: E402

from engine.bench import data as bench_data  # noqa: E402
from engine.bench import recover as bench_recover  # noqa: E402
from engine.bench.reads import conditions  # noqa: E402

BUILD = os.environ.get("PEER_BUILD") or str(Path.home() / ".cache" / "storescope" / "store-peer")
MESSAGES = {200: 2_700_000, 1024: 850_000}
RECOVERIES = 4
NAMES = {200: "200", 1024: "1k"}


def java(release: str, folder: Path, body: int) -> float:
    """Return the megabytes a second of the real store's ``load()``."""
    command = [
        "bash",
        str(PEER),
        "-v",
        release,
        "bench",
        "--messages",
        str(MESSAGES[body]),
        "--body",
        str(body),
        "--threads",
        "1",
        "--flush",
        "async",
        "--parts",
        "append,recover",
        "--recoveries",
        str(RECOVERIES),
        "--dir",
        str(folder),
    ]
    environment = {**os.environ, "PEER_BUILD": BUILD, "PEER_JVM": "-Xms2g -Xmx2g -XX:+UseG1GC"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    row = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")][-1]
    recovered = row["recoverAll"]
    return float(recovered["logBytes"]) / float(recovered["loadMs"]) / 1e3


def ours(folder: Path, body: int) -> tuple[float, float]:
    """Return our megabytes a second, and the processor seconds of a recovery."""
    rows = bench_recover.run("recover", folder, 1, bench_data.GIB, only_bodies=NAMES[body])
    row = next(rows)
    return float(row["megabytesPerSecond"]), float(row["cpuSeconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--release", default="5.3.3")
    parser.add_argument("--body", type=int, choices=list(MESSAGES), action="append")
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    args = parser.parse_args()
    if why := missing():
        sys.exit(why)
    args.folder.mkdir(parents=True, exist_ok=True)
    for body in args.body or MESSAGES:
        java_rates, our_rates, cpu_seconds, loads = [], [], [], []
        for _ in range(args.turns):
            loads.append(round(os.getloadavg()[0], 2))
            java_rates.append(java(args.release, args.folder, body))
            rate, cpu = ours(args.folder, body)
            our_rates.append(rate)
            cpu_seconds.append(cpu)
        row = {
            "name": "recovery after a crash",
            "body": body,
            "release": args.release,
            "megabytesPerSecond": round(statistics.median(our_rates)),
            "cpuSeconds": round(statistics.median(cpu_seconds), 2),
            "javaMegabytesPerSecond": round(statistics.median(java_rates)),
            "ratio": round(statistics.median(our_rates) / statistics.median(java_rates), 2),
            "target": 4,
            "turns": [round(rate) for rate in our_rates],
            "javaTurns": [round(rate) for rate in java_rates],
            "loads": loads,
            "conditions": conditions(),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
