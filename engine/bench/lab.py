"""``bench lab``: what a load in the lab reaches beside the engine's own append, and how soon it answers a look.

Both sides put 200-byte bodies with UNIQ_KEY, a key and a tag into 8 queues of one topic, one message a call, in turns,
each into a store of its own; the lab's side runs in the lab's process and is asked for samples ten times a second.
"""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine import frames
from engine.bench.append import by_text, open_store, puts_per_second
from engine.bench.reads import conditions
from engine.config import from_mapping
from engine.lab.lab_store import DISK_BYTES
from engine.lab.load_settings import LoadSettings
from engine.lab.server import serve
from engine.releases import NEWEST

BODY = 200
SECONDS = 3.0
PUTS = 100_000
"""Messages of a turn of the engine by itself."""
PRODUCERS = (1, 4)
_LOOK_EVERY = 0.1


def run(name: str, folder: Path | None = None, repeats: int = 5, size: int = 1 << 30) -> Iterator[dict[str, Any]]:
    """Rows of the measurement ``name`` (``lab``); stores are made in ``folder`` and deleted again.

    ``size`` is the bytes of a log file.
    """
    if name != "lab":
        raise KeyError(name)
    for producers in PRODUCERS:
        own, loaded, looks = [], [], []
        with _lab(folder, size) as ask:
            _load_for(ask, LoadSettings(producers=producers, body_size=BODY, queues=8, keys=1 << 20), SECONDS)
            for _ in range(repeats):
                own.append(_own_rate(folder, size))
                rate, took = _load_for(
                    ask, LoadSettings(producers=producers, body_size=BODY, queues=8, keys=1 << 20), SECONDS
                )
                loaded.append(rate)
                looks += took
        yield _row(producers, own, loaded, sorted(looks), repeats)


def _row(producers: int, own: list[float], loaded: list[float], looks: list[float], repeats: int) -> dict[str, Any]:
    rate = statistics.median(loaded)
    return {
        "type": "bench",
        "name": f"lab load, {producers} producer{'s' if producers > 1 else ''}, looked at 10 times a second",
        "log": f"{BODY}-byte bodies; a look is answered within {looks[len(looks) // 2] * 1000:.1f} ms (median), "
        f"{looks[-1 - len(looks) // 100] * 1000:.1f} ms (p99)",
        "producers": producers,
        "repeats": repeats,
        "seconds": SECONDS,
        "messagesPerSecond": rate,
        "engineMessagesPerSecond": statistics.median(own),
        "lookSeconds": {"p50": looks[len(looks) // 2], "p99": looks[-1 - len(looks) // 100], "max": looks[-1]},
        "ratio": rate / statistics.median(own),
        "target": "≥ 0.7 × the engine's own append; looks ≤ 100 ms",
        "conditions": conditions(),
    }


def _own_rate(folder: Path | None, size: int) -> float:
    """Messages a second of the engine by itself, in this process."""
    payload = bytes(range(BODY))
    with open_store(folder, size) as store:
        puts_per_second(store, by_text, payload, 0, PUTS // 5)
        return puts_per_second(store, by_text, payload, PUTS // 5, PUTS)[0]


class _Asked:
    """The lab's process over its pipe, one question at a time."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._number = 0

    def __call__(self, verb: str, *args: object) -> Any:
        self._number += 1
        self._pipe.send_bytes(frames.pack(self._number, verb, *args))
        value, error = frames.receive(self._pipe).content()
        if error is not None:
            raise error
        return value


@contextmanager
def _lab(folder: Path | None, size: int) -> Iterator[_Asked]:
    """A lab process with a new store; its directory is deleted afterwards."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="storescope-bench-", dir=folder))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    ask = _Asked(ours)
    try:
        config, _ = from_mapping({"mappedFileSizeCommitLog": size})
        ask("start", root / "lab", config, NEWEST, DISK_BYTES)
        yield ask
        ask("close")
    finally:
        ours.close()
        process.join(10)
        process.kill()
        shutil.rmtree(root)


def _load_for(ask: _Asked, settings: LoadSettings, seconds: float) -> tuple[float, list[float]]:
    """Messages a second while a load runs, and how long each look took."""
    ask("load", settings)
    time.sleep(0.3)
    looks = []
    before, began = ask("counts").messages, time.perf_counter()
    while time.perf_counter() - began < seconds:
        asked = time.perf_counter()
        ask("sample", "bench")
        looks.append(time.perf_counter() - asked)
        time.sleep(max(0.0, _LOOK_EVERY - looks[-1]))
    rate = (ask("counts").messages - before) / (time.perf_counter() - began)
    ask("load", None)
    return rate, looks
