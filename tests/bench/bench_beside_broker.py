"""Cost of a viewer for a broker: the real RocketMQ store writes, in alternating stretches with and without a window.

``python tests/bench/bench_beside_broker.py [--seconds 60] [--pairs 5] [--half] [--part broker|bench|latency]``; the
full proof is ``--seconds 60 --pairs 5`` once plain and once with ``--half``, on an idle machine: ten minutes each.
Needs
Java 17 and Maven.

* ``broker``: one broker puts without end (``--half``: at half of its rate in a trial stretch); in every other stretch
  a window follows the log's end. Rates are counted from its own answers.
* ``bench``: the peer's ``bench`` at full speed with default file sizes, one run a stretch; in every other run a window
  follows.
* ``latency``: a window follows a broker that puts every few ms; from each answer to the paint that showed its unit.

Prints one JSON line a stretch and last the medians with their conditions.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import peer  # noqa: E402

NEEDED = 24 << 30
"""Bytes that must be free: what a broker writes at full rate in a pair of stretches of a minute."""
DRIVE = """
import asyncio, json, os, pathlib, time

async def drive(window):
    window.session.follow(True)
    used, begun = time.process_time(), time.monotonic()
    stop = pathlib.Path(os.environ["BENCH_STOP"])
    while not stop.exists():
        await asyncio.sleep(0.2)
    share = (time.process_time() - used) / (time.monotonic() - begun)
    stop.write_text(json.dumps({"cpuShare": round(share, 4), "seconds": round(time.monotonic() - begun, 1)}))
"""


def print_record(record: dict[str, Any]) -> None:
    """Print one JSON line."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


class FollowingWindow:
    """A window of its own process that follows ``store`` until :meth:`end`."""

    def __init__(self, folder: Path, store: Path) -> None:
        drive, self._stop = folder / "drive.py", folder / f"stop-{time.monotonic_ns()}"
        drive.write_text(DRIVE, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "viewer",
            str(store),
            "--at",
            "log",
            "--drive",
            str(drive),
            "--size",
            "1600x1000",
        ]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "BENCH_STOP": str(self._stop)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> dict[str, Any]:
        """Close it; return its processor time."""
        self._stop.touch()
        self._process.wait(60)
        text = self._stop.read_text("utf-8")
        record: dict[str, Any] = json.loads(text) if text else {"cpuShare": None}
        return record


