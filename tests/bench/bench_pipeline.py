"""The pipeline's jobs beside one process of the engine, in turns within one session on this machine.

    python tests/bench/bench_pipeline.py [--gib 4] [--bodies 200 1k] [--turns 5] [--master local[2]]
        [--only counts parquet growth topic] [--folder DIR]

Logs of files of 1 GiB (of a quarter of ``--gib`` where that is less), 8 topics of 4 queues, hot. Each side takes its
turn, the order changes from turn to turn, one turn before is not counted. What is told, a JSON line each:

- ``counts``: ``topics`` counts messages by topic, ``groups`` by queue, tag, producer, hour, size and key too; the
  yardstick ``walk`` is the engine's own walk in one process: every column, body CRCs, messages by topic. ``groups
  alone`` is the job's own work in this process.
- ``parquet``: ``export`` beside ``pyarrow alone``, which writes the same rows from one process.
- ``growth``: ``groups`` over a quarter, a half, the whole and the double of ``--gib``: seconds for each GiB, their
  spread, and the largest worker.
- ``topic``: one topic of twelve through the data source, in runs of 20,000 messages and evenly interleaved, beside the
  whole of the same logs: a fleet of stores of a file each.

The session's start is told apart. Memory is the largest resident size of a Python worker, and of Java, seen while a
side ran.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from engine.bench import data as bench_data
from engine.bench.reads import conditions
from engine.codec.columns import UNIT, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.files.layout import StorePaths, queue_file_name
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.pipeline import export, export_parquet, register, session
from engine.pipeline.files import find_stores
from engine.pipeline.splits import Split, plan
from engine.pipeline.stats import GROUPS, Sums, stats, sum_splits

TARGETS = {"topics": 1.1, "groups": 1.6, "export": 1.6, "in runs, queues believed": 0.3, "interleaved": 0.7}
KINDS = ("counts", "parquet", "growth", "topic")
NAMES = b"0123456789ab"
"""Last letters of the names of twelve topics."""
RUN = 20_000
WANTED = "TopicBench5"
COLUMNS = "topic,queueId,queueOffset,size,storeTimestamp"
Side = Callable[[], int]


# -- logs


def walked(root: Path) -> Iterator[UnitColumns]:
    """Yield blocks of a log like the engine's own walk, without CRCs."""
    log = LogReader(FileSequence([StorePaths(root).commitlog], DescriptorCache()))
    yield from (block for block in scan_log(log, crc=False) if isinstance(block, UnitColumns))


def columns_of(root: Path) -> dict[str, np.ndarray]:
    """Return places of every unit of the one file of ``root``, and other columns that a copy changes."""
    names = ("offset", "queue_id", "queue_offset", "body_length", "size", "tags_code", "store_timestamp", "topic_id")
    results: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for block in walked(root):
        units = block["kind"] == UNIT
        for name in names:
            results[name].append(block[name][units].copy())
    return {name: np.concatenate(parts) for name, parts in results.items()}


def put(data: np.ndarray, positions: np.ndarray, values: np.ndarray) -> None:
    """Write 64-bit numbers, most significant byte first, at the places ``at``."""
    for byte in range(8):
        data[positions + byte] = (values >> (56 - 8 * byte)) & 0xFF


def several_files(folder: Path, bodies: str, size: int, files: int) -> Path:
    """Return a log of ``files`` files of ``size`` bytes: the first one again and again, each unit with its own
    offsets.
    """
    one_file = bench_data.log_store(folder, bodies, size)
    root = folder / f"log-{bodies}-{size}x{files}-on"
    log = StorePaths(root).commitlog
    if not (log / queue_file_name((files - 1) * size)).is_file():
        log.mkdir(parents=True, exist_ok=True)
        columns = columns_of(one_file)
        offset, queue = columns["offset"], columns["topic_id"].astype(np.int64) << 32 | columns["queue_id"]
        _, number_of, counts = np.unique(queue, return_inverse=True, return_counts=True)
        stored = columns["store_timestamp"]
        span = int(stored[-1] - stored[0]) + 1
        original = np.fromfile(StorePaths(one_file).commitlog / queue_file_name(0), np.uint8)
        for number in range(files):
            path = log / queue_file_name(number * size)
            if not path.exists():
                put(original, offset + 20, columns["queue_offset"] + number * counts[number_of])
                put(original, offset + 28, offset + number * size)
                put(original, offset + 56, stored + number * span)
                original.tofile(path.with_suffix(".draft"))
                path.with_suffix(".draft").rename(path)
    return root


