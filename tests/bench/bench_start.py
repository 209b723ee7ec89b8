"""From the start of the process to the first rows on the screen: a sparse store of 1,024 files of 1 GiB.

``python tests/bench/bench_start.py [--repeats N] [--folder DIR]``: offscreen, each start a process of its own. One JSON
line: medians and worst of the seconds until rows were painted, of the processor's seconds spent until then, of the
seconds until a drive file began, and MiB at the peak; ``load`` is the machine's at the end.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHILD = """
import builtins, os, sys, time
def age():
    return time.clock_gettime(time.CLOCK_BOOTTIME) - float(os.environ["STARTED"])
builtins.age, builtins.painted = age, []
from viewer.command import main
from viewer.widgets.record_view import RecordView
class Noted:
    paint = RecordView.paintEvent
def noted(view, event):
    Noted.paint(view, event)
    if view.table.rows and not painted:
        painted.extend((age(), time.process_time()))
RecordView.paintEvent = noted
sys.exit(main())
"""
DRIVE = """
import json, resource, sys
async def drive(window):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps([*painted, age(), peak]) + chr(10))
"""


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of a program whose modules are compiled, as those of an installed one are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables


def compile_modules() -> None:
    """Compile the modules of the checkout: a first start would spend a third of its time on that."""
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "engine", "viewer"], cwd=ROOT, env=environment(), check=True
    )


def start_once(store: Path, folder: Path) -> list[float]:
    """Return the figures of one start: seconds until painted, processor's seconds until then, seconds until the drive,
    MiB at the peak.
    """
    drive = folder / "drive.py"
    drive.write_text(DRIVE, "utf-8")
    started = str(time.clock_gettime(time.CLOCK_BOOTTIME))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(store), "--drive", str(drive), "--config-dir", str(folder / "config")],
        cwd=ROOT,
        env=environment(QT_QPA_PLATFORM="offscreen", STARTED=started, XDG_CACHE_HOME=str(folder / "cache")),
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout.strip().splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the first rows take.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / f"storescope-bench-{os.getuid()}")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from engine.bench.data import sparse_store

    store = sparse_store(args.folder)
    compile_modules()
    with tempfile.TemporaryDirectory() as folder:
        results = [start_once(store, Path(folder)) for _ in range(args.repeats)]
    record: dict[str, object] = {"type": "bench", "name": "start", "repeats": args.repeats}
    for number, name in enumerate(("paintedS", "cpuS", "driveS", "peakMiB")):
        values = [item[number] for item in results]
        record |= {name: round(statistics.median(values), 3), f"{name}Worst": round(max(values), 3)}
    record["load"] = round(os.getloadavg()[0], 1)
    sys.stdout.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
