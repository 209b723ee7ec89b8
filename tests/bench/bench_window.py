"""The window's figures beside what they must reach, in one table.

    python tests/bench/bench_window.py [--folder DIR] [--size BYTES] [--only NAME …]

Run it at rest: at a load above 1 the figures are those of the machine. It takes some minutes, and the stores of
``storescope bench`` are made once before that (3 GiB). Each window is offscreen, 1600 × 1000, in a process and a home
of its own. Modules are compiled before, as in an installed program.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench_start import compile_modules, environment, start_once

from engine.bench import data as bench_data

ROOT = Path(__file__).resolve().parents[2]
DRIVE = Path(__file__).with_name("window_drive.py")
STARTS = 5
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value beside its bound, in the same unit."""

    name: str
    value: float
    bound: float
    unit: str
    note: str = ""

    def line(self) -> str:
        """Return the row of the table."""
        verdict = "yes" if self.value <= self.bound else "**no**"
        return f"| {self.name} | {self.value:g} {self.unit} | ≤ {self.bound:g} {self.unit} | {verdict} | {self.note} |"


def run_python(*arguments: str, **variables: str) -> str:
    """Run Python on a script and return what it prints."""
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(QT_QPA_PLATFORM="offscreen", **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"{arguments[0]} failed:\n{process.stderr[-2000:]}")
    return process.stdout


def drive(store: Path, task: str, *options: str) -> dict[str, float]:
    """Open ``store`` in a window with a fresh home, run a task of ``window_drive.py``, and return its figures."""
    with tempfile.TemporaryDirectory() as home:
        command = ("-m", "viewer", str(store), "--drive", str(DRIVE), "--config-dir", f"{home}/config", *options)
        printed = run_python(*command, "--size", "1600x1000", BENCH_TASK=task, XDG_CACHE_HOME=f"{home}/cache")
    figures: dict[str, float] = json.loads(printed.strip().splitlines()[-1])
    return figures


def first_rows(folder: Path, size: int) -> Iterator[Figure]:
    """Measure from the start of the process to painted rows."""
    stores = (
        ("first rows of 1 GiB", bench_data.whole_store(folder, size), 0.5),
        ("first rows of 1 TiB, sparse", bench_data.sparse_store(folder), 0.9),
    )
    for name, store, bound in stores:
        with tempfile.TemporaryDirectory() as home:
            starts = [start_once(store, Path(home))[0] for _ in range(STARTS)]
        yield Figure(
            name, round(statistics.median(starts), 2), bound, "s", f"median of {STARTS}, longest {max(starts):.2f}"
        )


def histogram(folder: Path, size: int) -> Iterator[Figure]:
    """Measure the time histogram beside the walk alone."""
    figures = json.loads(
        run_python("tests/bench/bench_histogram.py", "--folder", str(folder), "--size", str(size), "--turns", "5")
    )
    yield Figure("histogram of 1 GiB of 200 B, beside the walk", figures["ratio"], 1.3, "×", "CPU, median of 5")
    yield Figure("histogram from the side index", figures["cachedWall"], 0.1, "s")


def filters(folder: Path, size: int) -> Iterator[Figure]:
    """Measure text filters of the window in a fresh home."""
    figures = drive(bench_data.whole_store(folder, size), "filters")
    yield Figure("first filter over 1 GiB on a machine", figures["firstS"], 0.9, "s", 'body contains "zzz"')
    yield Figure("later filters, the slowest of 4", figures["laterS"], 0.9, "s")


def clicks(folder: Path, size: int) -> Iterator[Figure]:
    """Measure the longest turn of the event loop while every view is visited, and the memory after that."""
    figures = drive(bench_data.healthy_store(folder, size), "views")
    longest = figures["longestView"]
    yield Figure("longest wait of a click, first visits", figures["firstMs"], 100, "ms", f"in {longest}")
    yield Figure("longest wait of a click, later visits", figures["laterMs"], 100, "ms")
    yield Figure("window and worker, checked, every view visited", figures["MiB"], 300, "MiB", "proportional set size")


def frames(_folder: Path, _size: int) -> Iterator[Figure]:
    """Measure frames of a table of 100 million rows."""
    lines = [json.loads(line) for line in run_python("tests/bench/bench_viewer.py", "--frames", "300").splitlines()]
    scrolled = next(line for line in lines if line["name"].startswith("scroll: wheel"))
    yield Figure("scroll frame at 100 million rows, p50", scrolled["medianMs"], 8, "ms")
    yield Figure("scroll frame at 100 million rows, p99", scrolled["p99Ms"], 16, "ms")


def picture(folder: Path, _size: int) -> Iterator[Figure]:
    """Measure a picture of the sparse store, from the command on."""
    store = bench_data.sparse_store(folder)
    with tempfile.TemporaryDirectory() as home:
        begun = time.perf_counter()
        target = f"{home}/picture.png"
        run_python("-m", "viewer", str(store), "--screenshot", target, "--config-dir", home, XDG_CACHE_HOME=home)
        yield Figure("1 TiB sparse: picture", round(time.perf_counter() - begun, 2), 5, "s")


def following(_folder: Path, _size: int) -> Iterator[Figure]:
    """Measure from a put to its painted row while the end of the log is followed."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        code = (
            "import sys, time\n"
            "from engine.codec.encode import Message\n"
            "from engine.config import from_mapping\n"
            "from engine.message_store import MessageStore\n"
            "config = from_mapping({'mappedFileSizeCommitLog': 16 << 20})[0]\n"
            "with MessageStore(sys.argv[1], config) as store:\n"
            "    begun = time.monotonic()\n"
            "    while time.monotonic() - begun < float(sys.argv[2]):\n"
            "        store.put_message(Message('Orders', b'x' * 200, queue_id=0))\n"
            "        time.sleep(0.05)\n"
        )
        writer = subprocess.Popen([sys.executable, "-c", code, str(store), "25"], cwd=ROOT, env=environment())
        try:
            time.sleep(4)
            figures = drive(store, "following")
        finally:
            writer.terminate()
            writer.wait()
    note = f"{figures['rows']:g} rows, median {figures['medianMs']:g}"
    yield Figure("put → on the screen while following, p99", figures["p99Ms"], 250, "ms", note)


MEASUREMENTS: dict[str, Callable[[Path, int], Iterator[Figure]]] = {
    "first-rows": first_rows,
    "histogram": histogram,
    "filters": filters,
    "clicks": clicks,
    "frames": frames,
    "picture": picture,
    "following": following,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    parser.add_argument("--size", type=int, default=bench_data.GIB, help="bytes of the log; the bounds are for 1 GiB")
    parser.add_argument("--only", nargs="*", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    args = parser.parse_args()
    bench_data.healthy_store(args.folder, args.size)
    compile_modules()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, Python {sys.version.split()[0]}\n")
    print("| what | measured | must reach | reached | |\n|---|---|---|---|---|")
    begun = time.perf_counter()
    for name in args.only:
        for figure in MEASUREMENTS[name](args.folder, args.size):
            print(figure.line(), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end, {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
