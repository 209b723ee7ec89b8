"""Each job of the pipeline in one process and on Spark on this machine, over the same hot store.

    python tests/bench/bench_here_or_spark.py [--mib 1024] [--turns 5] [--master 'local[2]']
        [--only verify trace rebuild export] [--folder DIR]

These are the figures of ``engine/pipeline/defaults.py``, which chooses between both by default. A turn is a command of
its own, like a user's; the ``seconds`` of its ``jobSummary`` count, without the start of Spark, which is printed
separately. The order changes from turn to turn, one turn before is not counted. A JSON line each; measure on a machine
at rest: the first line shows its load.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.bench import data as bench_data
from engine.bench.reads import conditions
from engine.inspection.snapshot import open_store

ROOT = Path(__file__).resolve().parents[2]
JOBS = ("verify", "trace", "rebuild", "export")
WRITING = frozenset({"rebuild", "export"})
FINDINGS = 1
"""Exit code of a job that has found something: a trace of keys that are not there."""


def keys_of(store: Path, count: int) -> list[str]:
    """Return unique keys of messages, evenly over the log; an unknown key if the messages have none."""
    with open_store(str(store)) as opened:
        step = max(opened.log.max_offset // count, 1)
        results = []
        for part in range(count):
            unit = next(iter(opened.units(part * step)), None)
            properties = getattr(unit, "properties", {})
            results += [properties[name] for name in ("UNIQ_KEY", "KEYS") if name in properties][:1]
    return results or ["nowhere"]


def words_of(job: str, store: Path, target: Path, keys: list[str]) -> list[str]:
    """Return the arguments of a job after ``storescope pipeline``."""
    if job == "trace":
        return [job, str(store), *(word for key in keys for word in ("--key", key))]
    return [job, str(store), *(["--out", str(target)] if job in WRITING else [])]


def answer(words: list[str], master: str | None) -> dict[str, Any]:
    """Return the ``jobSummary`` of a command that runs in one process, or with ``master`` on Spark."""
    where = ["--no-spark"] if master is None else ["--master", master]
    command = [sys.executable, "-m", "engine.cli", "pipeline", *words, *where, "--json", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in {0, FINDINGS}:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return next(row for row in map(json.loads, reversed(done.stdout.splitlines())) if row["type"] == "jobSummary")


def measure(job: str, store: Path, turns: int, master: str, keys: list[str]) -> dict[str, Any]:
    """Return medians, the least and the most of each side, and the time of Spark's start."""
    seconds: dict[str, list[float]] = {"here": [], "spark": []}
    starts: list[float] = []
    for turn in range(turns + 1):
        for side in ("here", "spark") if turn % 2 else ("spark", "here"):
            with tempfile.TemporaryDirectory(prefix="here-or-spark-", dir=store.parent) as folder:
                target = Path(folder) / "out"
                row = answer(words_of(job, store, target, keys), master if side == "spark" else None)
                shutil.rmtree(target, ignore_errors=True)
            if turn:
                seconds[side].append(row["seconds"])
                if side == "spark":
                    starts.append(row["sessionSeconds"])
    reported = {side: {"median": median(s), "least": min(s), "most": max(s)} for side, s in seconds.items()}
    ratio = round(median(seconds["spark"]) / median(seconds["here"]), 2)
    return {"job": job, **reported, "sparkStarts": median(starts), "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the log, one file")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--keys", type=int, default=20, help="how many keys are traced")
    parser.add_argument("--only", nargs="*", choices=JOBS, default=list(JOBS))
    parser.add_argument("--folder", type=Path, default=None)
    args = parser.parse_args()
    store = bench_data.healthy_store(args.folder or bench_data.default_folder(), args.mib << 20)
    print(json.dumps({**conditions(), "mib": args.mib, "master": args.master, "turns": args.turns}), flush=True)
    keys = keys_of(store, args.keys)
    for job in args.only:
        print(json.dumps(measure(job, store, args.turns, args.master, keys)), flush=True)


if __name__ == "__main__":
    main()
