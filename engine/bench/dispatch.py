"""``bench dispatch``: queues and index built from nothing out of a log that is hot; ``bench query``: keys looked up in
the index that came of it, as a store that is written answers them.

Body CRCs are not made, as in a broker's own dispatch. What is written is not flushed within the time.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.bench import data as bench_data
from engine.bench.reads import conditions
from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.config import MessageStoreConfig
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.layout import StorePaths
from engine.mapped.disk import RealDisk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.services.rebuild import Rebuild
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.index_service import IndexService
from engine.store.mapped_log import MappedLog
from engine.store.query_message import query_message, query_messages

Row = dict[str, Any]
NAMES = ("dispatch", "query")
KEYS, AT_ONCE = 20_000, 64
_DISPATCH = "8 × the real store's rate"
_QUERY = {1: "≤ 2 × the real store's time", AT_ONCE: "≤ 0.5 × the real store's time"}


def run(name: str, folder: Path | None = None, repeats: int = 5, size: int = bench_data.GIB) -> Iterator[Row]:
    """Rows of the measurement ``name`` (one of :data:`NAMES`) over logs of one file of ``size`` bytes, as they come."""
    if name not in NAMES:
        raise KeyError(name)
    place = folder or bench_data.default_folder()
    if name == "query":
        yield from _query(bench_data.log_store(place, "200", size), repeats, size)
        return
    for bodies in bench_data.BODIES:
        yield _dispatch(bench_data.log_store(place, bodies, size), bodies, repeats, size)


def _dispatch(root: Path, bodies: str, repeats: int, size: int) -> Row:
    seconds, used, units, load = [], [], 0, 0.0
    for turn in range(repeats + 1):
        with _Target(root) as target:
            began, processor = time.perf_counter(), time.process_time()
            units = target.build()
            took, cpu = time.perf_counter() - began, time.process_time() - processor
        if turn:
            seconds.append(took)
            used.append(cpu)
        load = max(load, float(conditions()["load"] or 0))
    wall = statistics.median(seconds)
    return {
        "type": "bench",
        "name": "dispatch of a whole log, queues and index from nothing",
        "log": f"{bodies}-byte bodies",
        "bytes": size,
        "repeats": repeats,
        "units": units,
        "seconds": wall,
        "cpuSeconds": statistics.median(used),
        "messagesPerSecond": units / wall,
        "messagesPerCpuSecond": units / statistics.median(used),
        "target": _DISPATCH,
        "load": load,
        "conditions": conditions(),
    }


def _query(root: Path, repeats: int, size: int) -> Iterator[Row]:
    with _Target(root) as target:
        units = target.build()
        numbers = np.random.default_rng(1).integers(0, units, KEYS).tolist()
        topics = target.topics_of(numbers)
        keys = [bench_data.unique_key(number) for number in numbers]
        by_topic = {name: [key for key, mine in zip(keys, topics, strict=True) if mine == name] for name in set(topics)}
        index = target.index
        files = MappedFileQueue(RealDisk(), [StorePaths(root).commitlog], size)
        files.load()
        log = MappedLog(files)

        def singly() -> Asked:
            return _asked([(1, topic, key) for topic, key in zip(topics, keys, strict=True)], one)

        def one(topic: str, key: str) -> int:
            with query_message(index, log, topic, key) as result:
                return len(result.messages)

        def together() -> Asked:
            return _asked(
                [
                    (len(mine[at : at + AT_ONCE]), topic, mine[at : at + AT_ONCE])
                    for topic, mine in by_topic.items()
                    for at in range(0, len(mine), AT_ONCE)
                ],
                many,
            )

        def many(topic: str, mine: list[str]) -> int:
            with query_messages(index, log, topic, mine) as result:
                return len(result.messages)

        entries = sum(file.header.entries for file in index.files)
        for at_once, ask in ((1, singly), (AT_ONCE, together)):
            yield _per_key(at_once, ask, repeats, entries)
        files.close()


class Asked(NamedTuple):
    """Messages found, and microseconds a key of each call."""

    found: int
    taken: list[float]


def _asked(calls: Sequence[tuple[int, str, Any]], ask: Callable[[str, Any], int]) -> Asked:
    clock, taken, found = time.perf_counter_ns, [], 0
    for keys, topic, what in calls:
        began = clock()
        found += ask(topic, what)
        taken.append((clock() - began) / 1000 / keys)
    return Asked(found, sorted(taken))


def _per_key(at_once: int, ask: Callable[[], Asked], repeats: int, entries: int) -> Row:
    ask()
    runs, used = [], []
    for _ in range(repeats):
        processor = time.process_time()
        runs.append(ask())
        used.append((time.process_time() - processor) / KEYS * 1e6)
    one_key = "messages by key from a store that is written, one key a call"
    return {
        "type": "bench",
        "name": one_key if at_once == 1 else f"the same, {at_once} keys a call",
        "entries": entries,
        "keys": KEYS,
        "found": runs[-1].found,
        "microsecondsPerKey": statistics.median(run.taken[len(run.taken) // 2] for run in runs),
        "p99": statistics.median(run.taken[len(run.taken) * 99 // 100] for run in runs),
        "cpuMicrosecondsPerKey": statistics.median(used),
        "target": _QUERY[at_once],
        "conditions": conditions(),
    }


class _Target:
    """A place of its own for queues and index, deleted again; a context manager."""

    def __init__(self, root: Path) -> None:
        self._log = LogReader(FileSequence([StorePaths(root).commitlog], DescriptorCache()))
        self._folder = Path(tempfile.mkdtemp(prefix="dispatch-", dir=root.parent))
        self._disk, self._config = RealDisk(), MessageStoreConfig()
        paths = StorePaths(self._folder)
        self.queues = ConsumeQueueStore(paths, self._config, self._disk)
        now = time.time_ns
        self.index = IndexService(
            paths, self._config, self._disk, lambda: now() // 1_000_000, lambda _file: None, tag_entries=False
        )

    def __enter__(self) -> _Target:  # noqa: PYI034 (private, and never a subclass)
        return self

    def __exit__(self, *_: object) -> None:
        self.queues.close()
        self.index.close()
        self._disk.close()
        shutil.rmtree(self._folder)

    def build(self) -> int:
        """Dispatch the whole log; gives the number of its units."""
        topics = TopicTable()
        with Rebuild(self.queues, self.index, self._config) as rebuild:
            for block in scan_log(self._log, crc=False, topics=topics):
                if isinstance(block, UnitColumns):
                    rebuild.take(block, topics)
            rebuild.finish()
        return rebuild.units

    def topics_of(self, numbers: list[int]) -> list[str]:
        """Topic of each unit by its number in the log."""
        topics = TopicTable()
        blocks = scan_log(self._log, crc=False, topics=topics)
        ids = np.concatenate(
            [block["topic_id"][block["kind"] == 0] for block in blocks if isinstance(block, UnitColumns)]
        )
        return [topics.names[number] for number in ids[numbers].tolist()]
