"""Planning of a job over an imaginary fleet: 1,000 brokers, a PiB in files of 1 GiB.

    python tests/bench/bench_million_splits.py [--brokers 1000] [--files 1024] [--wait MS] [--spark]

A storage that invents its listing replaces the disks; ``--wait`` lets it take that long for each call, like an object
storage. Printed are seconds and the growth of this process's memory (its high-water mark) for finding the stores,
cutting their logs into splits, distributing these to tasks and packing these, and the packed bytes. With ``--spark`` a
session on this machine then runs all tasks, which only count their splits: seconds, and the memory of the driver's Java
afterwards. One JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.files.layout import queue_file_name
from engine.pipeline import files, storage
from engine.pipeline.defaults import SPLIT_BYTES
from engine.pipeline.splits import Split, plan
from engine.pipeline.storage import FolderEntry
from engine.pipeline.tasks import run_tasks, share_out

GIB = 1 << 30


class Fleet:
    """A storage with ``fleet/BROKER/store/commitlog/FILE``, every file full."""

    def __init__(self, brokers: int, files_each: int, wait: float) -> None:
        self._brokers, self._files, self._wait = brokers, files_each, wait
        self.calls = 0

    def listing(self, folder: str) -> list[FolderEntry]:
        self._call()
        parts = folder.strip("/").split("/")
        if len(parts) == 1:
            return [FolderEntry(f"broker-{n:04}", f"{folder}/broker-{n:04}", -1) for n in range(self._brokers)]
        if parts[-1] == "commitlog":
            names = (queue_file_name(n * GIB) for n in range(self._files))
            return [FolderEntry(name, f"{folder}/{name}", GIB) for name in names]
        names = ("store",) if len(parts) == 2 else ("commitlog", "config", "consumequeue", "index")
        return [FolderEntry(name, f"{folder}/{name}", -1) for name in names]

    def is_folder(self, path: str) -> bool:
        return True

    def open(self, path: str) -> FullLogFile:
        return FullLogFile(self)

    def _call(self) -> None:
        self.calls += 1
        if self._wait:
            time.sleep(self._wait)


class FullLogFile:
    """A file without a zero byte."""

    descriptor = -1

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def read(self, position: int, size: int) -> bytes:
        self._fleet._call()
        return b"\1" * size

    def close(self) -> None:
        pass


def count(splits: Sequence[Split]) -> Iterator[Any]:
    """The work of a task: return the number of its splits."""
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"splits": pa.array([len(splits)], pa.int64())})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--brokers", type=int, default=1000)
    parser.add_argument("--files", type=int, default=1024)
    parser.add_argument("--wait", type=float, default=0.0)
    parser.add_argument("--cores", type=int, default=1000)
    parser.add_argument("--split-bytes", type=int, default=SPLIT_BYTES)
    parser.add_argument("--spark", action="store_true")
    args = parser.parse_args()
    fleet = Fleet(args.brokers, args.files, args.wait / 1000)
    results = lambda path: (fleet, path)  # noqa: E731
    files.storage_of = storage.storage_of = results  # type: ignore[assignment]
    reported: dict[str, Any] = {"brokers": args.brokers, "bytes": args.brokers * args.files * GIB}
    clock = Clock(reported)
    stores = files.find_stores("fleet/*/store")
    clock.lap("find")
    splits = plan(stores, args.split_bytes).splits
    clock.lap("plan")
    shares = share_out(splits, args.cores)
    clock.lap("share")
    packed = sum(len(pickle.dumps(share)) for share in shares)
    clock.lap("pack")
    reported |= {"stores": len(stores), "splits": len(splits), "splitBytes": max(s.stop - s.start for s in splits[:64])}
    reported |= {"tasks": len(shares), "packedBytes": packed, "calls": fleet.calls}
    if args.spark:
        on_spark(shares, len(splits), reported, clock)
    reported["load"] = round(os.getloadavg()[0], 1)
    print(json.dumps(reported))


class Clock:
    """Seconds, CPU seconds and growth of memory from lap to lap."""

    def __init__(self, figures: dict[str, Any]) -> None:
        self._figures = figures
        self._last = self._now()

    def _now(self) -> tuple[float, float, int]:
        return time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def lap(self, name: str) -> None:
        now = self._now()
        self._figures[name] = {
            "seconds": round(now[0] - self._last[0], 2),
            "cpu": round(now[1] - self._last[1], 2),
            "MiB": (now[2] - self._last[2]) >> 10,
        }
        self._last = now


def on_spark(shares: Sequence[Sequence[Split]], splits: int, figures: dict[str, Any], clock: Clock) -> None:
    """Run the tasks, and measure the memory of the driver's Java."""
    from engine.pipeline import session

    spark = session.start("local[2]")
    clock.lap("session")
    rows = run_tasks(spark, shares, count, "splits bigint").toArrow()["splits"].to_pylist()
    assert sum(rows) == splits
    clock.lap("spark")
    java = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    figures["javaUsedMiB"] = (java.totalMemory() - java.freeMemory()) >> 20
    java.gc()
    figures["javaHeldMiB"] = (java.totalMemory() - java.freeMemory()) >> 20
    session.stop()


if __name__ == "__main__":
    main()
