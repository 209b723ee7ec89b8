"""The reading measurements of ``storescope bench``: walks, queries, ``info`` and ``check``, as ratios to plain C and
to the memory floor.

A ratio needs both sides in one run: they take turns, each figure is a median, and CPU time is reported beside
wall time. The C side is ``tests/bench/scan.c``, compiled when it is needed; without a compiler, or outside a
checkout, only our side is measured. Times are seconds unless a name has another unit.

"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from engine import system
from engine.bench import data as bench_data
from engine.bench.yardstick import Yardstick, find_yardstick
from engine.codec.columns import BLANK, UnitColumns, twin
from engine.codec.topic_table import TopicTable
from engine.files.layout import StorePaths
from engine.inspection.block_scan import scan_log
from engine.inspection.chain_query import find_matches, hashes_of
from engine.inspection.key_trace import trace
from engine.inspection.log_reader import LogReader
from engine.inspection.snapshot import open_store
from engine.mapped.read_only import DescriptorCache, FileSequence

Row = dict[str, Any]
REPEATS = 7
KEYS = 20_000
TRACED = 200
CHECK_TARGET = 6.0


def run(name: str, folder: Path | None = None, repeats: int = REPEATS, size: int = bench_data.GIB) -> Iterator[Row]:
    """Yield the rows of the measurement ``name`` (one of :data:`NAMES`).

    ``folder`` holds the measured stores; missing ones are created, which takes half a minute per GiB. ``size`` is
    the bytes of a log file. Raises ``KeyError`` for an unknown name.

    """
    place = bench_data.default_folder() if folder is None else folder
    yield from NAMES[name](place, repeats, size)


def conditions() -> Row:
    """Return the conditions of a measurement: machine, versions, load."""
    compiled = twin()
    return {
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": importlib.metadata.version("numba") if compiled is not None else None,
        "load": None if (load := system.load_average()) is None else round(load, 2),
    }


def _scan(folder: Path, repeats: int, size: int) -> Iterator[Row]:
    for bodies, target in (("200", 1.6), ("1k", 2.2)):
        yield from _walks(folder, repeats, size, bodies, "full walk, all columns and body CRC", target, full=True)


def _header(folder: Path, repeats: int, size: int) -> Iterator[Row]:
    for bodies in ("200", "1k"):
        yield from _walks(folder, repeats, size, bodies, "header-only walk", 1.2, full=False)


def _walks(
    folder: Path, repeats: int, size: int, bodies: str, title: str, target: float, *, full: bool
) -> Iterator[Row]:
    root = bench_data.log_store(folder, bodies, size)
    log = _log(root)
    path = log.files[0].path
    sides: dict[str, Callable[[], int]] = {"ours": lambda: _walked(log, full)}
    yardstick = find_yardstick(folder)
    if yardstick is not None:
        mapped = yardstick.map(path)
        sides["c"] = lambda: mapped.walk(full)
        sides["cReading"] = lambda: yardstick.read_walk(path, full)
        sides["floor"] = mapped.sum
    _walked(log, full)
    timed = _in_turns(sides, repeats)
    row: Row = {"type": "bench", "name": title, "log": f"{bodies}-byte bodies", "bytes": size, "repeats": repeats}
    row["units"] = timed["ours"].result
    row["seconds"], row["cpuSeconds"] = timed["ours"].wall, timed["ours"].cpu
    row["gigabytesPerSecond"] = size / timed["ours"].wall / 1e9
    for side, key in (("c", "c"), ("cReading", "cReading"), ("floor", "floor")):
        row[f"{key}Seconds"] = timed[side].wall if side in timed else None
    row["ratio"] = timed["ours"].wall / timed["c"].wall if "c" in timed else None
    row["cpuRatio"] = timed["ours"].cpu / timed["c"].cpu if "c" in timed else None
    row["target"] = target
    row["conditions"] = conditions()
    yield row


def _walked(log: LogReader, full: bool) -> int:
    blocks = scan_log(log, crc=full, with_tags=full)
    return sum(int(np.count_nonzero(block["kind"] == 0)) for block in blocks if isinstance(block, UnitColumns))


def _query(folder: Path, repeats: int, size: int) -> Iterator[Row]:
    root = bench_data.whole_store(folder, size)
    with open_store(root) as store:
        index = store.index_files()[0]
        keys = _some_keys(store.log)
        hashes = np.concatenate([hashes_of(topic, [key]) for topic, key in keys])
        find_matches(index, hashes)
        timed = _in_turns({"bulk": lambda: len(find_matches(index, hashes).key)}, repeats)["bulk"]
        yield _per_key("key query, matches only", timed, KEYS, 5.0, index.last_entry)

        def traced() -> int:
            return sum(1 for topic, key in keys[:TRACED] for _ in trace(store, topic, key))

        traced()
        timed = _in_turns({"steps": traced}, repeats)["steps"]
        yield _per_key("key query, every step a record", timed, TRACED, 200.0, index.last_entry)


def _some_keys(log: LogReader) -> list[tuple[str, str]]:
    """Return (topic, unique key) of units anywhere in the log, in no order."""
    topics = TopicTable()
    blocks = scan_log(log, crc=False, topics=topics)
    ids = np.concatenate([b["topic_id"][b["kind"] != BLANK] for b in blocks if isinstance(b, UnitColumns)])
    numbers = np.random.default_rng(1).integers(0, len(ids), KEYS).tolist()
    return [(topics.names[ids[n]], bench_data.unique_key(n)) for n in numbers]


def _per_key(title: str, timed: _Timed, keys: int, target: float, entries: int) -> Row:
    return {
        "type": "bench",
        "name": title,
        "entries": entries,
        "keys": keys,
        "found": timed.result,
        "microsecondsPerKey": timed.wall / keys * 1e6,
        "cpuMicrosecondsPerKey": timed.cpu / keys * 1e6,
        "target": target,
        "conditions": conditions(),
    }


def _info(folder: Path, repeats: int, _size: int) -> Iterator[Row]:
    root = bench_data.sparse_store(folder)
    runs = [_process("info", str(root), "--json") for _ in range(repeats + 1)][1:]
    yield {
        "type": "bench",
        "name": "info on a sparse store, the whole process",
        "bytes": 1024 * bench_data.GIB,
        "files": 1024,
        "repeats": repeats,
        "seconds": statistics.median(wall for wall, _, _ in runs),
        "cpuSeconds": statistics.median(cpu for _, cpu, _ in runs),
        "mebibytes": max(peak for _, _, peak in runs),
        "target": 1.0,
        "targetMebibytes": 150,
        "conditions": conditions(),
    }


def _check(folder: Path, repeats: int, size: int) -> Iterator[Row]:
    root = bench_data.healthy_store(folder, size)
    log = _log(root)
    _walked(log, full=True)
    turns = max(1, repeats // 3)
    walks, checks = [], []
    for _ in range(turns):
        start = time.perf_counter()
        _walked(log, full=True)
        walks.append(time.perf_counter() - start)
        checks.append(_process("check", str(root), "--json", "--quiet", allowed=(0, 1)))
    wall = statistics.median(seconds for seconds, _, _ in checks)
    yield {
        "type": "bench",
        "name": "check, all rules, the whole process",
        "bytes": size,
        "repeats": turns,
        "seconds": wall,
        "cpuSeconds": statistics.median(cpu for _, cpu, _ in checks),
        "mebibytes": max(peak for _, _, peak in checks),
        "walkSeconds": statistics.median(walks),
        "ratio": wall / statistics.median(walks),
        "target": CHECK_TARGET,
        "conditions": conditions(),
    }


NAMES: dict[str, Callable[[Path, int, int], Iterator[Row]]] = {
    "scan": _scan,
    "header": _header,
    "info": _info,
    "query": _query,
    "check": _check,
}
"""The measurements by name."""


class _Timed:
    """Medians of one side, and its result."""

    def __init__(self, wall: float, cpu: float, result: int) -> None:
        self.wall = wall
        self.cpu = cpu
        self.result = result


def _in_turns(sides: dict[str, Callable[[], int]], repeats: int) -> dict[str, _Timed]:
    """Run every side once per round, so that other work of the machine affects all of them."""
    measurements: dict[str, list[tuple[float, float, int]]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(repeats):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            wall, cpu = time.perf_counter(), time.process_time()
            result = sides[name]()
            measurements[name].append((time.perf_counter() - wall, time.process_time() - cpu, result))
    return {
        name: _Timed(statistics.median(w for w, _, _ in runs), statistics.median(c for _, c, _ in runs), runs[-1][2])
        for name, runs in measurements.items()
    }


_LAUNCH = """
import os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen([sys.executable, "-m", "engine.cli", *sys.argv[1:]], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


def _process(*arguments: str, allowed: tuple[int, ...] = (0,)) -> tuple[float, float, float]:
    """Return (wall seconds, CPU seconds, peak MiB) of the command in a new process.

    A small process starts it: the peak that the system reports for a child begins with the memory of its parent.

    """
    done = subprocess.run(  # noqa: S603  the program itself
        [sys.executable, "-S", "-c", _LAUNCH, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    wall, cpu, peak, code = done.stdout.split()
    if int(code) not in allowed:
        raise subprocess.CalledProcessError(int(code), arguments)
    return float(wall), float(cpu), float(peak) / (1 << 20 if system.NAME == "darwin" else 1 << 10)


def _log(root: Path) -> LogReader:
    return LogReader(FileSequence([StorePaths(root).commitlog], DescriptorCache()))


__all__ = ["NAMES", "Row", "Yardstick", "conditions", "run"]