class JavaWriter:
    """``peer write --hold`` without end; :attr:`puts` counts its answers."""

    def __init__(self, folder: Path, pause_every: int = 0, pause_ms: int = 0) -> None:
        from running_broker import plan_of

        free = shutil.disk_usage(folder).free
        if free < NEEDED:
            raise SystemExit(f"expected {NEEDED >> 30} GiB free in {folder}, found {free >> 30}")
        self.store = folder / "store"
        plan = plan_of(100_000_000, 1024, pause_every, pause_ms)
        plan["config"]["mappedFileSizeCommitLog"] = 1 << 28
        plan["config"]["mappedFileSizeConsumeQueue"] = 20 * 300_000
        path = folder / "plan.json"
        path.write_text(json.dumps(plan), encoding="utf-8")
        self.puts = 0
        self.process = subprocess.Popen(
            ["bash", str(peer.PEER), "write", "--store", str(self.store), "--plan", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PEER_BUILD": peer.BUILD, "PEER_JVM": "-Xmx2g"},
        )
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        assert self.process.stdout is not None
        while block := os.read(self.process.stdout.fileno(), 1 << 20):
            self.puts += block.count(b'"PUT_OK"')

    def rate(self, seconds: float) -> float:
        """Return the puts a second over the next ``seconds``."""
        puts, begun = self.puts, time.monotonic()
        time.sleep(seconds)
        return (self.puts - puts) / (time.monotonic() - begun)

    def end(self) -> None:
        """Kill it and delete its store."""
        self.process.kill()
        self.process.wait(20)
        shutil.rmtree(self.store)


def beside_broker(args: argparse.Namespace, folder: Path) -> None:
    """Alternating stretches of one broker."""
    pause = (0, 0)
    if args.half:
        trial = JavaWriter(folder)
        trial.rate(10)
        full = trial.rate(min(args.seconds, 20))
        trial.end()
        # 20 ms of pause for every 20 ms of putting
        pause = (max(1, round(full * 0.02)), 20)
    results: dict[bool, list[float]] = {True: [], False: []}
    shares = []
    for number in range(2 * args.pairs):
        with_us = number % 2 == 1
        if not with_us:  # a broker for each pair: at full rate it writes 10 GB in one
            broker = JavaWriter(folder, *pause)
            broker.rate(15)  # compile the path, make the first files
        looking = FollowingWindow(folder, broker.store) if with_us else None
        if looking is not None:
            time.sleep(args.settle)
        rate = broker.rate(args.seconds)
        output = looking.end() if looking is not None else {}
        if output.get("cpuShare") is not None:
            shares.append(output["cpuShare"])
        results[with_us].append(rate)
        print_record(
            {"type": "bench", "name": "beside broker", "withWindow": with_us, "putsPerSecond": round(rate), **output}
        )
        if with_us:
            broker.end()
    summary("half rate" if args.half else "full rate", results, shares, args)


def beside_bench(args: argparse.Namespace, folder: Path) -> None:
    """The peer's bench, one run a stretch."""
    results: dict[bool, list[float]] = {True: [], False: []}
    shares = []
    for number in range(2 * args.pairs):
        with_us = number % 2 == 1
        process = subprocess.Popen(
            [
                "bash",
                str(peer.PEER),
                "bench",
                "--messages",
                "100000000",
                "--body",
                "1024",
                "--threads",
                "1",
                "--flush",
                "async",
                "--seconds",
                str(args.seconds),
                "--parts",
                "append",
                "--dir",
                str(folder),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PEER_BUILD": peer.BUILD, "PEER_JVM": "-Xmx2g"},
        )
        looking = None
        while with_us and looking is None and process.poll() is None:
            files = [file for file in folder.glob("store-peer-bench*/store") if any(file.glob("commitlog/*"))]
            if files:
                looking = FollowingWindow(folder, files[0])
            time.sleep(0.2)
        while process.poll() is None:
            time.sleep(0.1)
        output = looking.end() if looking is not None else {}
        text, _ = process.communicate()
        line = next(json.loads(item) for item in text.splitlines() if '"bench"' in item)
        if output.get("cpuShare") is not None:
            shares.append(output["cpuShare"])
        results[with_us].append(line["putsPerSecond"])
        print_record(
            {
                "type": "bench",
                "name": "beside bench",
                "withWindow": with_us,
                "putsPerSecond": line["putsPerSecond"],
                **output,
            }
        )
    summary("bench", results, shares, args)


def summary(name: str, results: dict[bool, list[float]], shares: list[float], args: argparse.Namespace) -> None:
    """Return medians, the spread of the stretches without us, and the difference of the medians."""
    alone, beside = statistics.median(results[False]), statistics.median(results[True])
    share = round(statistics.median(shares), 4) if shares else None
    spread = (max(results[False]) - min(results[False])) / alone if len(results[False]) > 1 else 0.0
    print_record(
        {
            "type": "bench",
            "name": f"summary, {name}",
            "seconds": args.seconds,
            "pairs": args.pairs,
            "medianAlone": round(alone),
            "medianBeside": round(beside),
            "lossPercent": round(100 * (1 - beside / alone), 2),
            "spreadAlonePercent": round(100 * spread, 2),
            "cpuShare": share,
            "cpus": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
        }
    )


def latency(args: argparse.Namespace, folder: Path) -> None:
    """Measure the time from the answer of a put to its unit on the screen, in a window of this process."""
    import asyncio

    import qasync
    from PySide6.QtWidgets import QApplication
    from running_broker import RunningBroker, ScreenWatch, locks_held, plan_of, quantile, written_descriptors

    from viewer.look.theme import theme
    from viewer.runtime.settings import Settings
    from viewer.shell.main_window import MainWindow

    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    theme.apply(app)
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    broker = RunningBroker(folder, plan_of(100_000_000, 1024), hold_ms=args.hold)
    broker.wait_for(200)

    async def walk() -> dict[str, Any]:
        window = MainWindow(Settings(folder / "settings"))
        window.resize(1600, 1000)
        window.show()
        await window.open(broker.store, "log")
        window.session.follow(True)
        screen = ScreenWatch(window.pane("log").table)
        await asyncio.sleep(args.settle)
        since, used = time.monotonic(), time.process_time()
        await asyncio.sleep(args.seconds)
        share = (time.process_time() - used) / (time.monotonic() - since)
        count = len(broker.acknowledged)
        await asyncio.sleep(1)
        late = screen.latencies(broker.acknowledged[:count], since)
        locks, writable = locks_held(os.getpid(), broker.store), written_descriptors(os.getpid(), broker.store)
        window.close()
        await window.jobs.drain()
        return {
            "type": "bench",
            "name": "latency to the screen",
            "messages": len(late),
            "holdMs": args.hold,
            "p50Ms": round(quantile(late, 0.5) * 1000, 1),
            "p99Ms": round(quantile(late, 0.99) * 1000, 1),
            "worstMs": round(max(late, default=0) * 1000, 1),
            "cpuShare": round(share, 4),
            "locks": locks,
            "writable": writable,
            "load": round(os.getloadavg()[0], 1),
        }

    with loop:
        print_record(loop.run_until_complete(walk()))
    broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="What looking costs a broker, and how soon one sees its messages.")
    parser.add_argument("--part", choices=("broker", "bench", "latency"), default="broker")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--half", action="store_true", help="let the broker put at half its full rate")
    parser.add_argument("--hold", type=int, default=2, help="ms between two puts of the latency part")
    parser.add_argument("--settle", type=float, default=8, help="seconds that a window has to open")
    args = parser.parse_args()
    missing = peer.missing()
    if missing:
        sys.exit(f"The real RocketMQ store cannot run: {missing}")
    with tempfile.TemporaryDirectory(prefix="beside-broker-") as folder:
        {"broker": beside_broker, "bench": beside_bench, "latency": latency}[args.part](args, Path(folder))


if __name__ == "__main__":
    main()
