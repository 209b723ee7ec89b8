"""Queues in a RocksDB: how fast they are listed, how long an entry by its number takes, and opening a large database.

    python tests/bench/bench_rocksdb.py [--rows 1000000] [--gib 2] [--samples 20000]

The queue has rows as a broker writes them, in table files. The large database has rows of 1 MiB that cannot be
compressed, in tables of 64 MiB. What must be reached: 1,000,000 rows a second, 50 µs, 1 s for 10 GiB. One JSON line.
``commandSeconds`` is the whole command ``storescope queue``, from the start of its process to its last line.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.codec import rocksdb_queue_rows as codec
from engine.inspection import open_store
from engine.mapped.reading import Reading
from engine.rocksdb.database import open_rocksdb

TOPIC = "bench"
SIZE = 200
LARGE_ROW_BYTES = 1 << 20


def write_queue(folder: Path, rows: int) -> None:
    """Write a queue with ``rows`` entries."""
    import rocksdict

    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    database = rocksdict.Rdict(str(folder), options)
    bounds = database.create_column_family(codec.BOUND_FAMILY, rocksdict.Options(raw_mode=True))
    for number in range(rows):
        row = codec.QueueRow(number * SIZE, SIZE, 0, 1_700_000_000_000 + number)
        database[codec.entry_key(TOPIC, 0, number)] = codec.encode_entry(row)
    bound = codec.BoundRow(TOPIC, 0, "max", (rows - 1) * SIZE, rows - 1)
    bounds[codec.bound_key(TOPIC, 0, "max")] = codec.encode_bound(bound)
    bounds[codec.CHECKPOINT_KEY] = bytes(8)  # else a start would cut the queue, because the log is empty
    database.flush()
    bounds.flush()
    database.close()


def write_large(folder: Path, gib: float) -> None:
    """Write a database of ``gib`` GiB."""
    import rocksdict

    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    options.set_disable_auto_compactions(True)
    write = rocksdict.WriteOptions()
    write.disable_wal = True
    database = rocksdict.Rdict(str(folder), options)
    database.set_write_options(write)
    value = os.urandom(LARGE_ROW_BYTES)
    for number in range(int(gib * (1 << 30) / LARGE_ROW_BYTES)):
        database[number.to_bytes(8, "big")] = value
    database.flush()
    database.close()


def list_by_command(store: Path, rows: int) -> float:
    """Return the seconds (wall clock, start of the process included) in which ``storescope queue`` lists the queue."""
    words = [sys.executable, "-m", "engine.cli", "queue", str(store), TOPIC, "0"]
    output = store.parent / "listed.txt"
    with output.open("wb") as file:
        begun = time.perf_counter()
        subprocess.run(words, stdout=file, cwd=Path(__file__).resolve().parents[2], check=True)
        seconds = time.perf_counter() - begun
    with output.open("rb") as file:
        assert sum(1 for _ in file) >= rows
    return seconds


def measure(folder: Path, rows: int, gib: float, samples: int) -> dict[str, float]:
    """Return the figures."""
    store_folder = folder / "store"
    (store_folder / "commitlog").mkdir(parents=True)
    write_queue(store_folder / "consumequeue", rows)
    with open_store(store_folder) as store:
        assert store.queues.rocksdb is not None
        queue = store.queues.rocksdb.by_topic()[TOPIC][0]
        seconds, cpu_seconds = [], []
        for _ in range(3):
            begun, cpu_begun = time.perf_counter(), time.process_time()
            listed = queue.raw_entries(0, rows)
            seconds.append(time.perf_counter() - begun)
            cpu_seconds.append(time.process_time() - cpu_begun)
            assert int(listed["physical_offset"][-1]) == (rows - 1) * SIZE
        pick, times = random.Random(1), []
        for _ in range(samples):
            number = pick.randrange(rows)
            start = time.perf_counter_ns()
            row = queue.row(number)
            times.append((time.perf_counter_ns() - start) / 1000)
            assert row is not None
    command_seconds = [list_by_command(store_folder, rows) for _ in range(3)]
    write_large(folder / "large", gib)
    size = sum(path.stat().st_size for path in (folder / "large").iterdir())
    openings = []
    for _ in range(3):
        begun = time.perf_counter()
        with open_rocksdb(folder / "large", Reading()) as database:
            assert database.get("default", bytes(8)) is not None
        openings.append(time.perf_counter() - begun)
    return {
        "rowsPerSecond": round(rows / median(seconds)),
        "rowsPerCpuSecond": round(rows / median(cpu_seconds)),
        "commandSeconds": round(median(command_seconds), 3),
        "commandRowsPerSecond": round(rows / median(command_seconds)),
        "entryMicroseconds": round(median(times), 1),
        "largeBytes": size,
        "openSeconds": round(median(openings), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--gib", type=float, default=2)
    parser.add_argument("--samples", type=int, default=20_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), args.rows, args.gib, args.samples)), flush=True)


if __name__ == "__main__":
    main()
