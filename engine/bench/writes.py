"""The writing measurements of ``bench``, which need a MessageStore, each on a new store.

The load is that of the real store's own benchmark: one topic, 8 queues, an incompressible body. Each message has
UNIQ_KEY, one key and a tag, is created within the time, and dispatch runs beside the puts. Times in seconds,
latencies in microseconds.

"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine import system
from engine.config import from_mapping
from engine.message_store import Message, MessageStore

Row = dict[str, Any]
QUEUES = 8
PRODUCERS = (1, 8, 64)
BODY_BYTES = 200
SYNC_RUN_S = 3.0
WARM_UP_SHARE = 0.25
TOPICS, TOPIC_QUEUES = 10_000, 4
ROUNDS = 5


def run(name: str, folder: Path | None = None, repeats: int = 1, size: int = 1 << 30) -> Iterator[Row]:
    """Yield the rows of the measurement ``name`` (one of :data:`NAMES`).

    Stores are created in ``folder`` (a temporary one by default) with log files of ``size`` bytes, and deleted
    again.

    """
    yield from NAMES[name](folder, repeats, size)


def _flush(folder: Path | None, repeats: int, size: int) -> Iterator[Row]:
    """Measure group commit: producers that wait for the disk, and the device's own flushes beside them."""
    for producers in PRODUCERS:
        for _ in range(repeats):
            with _store(folder, size, flushDiskType="SYNC_FLUSH") as store:
                yield flush_row(store, producers, SYNC_RUN_S)


