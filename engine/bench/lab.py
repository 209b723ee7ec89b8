"""``bench lab``: the rate of a load in the lab beside the engine's own append, and the lab's response time to
samples.

Both sides put 200-byte bodies with UNIQ_KEY, a key and a tag into 8 queues of one topic, one message per call, in
turns, each into a new store. The lab runs in a process of its own and is asked for a sample ten times a second.
"""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine import system
from engine.bench.append import by_text, open_store, puts_per_second
from engine.bench.reads import conditions
from engine.config import from_mapping
from engine.lab import pipe_frames
from engine.lab.lab_store import DISK_BYTES
from engine.lab.load_settings import LoadSettings
from engine.lab.server import serve
from engine.releases import NEWEST

BODY_BYTES = 200
LOAD_S = 3.0
PUTS = 100_000
"""Messages per turn of the engine alone."""
PRODUCERS = (1, 4)
_SAMPLE_INTERVAL_S = 0.1


def run(name: str, folder: Path | None = None, repeats: int = 5, size: int = 1 << 30) -> Iterator[dict[str, Any]]:
    """Yield the rows of the measurement ``name`` (``lab``); stores are created in ``folder`` and deleted again.

    ``size`` is the bytes of a log file.

    """
    if name != "lab":
        raise KeyError(name)
    for producers in PRODUCERS:
        engine_rates, lab_rates, sample_times = [], [], []
        with _lab(folder, size) as ask:
            _load_for(ask, LoadSettings(producers=producers, body_size=BODY_BYTES, queues=8, keys=1 << 20), LOAD_S)
            for _ in range(repeats):
                engine_rates.append(_own_rate(folder, size))
                rate, new_times = _load_for(
                    ask, LoadSettings(producers=producers, body_size=BODY_BYTES, queues=8, keys=1 << 20), LOAD_S
                )
                lab_rates.append(rate)
                sample_times += new_times
        yield _row(producers, engine_rates, lab_rates, sorted(sample_times), repeats)


def _row(
    producers: int, engine_rates: list[float], lab_rates: list[float], sample_times: list[float], repeats: int
) -> dict[str, Any]:
    rate = statistics.median(lab_rates)
    return {
        "type": "bench",
        "name": f"lab load, {producers} producer{'s' if producers > 1 else ''}, sampled 10 times a second",
        "log": f"{BODY_BYTES}-byte bodies; "
        f"a sample is answered within {sample_times[len(sample_times) // 2] * 1000:.1f} ms (median), "
        f"{sample_times[-1 - len(sample_times) // 100] * 1000:.1f} ms (p99)",
        "producers": producers,
        "repeats": repeats,
        "seconds": LOAD_S,
        "messagesPerSecond": rate,
        "engineMessagesPerSecond": statistics.median(engine_rates),
        "lookSeconds": {
            "p50": sample_times[len(sample_times) // 2],
            "p99": sample_times[-1 - len(sample_times) // 100],
            "max": sample_times[-1],
        },
        "ratio": rate / statistics.median(engine_rates),
        "target": "≥ 0.7 × the engine's own append; samples ≤ 100 ms",
        "conditions": conditions(),
    }


def _own_rate(folder: Path | None, size: int) -> float:
    """Return messages per second of the engine alone, in this process."""
    payload = bytes(range(BODY_BYTES))
    with open_store(folder, size) as store:
        puts_per_second(store, by_text, payload, 0, PUTS // 5)
        return puts_per_second(store, by_text, payload, PUTS // 5, PUTS)[0]


class _LabClient:
    """The lab's process behind its pipe, one request at a time."""

    def __init__(self, pipe: system.PipeEnd) -> None:
        self._pipe = pipe
        self._number = 0

    def __call__(self, verb: str, *args: object) -> Any:
        self._number += 1
        self._pipe.send_bytes(pipe_frames.pack(self._number, verb, *args))
        value, error = pipe_frames.receive(self._pipe).content()
        if error is not None:
            raise error
        return value


@contextmanager
def _lab(folder: Path | None, size: int) -> Iterator[_LabClient]:
    """Start a lab process with a new store; its directory is deleted afterwards."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="storescope-bench-", dir=folder))
    context = multiprocessing.get_context("spawn")
    our_pipe, lab_pipe = context.Pipe()
    process = context.Process(target=serve, args=(lab_pipe,), daemon=True)
    process.start()
    lab_pipe.close()
    ask = _LabClient(our_pipe)
    try:
        config, _ = from_mapping({"mappedFileSizeCommitLog": size})
        ask("start", root / "lab", config, NEWEST, DISK_BYTES)
        yield ask
        ask("close")
    finally:
        our_pipe.close()
        process.join(10)
        process.kill()
        shutil.rmtree(root)


def _load_for(ask: _LabClient, settings: LoadSettings, seconds: float) -> tuple[float, list[float]]:
    """Return messages per second during a load, and the duration of each sample request (s)."""
    ask("load", settings)
    time.sleep(0.3)
    sample_times = []
    message_count, wall_start = ask("counts").messages, time.perf_counter()
    while time.perf_counter() - wall_start < seconds:
        call_start = time.perf_counter()
        ask("sample", "bench")
        sample_times.append(time.perf_counter() - call_start)
        time.sleep(max(0.0, _SAMPLE_INTERVAL_S - sample_times[-1]))
    rate = (ask("counts").messages - message_count) / (time.perf_counter() - wall_start)
    ask("load", None)
    return rate, sample_times
