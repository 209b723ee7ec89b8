"""``bench recover``: the cost of a recovery after a crash of a hot log, and of rebuilding its index.

The case is that of the real store's own benchmark: ``abort`` exists, the checkpoint is all zero, the queues are
complete. The log is walked with its CRCs, the index is deleted and rebuilt, and every queue entry is already
known.

"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.bench import data as bench_data
from engine.bench.reads import conditions
from engine.config import MessageStoreConfig
from engine.files.layout import StorePaths, queue_file_name
from engine.message_store import MessageStore

Row = dict[str, Any]
NAMES = ("recover",)
_TARGET = "5 × the real store's rate"


def run(
    name: str,
    folder: Path | None = None,
    repeats: int = 5,
    size: int = bench_data.GIB,
    *,
    only_bodies: str | None = None,
) -> Iterator[Row]:
    """Yield the rows of the measurement ``name`` (``recover``) over logs of one file of ``size`` bytes;
    ``only_bodies`` selects one kind of bodies.
    """
    if name not in NAMES:
        raise KeyError(name)
    for bodies in bench_data.BODY_BYTES if only_bodies is None else (only_bodies,):
        yield _recover(bench_data.log_store(folder or bench_data.default_folder(), bodies, size), bodies, repeats, size)


def _recover(root: Path, bodies: str, repeats: int, size: int) -> Row:
    paths = StorePaths(root)
    config = MessageStoreConfig(mapped_file_size_commit_log=size, timer_wheel_enable=False)
    seconds, cpu_times, units, end_offset = [], [], 0, 0
    next_file = paths.commitlog / queue_file_name(size)  # the log ends at its beginning: nothing is cut
    try:
        for turn in range(repeats + 1):
            with next_file.open("wb") as file:
                file.truncate(size)
            if turn:
                paths.abort.write_bytes(b"")
                paths.checkpoint.write_bytes(bytes(4096))
            _warm(paths.commitlog)
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            store = MessageStore(root, config, services=False)
            wall_s, cpu_s = time.perf_counter() - wall_start, time.process_time() - cpu_start
            plan = store.recovery_plan
            units, end_offset = plan.units or units, plan.end_offset
            store.close()
            if turn:
                seconds.append(wall_s)
                cpu_times.append(cpu_s)
    finally:
        for folder in (paths.consumequeue, paths.index, paths.config):
            shutil.rmtree(folder, ignore_errors=True)
        for path in (next_file, paths.abort, paths.abort_bak, paths.checkpoint, paths.lock):
            path.unlink(missing_ok=True)
    median_wall = statistics.median(seconds)
    return {
        "type": "bench",
        "name": "recovery after a crash",
        "log": f"{bodies} B bodies",
        "bytes": end_offset,
        "units": units,
        "repeats": repeats,
        "seconds": median_wall,
        "cpuSeconds": statistics.median(cpu_times),
        "megabytesPerSecond": end_offset / median_wall / 1e6,
        "messagesPerSecond": units / median_wall,
        "target": _TARGET,
        "conditions": conditions(),
    }


def _warm(folder: Path) -> None:
    """Read the log once, so that it is in the page cache."""
    for path in sorted(folder.iterdir())[:1]:
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
