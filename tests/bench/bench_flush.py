"""Our group commit and RocketMQ's own: both sides in turns, on the same device, with the same bodies.

    python tests/bench/bench_flush.py [--producers 1 8 64] [--body 200] [--seconds 3] [--turns 5] [--peer PROGRAM]

Each turn runs every number of producers once with ours and once with the peer's ``bench --flush sync`` (the peer's
start script; without ``--peer`` ours alone). One JSON line a run, and at the end one line a number of producers with
the medians and their ratios: puts a second (ours / theirs, at least 1) and the 99th percentile of a put (at most 1).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.bench.writes import flush_row
from engine.config import from_mapping
from engine.message_store import MessageStore


def ours(folder: Path, producers: int, body: int, seconds: float) -> dict[str, Any]:
    """Run our side once."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        store = MessageStore(root, from_mapping({"flushDiskType": "SYNC_FLUSH"})[0])
        try:
            row = flush_row(store, producers, seconds, body)
        finally:
            store.abandon()
    return {"side": "ours", **{key: row[key] for key in ("producers", "putsPerSecond", "p50", "p99", "load")}}


def theirs(peer: str, folder: Path, producers: int, body: int, seconds: float) -> dict[str, Any]:
    """Run the peer's side once."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        command = [
            "bash",
            peer,
            "bench",
            "--messages",
            "20000",
            "--body",
            str(body),
            "--threads",
            str(producers),
            "--flush",
            "sync",
            "--seconds",
            str(seconds),
            "--parts",
            "append",
            "--dir",
            root,
        ]
        stdout = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    row = json.loads(stdout.strip().splitlines()[-1])
    latency = row["putLatency"]
    return {
        "side": "rocketmq",
        "producers": producers,
        "putsPerSecond": row["putsPerSecond"],
        "p50": latency["p50us"],
        "p99": latency["p99us"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--producers", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--body", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--peer")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    chosen = parser.parse_args()
    rows = []
    for _ in range(chosen.turns):
        for producers in chosen.producers:
            rows.append(ours(chosen.folder, producers, chosen.body, chosen.seconds))
            print(json.dumps(rows[-1]), flush=True)
            if chosen.peer:
                rows.append(theirs(chosen.peer, chosen.folder, producers, chosen.body, chosen.seconds))
                print(json.dumps(rows[-1]), flush=True)
    for producers in chosen.producers:
        sides: dict[str, dict[str, float]] = {}
        for side in ("ours", "rocketmq"):
            our_rows = [row for row in rows if row["side"] == side and row["producers"] == producers]
            if our_rows:
                sides[side] = {key: median(row[key] for row in our_rows) for key in ("putsPerSecond", "p50", "p99")}
        line: dict[str, Any] = {"producers": producers, **sides}
        if len(sides) == 2:
            line["rateRatio"] = sides["ours"]["putsPerSecond"] / sides["rocketmq"]["putsPerSecond"]
            line["p99Ratio"] = sides["ours"]["p99"] / sides["rocketmq"]["p99"]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