def flush_row(store: MessageStore, producers: int, seconds: float, body: int = BODY_BYTES) -> Row:
    """Run ``producers`` threads that put for ``seconds``, after a warm-up of a quarter of that; returns the row."""
    payload = os.urandom(body)
    _produce(store, producers, seconds * WARM_UP_SHARE, payload)
    flushes = store.positions().flush_latency.count
    load, wall_start = _load(), time.perf_counter()
    latencies = _produce(store, producers, seconds, payload)
    wall_s = time.perf_counter() - wall_start
    flushes = store.positions().flush_latency.count - flushes
    return {
        "type": "bench",
        "name": f"group commit, {producers} producer{'s' if producers > 1 else ''}",
        "body": body,
        "producers": producers,
        "seconds": wall_s,
        "puts": len(latencies),
        "putsPerSecond": len(latencies) / wall_s,
        "p50": latencies[len(latencies) // 2],
        "p99": latencies[len(latencies) * 99 // 100],
        "max": latencies[-1],
        "putsPerFlush": len(latencies) / max(flushes, 1),
        "flushMicroseconds": device_flush(store.paths.root),
        "behind": store.positions().behind,
        "load": load,
        "target": "≥ 1 × the real store's",
    }


def device_flush(folder: Path, times: int = 50) -> float:
    """Return the median microseconds of writing 512 bytes at the end of a file of this device and syncing them."""
    path = folder / "flush.probe"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, 0o600)
    durations = []
    try:
        os.ftruncate(descriptor, 1 << 20)
        for number in range(times):
            began = time.perf_counter()
            system.pwrite(descriptor, b"x" * 512, 512 * number)
            system.sync_data(descriptor)
            durations.append(time.perf_counter() - began)
    finally:
        os.close(descriptor)
        path.unlink()
    return sorted(durations)[times // 2] * 1e6


def _produce(store: MessageStore, producers: int, seconds: float, payload: bytes) -> list[float]:
    """Return the latencies of all puts in microseconds, sorted."""
    latencies_by_producer: list[list[float]] = [[] for _ in range(producers)]
    until = time.perf_counter() + seconds

    def produce(number: int) -> None:
        clock, put, own_latencies, message_number = (
            time.perf_counter,
            store.put_message,
            latencies_by_producer[number],
            number,
        )
        while True:
            start = clock()
            result = put(_message("bench", payload, message_number, message_number % QUEUES))
            end = clock()
            if result.status.name != "PUT_OK":
                raise RuntimeError(f"a put ended with {result.status.name}: {store.flags.why}")
            own_latencies.append((end - start) * 1e6)
            message_number += producers
            if end >= until:
                return

    _run_in_threads(producers, produce)
    return sorted(latency for producer_latencies in latencies_by_producer for latency in producer_latencies)


def _topics(folder: Path | None, repeats: int, size: int) -> Iterator[Row]:
    """Measure puts round-robin over 10,000 topics with 4 queues each, against as many puts to one topic, in turns."""
    names = [f"topic-{number:05d}" for number in range(TOPICS)]
    payload = os.urandom(BODY_BYTES)
    for _ in range(repeats):
        with _store(folder, size) as store:
            _round_robin(store, names, payload)  # every queue has its file from here on
            one_topic_times: list[tuple[float, float]] = []
            many_topics_times: list[tuple[float, float]] = []
            for _ in range(ROUNDS):
                for times, topics in ((one_topic_times, ["bench"] * TOPICS), (many_topics_times, names)):
                    store.wait_dispatched(600_000)
                    times.append(_round_robin(store, topics, payload))
            wall, cpu = (sorted(duration[index] for duration in many_topics_times)[ROUNDS // 2] for index in (0, 1))
            one_wall, one_cpu = (
                sorted(duration[index] for duration in one_topic_times)[ROUNDS // 2] for index in (0, 1)
            )
            descriptors = system.PROC / "self" / "fd"
            row = {
                "type": "bench",
                "name": "10,000 topics × 4 queues, round-robin, against one topic",
                "seconds": wall,
                "cpuSeconds": cpu,
                "oneTopicSeconds": one_wall,
                "ratio": wall / one_wall,
                "cpuRatio": cpu / one_cpu,
                "target": 1.3,
                "puts": TOPICS * TOPIC_QUEUES,
                "openFiles": len(list(descriptors.iterdir())) if descriptors.is_dir() else None,
                "mebibytes": own_memory(),
                "load": _load(),
            }
        yield row


def _round_robin(store: MessageStore, names: list[str], payload: bytes) -> tuple[float, float]:
    """Put to each of four queues of every topic; returns (wall seconds, CPU seconds of this thread)."""
    put = store.put_message
    wall_start, cpu_start = time.perf_counter(), time.thread_time()
    for queue_id in range(TOPIC_QUEUES):
        for name in names:
            put(_message(name, payload, queue_id, queue_id))
    return time.perf_counter() - wall_start, time.thread_time() - cpu_start


def own_memory() -> float:
    """Return the MiB that the process uses, without mapped files."""
    try:
        words = (system.PROC / "self" / "status").read_text(encoding="ascii").split()
    except OSError:
        return system.peak_memory_bytes() / (1 << 20)
    return int(words[words.index("RssAnon:") + 1]) / 1024


def _message(topic: str, payload: bytes, number: int, queue_id: int) -> Message:
    return Message(topic, payload, queue_id, keys=f"K{number}", tags="TagA", unique_key=f"{number:032X}")


def _run_in_threads(threads: int, work: Callable[[int], None]) -> None:
    """Run ``work`` in so many threads; raises an exception of any of them."""
    from concurrent.futures import ThreadPoolExecutor

    ready = threading.Barrier(threads)

    def begin(number: int) -> None:
        ready.wait()
        work(number)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(begin, number) for number in range(threads)]:
            done.result()


@contextmanager
def _store(folder: Path | None, size: int, **settings: str) -> Iterator[MessageStore]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="storescope-bench-", dir=folder))
    store = MessageStore(root / "store", from_mapping({"mappedFileSizeCommitLog": size, **settings})[0])
    try:
        yield store
    finally:
        store.abandon()
        shutil.rmtree(root)


def _load() -> float | None:
    load = system.load_average()
    return None if load is None else round(load, 2)


NAMES: dict[str, Callable[[Path | None, int, int], Iterator[Row]]] = {"flush": _flush, "topics": _topics}
"""The measurements by name."""