def beginning_of(root: Path, files: int) -> Path:
    """Return the first ``files`` files of a log, as links."""
    part = root.with_name(f"{root.name}-{files}")
    log = StorePaths(part).commitlog
    log.mkdir(parents=True, exist_ok=True)
    for path in sorted(StorePaths(root).commitlog.iterdir())[:files]:
        if not (log / path.name).exists():
            (log / path.name).hardlink_to(path)
    return part


def twelve_topics(folder: Path, bodies: str, size: int, runs: bool) -> Path:
    """Return a log of one file and its queues, whose messages are of twelve topics: in runs, or one after another."""
    one_file = bench_data.log_store(folder, bodies, size)
    root = folder / f"twelve-{'runs' if runs else 'even'}-{bodies}-{size}"
    paths = StorePaths(root)
    if paths.consumequeue.exists():
        return root
    columns = columns_of(one_file)
    offset, rows = columns["offset"], np.arange(len(columns["offset"]))
    topic = (rows // min(RUN, max(len(rows) // 60, 1)) if runs else rows) % 12
    data = np.fromfile(StorePaths(one_file).commitlog / queue_file_name(0), np.uint8)
    data[offset + 88 + columns["body_length"] + len(WANTED)] = np.frombuffer(NAMES, np.uint8)[topic]
    offsets = np.zeros(len(rows), np.int64)
    queues = [(t, q, np.flatnonzero((topic == t) & (columns["queue_id"] == q))) for t in range(12) for q in range(4)]
    for _, _, ours in queues:
        offsets[ours] = np.arange(len(ours))
    put(data, offset + 20, offsets)
    paths.commitlog.mkdir(parents=True)
    data.tofile(paths.commitlog / queue_file_name(0))
    entries = np.empty(len(rows), bench_data._UNIT_FACTS)
    for name, column in (("offset", offset), ("size", columns["size"]), ("tags", columns["tags_code"])):
        entries[name] = column
    for number, queue, ours in queues:
        bench_data._write_queue(paths.queue_folder(f"TopicBench{chr(NAMES[number])}", queue), entries[ours])
    return root


def fleet_of(root: Path, stores: int) -> Path:
    """Return a folder of ``stores`` stores that are all ``root``, as links."""
    fleet = root.with_name(f"{root.name}-fleet-{stores}")
    for number in range(stores):
        if not (fleet / f"broker-{number}").exists():
            shutil.copytree(root, fleet / f"broker-{number}", copy_function=os.link)
    return fleet


# -- what is measured


def walk(root: Path) -> int:
    """Count messages by topic in one process; return their number."""
    log = LogReader(FileSequence([StorePaths(root).commitlog], DescriptorCache()))
    topics, counts = TopicTable(), np.zeros(64, np.int64)
    for block in scan_log(log, topics=topics):
        if isinstance(block, UnitColumns):
            counts += np.bincount(block["topic_id"][block["kind"] == UNIT], minlength=64)
    return int(counts.sum())


def messages(sums: Sums) -> int:
    """Return the number of messages of all topics."""
    return sum(group.messages for key, group in sums.groups.items() if key[2] == "topic")


def write_alone(splits: Sequence[Split], folder: Path) -> int:
    """Write the rows of an export as Parquet by pyarrow in this process; return their number."""
    import pyarrow.parquet as pq

    rows = 0
    shape = export.arrow_schema()
    with pq.ParquetWriter(folder / "rows.parquet", shape, compression="snappy") as writer:
        for batch in export.rows_of(splits, export.ExportOptions()):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


class Memory:
    """The largest resident sizes, in MiB, of the Python workers and of Java while it is entered."""

    def __init__(self) -> None:
        self.worker = self.java = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            for name, size in _below(os.getpid()):
                if name.startswith("java"):
                    self.java = max(self.java, size >> 20)
                else:
                    self.worker = max(self.worker, size >> 20)


def _below(root: int) -> list[tuple[str, int]]:
    """Return name and resident bytes of each process below ``root``; none without /proc."""
    parents: dict[int, int] = {}
    results: dict[int, tuple[str, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, remainder = path.read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        fields = remainder.split()
        number = int(path.parent.name)
        parents[number] = int(fields[1])
        results[number] = (name, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
    below = []
    for number, item in results.items():
        above = parents[number]
        while above in parents and above != root:
            above = parents[above]
        if above == root:
            below.append(item)
    return below


def in_turns(sides: dict[str, Side], turns: int) -> tuple[dict[str, list[float]], dict[str, Memory]]:
    """Return the seconds of every turn of every side, and the memory of its first."""
    observed: dict[str, list[float]] = {name: [] for name in sides}
    memory: dict[str, Memory] = {}
    for turn in range(turns + 1):
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            began = time.perf_counter()
            if turn:
                sides[name]()
                observed[name].append(time.perf_counter() - began)
            else:
                with Memory() as memory[name]:
                    sides[name]()
    return observed, memory


def print_side(
    label: str,
    name: str,
    seconds_by_name: dict[str, list[float]],
    memory: dict[str, Memory],
    beside: str,
    **options: Any,
) -> None:
    """Print one side as a line."""
    our_median, yardstick = median(seconds_by_name[name]), median(seconds_by_name[beside])
    print(
        json.dumps(
            {
                "what": label,
                "name": name,
                "median": round(our_median, 3),
                "ratio": round(our_median / yardstick, 2),
                "beside": beside,
                "target": TARGETS.get(name),
                "seconds": [round(item, 3) for item in seconds_by_name[name]],
                "workerMiB": memory[name].worker,
                "javaMiB": memory[name].java,
                "load": round(os.getloadavg()[0], 1),
                **options,
            }
        ),
        flush=True,
    )


def same(side: Side, expected: int) -> Side:
    """Return ``side`` with an assertion that it returns ``expected``."""

    def checked() -> int:
        actual_side = side()
        assert actual_side == expected, (actual_side, expected)
        return actual_side

    return checked


def measure_counts(spark: Any, root: Path, label: str, turns: int) -> None:
    """Measure counts of messages by topic, and by everything."""
    splits, expected = plan(find_stores(str(root))).splits, walk(root)
    sides: dict[str, Side] = {
        "walk": lambda: walk(root),
        "topics": lambda: messages(stats(spark, splits, ())),
        "groups": lambda: messages(stats(spark, splits, GROUPS)),
        "groups alone": lambda: messages(sum_splits(splits, GROUPS)),
    }
    observed, memory = in_turns({name: same(side, expected) for name, side in sides.items()}, turns)
    for name in sides:
        print_side(label, name, observed, memory, "walk", messages=expected, splits=len(splits))


def measure_parquet(spark: Any, root: Path, label: str, turns: int, scratch: Path) -> None:
    """Measure the export beside pyarrow."""
    splits = plan(find_stores(str(root))).splits
    expected = write_alone(splits, scratch)

    def written() -> int:
        shutil.rmtree(scratch / "rows", ignore_errors=True)
        (scratch / "rows").mkdir()
        export_parquet.write(spark, splits, export.ExportOptions(), scratch / "rows")
        return expected

    observed, memory = in_turns({"pyarrow alone": lambda: write_alone(splits, scratch), "export": written}, turns)
    for name in observed:
        print_side(label, name, observed, memory, "pyarrow alone", messages=expected, splits=len(splits))


def measure_growth(spark: Any, root: Path, label: str, turns: int, size: int) -> None:
    """Measure all groups over more and more files."""
    sides: dict[str, Side] = {}
    for files in (1, 2, 4, 8):
        splits = plan(find_stores(str(beginning_of(root, files)))).splits
        sides[f"{files} files"] = lambda splits=splits: messages(stats(spark, splits, GROUPS))
    observed, memory = in_turns(sides, turns)
    each = {name: median(observed[name]) / (int(name.split()[0]) * size / bench_data.GIB) for name in sides}
    for name in sides:
        print_side(label, name, observed, memory, "1 files", secondsPerGiB=round(each[name], 3))
    spread = round(max(each.values()) / min(each.values()) - 1, 3)
    print(json.dumps({"what": label, "name": "growth", "spread": spread, "target": 0.15}), flush=True)


def measure_topic(spark: Any, folder: Path, bodies: str, size: int, stores: int, turns: int) -> None:
    """Measure one topic of twelve through the data source, beside all."""
    label = f"one topic of twelve, {stores} stores of {size >> 20:,} MiB, {bodies}-byte bodies"
    for name, runs in (("in runs", True), ("interleaved", False)):
        root = twelve_topics(folder, bodies, size, runs)
        fleet = fleet_of(root, stores)

        def read(where: str, fleet: Path = fleet, queues: str = "prove") -> int:
            log = spark.read.format("rocketmq-commitlog").option("columns", COLUMNS).option("queues", queues)
            rows = log.load(f"{fleet}/*").where(where)
            return int(rows.selectExpr("sum(size)", "count(1)").collect()[0][1])

        expected = {"whole": stores * walk(root), name: read(f"topic = '{WANTED}'")}
        assert abs(expected[name] * 12 / expected["whole"] - 1) < 0.5, expected
        sides = {
            "whole": same(lambda read=read: read("true"), expected["whole"]),
            name: same(lambda read=read: read(f"topic = '{WANTED}'"), expected[name]),
            f"{name}, queues believed": same(
                lambda read=read: read(f"topic = '{WANTED}'", queues="trust"), expected[name]
            ),
        }
        observed, memory = in_turns(sides, turns)
        print_side(label, "whole", observed, memory, "whole", messages=expected["whole"])
        for side in list(sides)[1:]:
            print_side(label, side, observed, memory, "whole", messages=expected[name])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument(
        "--bodies", nargs="*", choices=tuple(bench_data.BODY_BYTES), default=list(bench_data.BODY_BYTES)
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only", nargs="*", choices=KINDS, default=list(KINDS))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = sys.path[0]
    size = min(bench_data.GIB, int(args.gib * bench_data.GIB / 4))
    files = max(1, round(args.gib * bench_data.GIB / size))
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        began = time.perf_counter()
        spark = session.start(args.master, Path(scratch) / "spark.log")
        print(json.dumps({"what": "session", "seconds": round(time.perf_counter() - began, 1)}), flush=True)
        register(spark)
        for bodies in args.bodies:
            label = f"{files} files of {size >> 20:,} MiB, {bodies}-byte bodies"
            complete = several_files(args.folder, bodies, size, 8 if "growth" in args.only else files)
            root = beginning_of(complete, files)
            if "counts" in args.only:
                measure_counts(spark, root, label, args.turns)
            if "parquet" in args.only:
                measure_parquet(spark, root, label, args.turns, Path(scratch))
            if "growth" in args.only:
                measure_growth(
                    spark, complete, f"growth, files of {size >> 20:,} MiB, {bodies}-byte bodies", args.turns, size
                )
            if "topic" in args.only:
                measure_topic(spark, args.folder, bodies, size, files, args.turns)
        session.stop()
    print(conditions())


if __name__ == "__main__":
    main()
