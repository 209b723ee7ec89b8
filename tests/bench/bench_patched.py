"""What patches over a store cost: the commands that read it, opening it, and a frame of the window.

    python tests/bench/bench_patched.py [--mib 384] [--patches 0,100,10000] [--turns 5] [--frames 200] [--folder DIR]

The store has one log file of messages with about 200 bytes of body (384 MiB hold a million), queues and an index; the
patches are spread evenly over the log file. One JSON line a figure. Seconds of this process on the processor: median
and least of all turns, in which the numbers of patches take turns. ``added`` is the difference to no patches. What must
be reached: ``check`` 10 % more with 100 patches, 1 ms more a frame. A frame reads the rows or bytes that it shows anew,
decodes and paints them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QWidget

from engine.bench import data as bench_data
from engine.codec.message import Unit
from engine.inspection.findings import check
from engine.inspection.info import store_info
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.patching.patches import Patch, WriteBytes
from viewer.log.columns import unit_kind
from viewer.log.rows import LogSource
from viewer.look.theme import theme
from viewer.pane.patched_bytes import log_changes
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_view import RecordView

WALKED_UNITS = 100_000
QUEUE_ENTRIES = 30_000


def spread_patches(root: Path, size: int, count: int) -> tuple[Patch, ...]:
    """Return patches of 8 bytes each that leave what they write over, so that all numbers give the same results."""
    rng, step, patches = random.Random(1), (size - 4096) // max(count, 1), []
    path = root / "commitlog" / f"{0:020d}"
    with path.open("rb") as file:
        for number in range(count):
            offset = number * step + rng.randrange(max(step - 8, 1))
            file.seek(offset)
            old = file.read(8)
            patches.append(WriteBytes(file=f"commitlog/{path.name}", offset=offset, old=old, new=old, why="bench"))
    return tuple(patches)


def walk_units(store: StoreSnapshot) -> int:
    """Decode units as ``units`` does."""
    count = 0
    for item in store.log.walk():
        count += isinstance(item, Unit)
        if count == WALKED_UNITS:
            break
    return count


def read_queue(store: StoreSnapshot) -> int:
    """Read entries of a queue and the units that they lead to."""
    queue = next(iter(next(iter(store.topics().values())).values()))
    return sum(isinstance(store.log.unit_at(entry.physical_offset), Unit) for entry in queue.entries(0, QUEUE_ENTRIES))


COMMANDS: dict[str, Callable[[StoreSnapshot], object]] = {
    "open": lambda store: store.log.end_offset,
    "check": lambda store: sum(1 for _ in check(store)),
    "info": store_info,
    f"units, {WALKED_UNITS:,}": walk_units,
}


def say(name: str, patches: int, values: list[float], base: float, unit: str) -> float:
    """Print a figure; returns its median."""
    median = statistics.median(values)
    record = {"type": "bench", "name": name, "patches": patches, f"cpu{unit}": median, f"cpuLeast{unit}": min(values)}
    record |= {f"added{unit}": median - base} if patches else {}
    record["load"] = os.getloadavg()[0]
    figures = {key: round(value, 5) if isinstance(value, float) else value for key, value in record.items()}
    print(json.dumps(figures), flush=True)
    return median


def measure_commands(root: Path, patches: dict[int, tuple[Patch, ...]], turns: int) -> None:
    """Time what commands read."""
    for name, read in COMMANDS.items():
        seconds: dict[int, list[float]] = {count: [] for count in patches}
        for turn in range(turns + 1):
            for count, listed in patches.items():
                begun = time.process_time()
                with open_store(root, None, listed) as store:
                    read(store)
                if turn:  # the first one fills caches
                    seconds[count].append(time.process_time() - begun)
        base = statistics.median(seconds[min(patches)])
        for count, values in seconds.items():
            say(name, count, values, base, "Seconds")


def measure_frames(root: Path, patches: dict[int, tuple[Patch, ...]], frames: int) -> None:
    """Time frames of the Log view's table, and of the hex view with its changed bytes."""
    bases: dict[str, float] = {}
    for count, listed in patches.items():
        with open_store(root, None, listed) as store:
            for name, values in frames_of(store, listed, frames):
                base = say(name, count, values, bases.get(name, 0.0), "Ms")
                bases.setdefault(name, base)


def frames_of(store: StoreSnapshot, patches: tuple[Patch, ...], frames: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the name of each kind of frame, and the times of its frames."""
    source = LogSource(store.log)
    table = RecordView("units.table", unit_kind(lambda *place: place))
    table.resize(1264, 640)
    table.show()
    table.set_source(source)
    rng = random.Random(2)
    places = [rng.randrange(source.start, store.log.sequence.files[0].size * 9 // 10) for _ in range(frames)]
    offsets = [store.log.align(place) for place in places]
    shown = HexView()
    shown.resize(824, 308)
    shown.show()

    def show_bytes(number: int) -> None:
        shown.show_bytes(store.log.read, offsets[number], [], 380, store.log.min_offset, store.log.end_offset)
        shown.set_changes(log_changes(patches, *shown.limits))

    drag, page, unit = "drag the log to any place", "page down in the log", "the bytes of another unit"
    yield drag, time_frames(table, lambda number: table.bar.positionChosen.emit(places[number]), frames)
    yield page, time_frames(table, lambda _: table.bar.stepped.emit("page", 1), frames)
    yield unit, time_frames(shown, show_bytes, frames)
    table.close()
    shown.close()


def time_frames(widget: QWidget, step: Callable[[int], object], frames: int) -> list[float]:
    """Return the processor's milliseconds of each step and its paint."""
    picture, values = QImage(widget.size(), QImage.Format.Format_RGB32), []
    for number in range(frames):
        begun = time.process_time()
        step(number)
        painter = QPainter(picture)
        widget.render(painter, QPoint(0, 0))
        painter.end()
        values.append((time.process_time() - begun) * 1000)
        QApplication.processEvents()
    return values[10:]


def main() -> None:
    parser = argparse.ArgumentParser(description="What patches over a store cost.")
    parser.add_argument("--mib", type=int, default=384)
    parser.add_argument("--patches", default="0,100,10000")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=bench_data.default_folder())
    args = parser.parse_args()
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    theme.apply(app)
    size = args.mib << 20
    root = bench_data.healthy_store(args.folder, size)
    patches = {count: spread_patches(root, size, count) for count in map(int, args.patches.split(","))}
    COMMANDS[f"queue, {QUEUE_ENTRIES:,} entries with their units"] = read_queue
    measure_commands(root, patches, args.turns)
    measure_frames(root, patches, args.frames)


if __name__ == "__main__":
    main()
