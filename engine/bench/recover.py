"""``bench recover``: what a recovery after a crash costs, the whole log hot, beside what it leaves in queues and index.

The case is that of the real store's own benchmark: ``abort`` is there, the checkpoint is all zero, the queues are
whole: the log is walked with its CRCs, the index deleted and built again, every queue entry found to be known.
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
from engine.layout import StorePaths, queue_file_name
from engine.message_store import MessageStore

Row = dict[str, Any]
NAMES = ("recover",)
_TARGET = "5 × the real store's rate"


def run(
    name: str, folder: Path | None = None, repeats: int = 5, size: int = bench_data.GIB, *, only: str | None = None
) -> Iterator[Row]:
    """Rows of the measurement ``name`` (``recover``) over logs of one file of ``size`` bytes, as they come; ``only``
    names one kind of bodies.
    """
    if name not in NAMES:
        raise KeyError(name)
    for bodies in bench_data.BODIES if only is None else (only,):
        yield _recover(bench_data.log_store(folder or bench_data.default_folder(), bodies, size), bodies, repeats, size)


def _recover(root: Path, bodies: str, repeats: int, size: int) -> Row:
    paths = StorePaths(root)
    config = MessageStoreConfig(mapped_file_size_commit_log=size, timer_wheel_enable=False)
    seconds, used, units, read = [], [], 0, 0
    following = paths.commitlog / queue_file_name(size)  # the log ends at its beginning: nothing is cut
    try:
        for turn in range(repeats + 1):
            with following.open("wb") as file:
                file.truncate(size)
            if turn:
                paths.abort.write_bytes(b"")
                paths.checkpoint.write_bytes(bytes(4096))
            _warm(paths.commitlog)
            began, processor = time.perf_counter(), time.process_time()
            store = MessageStore(root, config, services=False)
            took, cpu = time.perf_counter() - began, time.process_time() - processor
            plan = store.recovery_plan
            units, read = plan.units or units, plan.end_offset
            store.close()
            if turn:
                seconds.append(took)
                used.append(cpu)
    finally:
        for folder in (paths.consumequeue, paths.index, paths.config):
            shutil.rmtree(folder, ignore_errors=True)
        for left in (following, paths.abort, paths.abort_bak, paths.checkpoint, paths.lock):
            left.unlink(missing_ok=True)
    middle = statistics.median(seconds)
    return {
        "type": "bench",
        "name": "recovery after a crash",
        "log": f"{bodies} B bodies",
        "bytes": read,
        "units": units,
        "repeats": repeats,
        "seconds": middle,
        "cpuSeconds": statistics.median(used),
        "megabytesPerSecond": read / middle / 1e6,
        "messagesPerSecond": units / middle,
        "target": _TARGET,
        "conditions": conditions(),
    }


def _warm(folder: Path) -> None:
    """Read the log once: it is in the page cache then."""
    for path in sorted(folder.iterdir())[:1]:
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
