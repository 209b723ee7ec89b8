"""The pipeline's jobs beside one process of the engine, in turns within one session on this machine.

    python tests/bench/bench_pipeline.py [--folder DIR] [--bodies 200] [--size BYTES] [--turns 5]
        [--master local[2]] [--parquet]

A log of one file (1 GiB unless said otherwise, 8 topics of 4 queues), hot. The yardstick ``walk`` is the engine's own
walk in one process: every column, body CRCs, messages counted by topic. ``topics`` is the same job on Spark; ``groups``
counts by queue, tag, producer, hour, size and key, and ``groups alone`` does that in this process. With ``--parquet``
the export stands beside pyarrow writing the same rows from one process. The session's start is told apart. One JSON
line a side: seconds of every turn, their median, and its ratio to the yardstick's; the load average is said with it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from engine.codec.columns import UNIT, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.inspection import bench_data
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.layout import StorePaths
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.pipeline import export, session
from engine.pipeline.files import find_stores
from engine.pipeline.splits import Split, plan
from engine.pipeline.stats import GROUPS, Sums, add_up, stats

TARGETS = {"topics": 1.1, "groups": 1.6, "export": 1.6}


def walk(root: Path) -> int:
    """Count messages by topic in one process; gives how many there are."""
    log = LogReader(FileSequence([StorePaths(root).commitlog], DescriptorCache()))
    topics, counts = TopicTable(), np.zeros(64, np.int64)
    for block in scan_log(log, topics=topics):
        if isinstance(block, UnitColumns):
            counts += np.bincount(block["topic_id"][block["kind"] == UNIT], minlength=64)
    return int(counts.sum())


def messages(sums: Sums) -> int:
    """Messages of all topics."""
    return sum(one.messages for key, one in sums.groups.items() if key[2] == "topic")


def write_alone(splits: tuple[Split, ...], folder: Path) -> int:
    """The rows of an export, written as Parquet by pyarrow in this process; gives how many there are."""
    import pyarrow.parquet as pq

    rows = 0
    shape = export.arrow_schema()
    with pq.ParquetWriter(folder / "rows.parquet", shape, compression="snappy") as writer:
        for batch in export.rows_of(splits, export.Wish()):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    parser.add_argument("--bodies", choices=tuple(bench_data.BODIES), default="200")
    parser.add_argument("--size", type=int, default=bench_data.GIB)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--parquet", action="store_true")
    args = parser.parse_args()
    root = bench_data.log_store(args.folder, args.bodies, args.size)
    splits = plan(find_stores(str(root))).splits
    began = time.perf_counter()
    spark = session.start(args.master)
    started = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as scratch:

        def written() -> int:
            shutil.rmtree(f"{scratch}/spark", ignore_errors=True)
            export.write(export.exported(spark, splits), f"{scratch}/spark", "parquet")
            return expected

        sides: dict[str, Callable[[], int]] = {
            "walk": lambda: walk(root),
            "topics": lambda: messages(stats(spark, splits, ())),
            "groups": lambda: messages(stats(spark, splits, GROUPS)),
            "groups alone": lambda: messages(add_up(splits, GROUPS)),
        }
        if args.parquet:
            sides |= {"pyarrow alone": lambda: write_alone(splits, Path(scratch)), "export": written}
        expected = walk(root)
        seen: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(args.turns + 1):
            for name, side in sides.items():
                began = time.perf_counter()
                assert side() == expected, name
                if turn:
                    seen[name].append(time.perf_counter() - began)
    for name, seconds in seen.items():
        beside = "pyarrow alone" if name == "export" else "walk"
        print(json.dumps({
            "name": name, "seconds": [round(one, 3) for one in seconds], "median": round(median(seconds), 3),
            "ratio": round(median(seconds) / median(seen[beside]), 2), "beside": beside, "target": TARGETS.get(name),
            "messages": expected, "splits": len(splits), "sessionSeconds": round(started, 1),
            "load": round(os.getloadavg()[0], 1), "processors": os.cpu_count(), "bytes": args.size,
        }))  # fmt: skip


if __name__ == "__main__":
    main()
