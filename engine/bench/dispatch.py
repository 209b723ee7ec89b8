"""``bench dispatch``: build queues and index from a hot log; ``bench query``: look up keys in the resulting index,
as an open store does.

Body CRCs are not computed, as in a broker's own dispatch. Flushing is not part of the time.

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
from engine.files.layout import StorePaths
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
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
KEY_COUNT, KEYS_PER_CALL = 20_000, 64
_DISPATCH_TARGET = "8 × the real store's rate"
_QUERY_TARGETS = {1: "≤ 2 × the real store's time", KEYS_PER_CALL: "≤ 0.5 × the real store's time"}


def run(name: str, folder: Path | None = None, repeats: int = 5, size: int = bench_data.GIB) -> Iterator[Row]:
    """Yield the rows of the measurement ``name`` (one of :data:`NAMES`) over logs of one file of ``size`` bytes."""
    if name not in NAMES:
        raise KeyError(name)
    place = folder or bench_data.default_folder()
    if name == "query":
        yield from _measure_queries(bench_data.log_store(place, "200", size), repeats, size)
        return
    for bodies in bench_data.BODY_BYTES:
        yield _measure_dispatch(bench_data.log_store(place, bodies, size), bodies, repeats, size)


def _measure_dispatch(root: Path, bodies: str, repeats: int, size: int) -> Row:
    seconds, cpu_times, units, load = [], [], 0, 0.0
    for turn in range(repeats + 1):
        with _Target(root) as target:
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            units = target.build()
            wall_s, cpu_s = time.perf_counter() - wall_start, time.process_time() - cpu_start
        if turn:
            seconds.append(wall_s)
            cpu_times.append(cpu_s)
        load = max(load, float(conditions()["load"] or 0))
    median_wall = statistics.median(seconds)
    return {
        "type": "bench",
        "name": "dispatch of a whole log, queues and index from nothing",
        "log": f"{bodies}-byte bodies",
        "bytes": size,
        "repeats": repeats,
        "units": units,
        "seconds": median_wall,
        "cpuSeconds": statistics.median(cpu_times),
        "messagesPerSecond": units / median_wall,
        "messagesPerCpuSecond": units / statistics.median(cpu_times),
        "target": _DISPATCH_TARGET,
        "load": load,
        "conditions": conditions(),
    }


def _measure_queries(root: Path, repeats: int, size: int) -> Iterator[Row]:
    with _Target(root) as target:
        units = target.build()
        numbers = np.random.default_rng(1).integers(0, units, KEY_COUNT).tolist()
        topics = target.topics_of(numbers)
        keys = [bench_data.unique_key(number) for number in numbers]
        by_topic = {
            name: [key for key, key_topic in zip(keys, topics, strict=True) if key_topic == name]
            for name in set(topics)
        }
        index = target.index
        files = MappedFileQueue(RealDisk(), [StorePaths(root).commitlog], size)
        files.load()
        log = MappedLog(files)

        def ask_singly() -> QueryTimes:
            return _time_queries([(1, topic, key) for topic, key in zip(topics, keys, strict=True)], query_one)

        def query_one(topic: str, key: str) -> int:
            with query_message(index, log, topic, key) as result:
                return len(result.messages)

        def ask_together() -> QueryTimes:
            return _time_queries(
                [
                    (len(topic_keys[start : start + KEYS_PER_CALL]), topic, topic_keys[start : start + KEYS_PER_CALL])
                    for topic, topic_keys in by_topic.items()
                    for start in range(0, len(topic_keys), KEYS_PER_CALL)
                ],
                query_many,
            )

        def query_many(topic: str, topic_keys: list[str]) -> int:
            with query_messages(index, log, topic, topic_keys) as result:
                return len(result.messages)

        entries = sum(file.header.entries for file in index.files)
        for keys_per_call, run_queries in ((1, ask_singly), (KEYS_PER_CALL, ask_together)):
            yield _per_key(keys_per_call, run_queries, repeats, entries)
        files.close()


class QueryTimes(NamedTuple):
    """The number of messages, and the microseconds per key of each call, sorted."""

    message_count: int
    microseconds: list[float]


def _time_queries(calls: Sequence[tuple[int, str, Any]], query: Callable[[str, Any], int]) -> QueryTimes:
    clock_ns, microseconds, message_count = time.perf_counter_ns, [], 0
    for keys, topic, wanted_keys in calls:
        start_ns = clock_ns()
        message_count += query(topic, wanted_keys)
        microseconds.append((clock_ns() - start_ns) / 1000 / keys)
    return QueryTimes(message_count, sorted(microseconds))


def _per_key(keys_per_call: int, run_queries: Callable[[], QueryTimes], repeats: int, entries: int) -> Row:
    run_queries()
    runs, cpu_times = [], []
    for _ in range(repeats):
        cpu_start = time.process_time()
        runs.append(run_queries())
        cpu_times.append((time.process_time() - cpu_start) / KEY_COUNT * 1e6)
    one_key = "messages by key from a store that is written, one key a call"
    return {
        "type": "bench",
        "name": one_key if keys_per_call == 1 else f"the same, {keys_per_call} keys a call",
        "entries": entries,
        "keys": KEY_COUNT,
        "found": runs[-1].message_count,
        "microsecondsPerKey": statistics.median(run.microseconds[len(run.microseconds) // 2] for run in runs),
        "p99": statistics.median(run.microseconds[len(run.microseconds) * 99 // 100] for run in runs),
        "cpuMicrosecondsPerKey": statistics.median(cpu_times),
        "target": _QUERY_TARGETS[keys_per_call],
        "conditions": conditions(),
    }


class _Target:
    """A new folder for queues and index, deleted afterwards; a context manager."""

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
        """Dispatch the complete log; returns the number of its units."""
        topics = TopicTable()
        with Rebuild(self.queues, self.index, self._config) as rebuild:
            for block in scan_log(self._log, crc=False, topics=topics):
                if isinstance(block, UnitColumns):
                    rebuild.take(block, topics)
            rebuild.finish()
        return rebuild.units

    def topics_of(self, numbers: list[int]) -> list[str]:
        """Return the topic of each unit by its number in the log."""
        topics = TopicTable()
        blocks = scan_log(self._log, crc=False, topics=topics)
        ids = np.concatenate(
            [block["topic_id"][block["kind"] == 0] for block in blocks if isinstance(block, UnitColumns)]
        )
        return [topics.names[number] for number in ids[numbers].tolist()]
