"""Cost of a frame of the viewer: scrolling a table of 100 million rows, moving the selection, painting bytes.

``python tests/bench/bench_viewer.py [--rows N] [--frames N]``: offscreen, 1264 × 640 px (the table's share of a
window of 1600 × 1000). A frame is the user's wait: the scroll, reading the new rows, and the paint into a picture.
Prints one JSON line a figure with its conditions: median, 99th percentile and worst, in milliseconds; ``cpuMedianMs``
is the processor's time alone, which is more reliable on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QPainter, QWheelEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from engine.inspection.positions import Position, Positions
from viewer.log.columns import unit_kind
from viewer.log.rows import UnitRow
from viewer.look.theme import theme
from viewer.positions.live import LivePositions
from viewer.runtime.live_history import LiveHistory
from viewer.runtime.position_reading import Flush, PositionReading
from viewer.widgets.hex_pages import HexField
from viewer.widgets.hex_view import HexView
from viewer.widgets.live_plot import LivePlot
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import Page

UNIT = 300
TOPICS = ("OrderPaid", "StockReserved", "PriceChanged", "ShipmentEvents", "%RETRY%billing")


class Units:
    """Any number of units, each made when it is read, like in a reader over hot pages."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.start = 1 << 40
        self.end = self.start + total

    def read(self, position: int, before: int, after: int) -> Page[UnitRow]:
        first, last = max(self.start, position - before), min(self.end, position + after)
        return Page([_unit(n) for n in range(first, last)], position - first, first == self.start, last == self.end)

    def position(self, row: UnitRow) -> int:
        return row.offset // UNIT

    def behind(self, row: UnitRow) -> int:
        return row.offset // UNIT + 1

    def number(self, row: UnitRow) -> int:
        return self.position(row) - self.start

    def position_of(self, number: int) -> int:
        return self.start + number


def _unit(n: int) -> UnitRow:
    marks = "T" if n % 5 == 0 else "Z" if n % 11 == 0 else ""
    crc = "bad" if n % 97 == 0 else "ok"
    body = b'{"orderId":"ord-%d","amount":230.92,"currency":"CNY","channel":"wallet"}' % n
    stored = 1_763_603_000_000 + n % 86_400_000
    keys = [f"ord-20261120-{n % 1_000_000:06d}"]
    return UnitRow(n * UNIT, UNIT, TOPICS[n % 5], n % 8, n // 8, stored, "wallet", keys, crc, marks, False, 0, body)


@dataclass
class StepTimer:
    """Runs steps and keeps their times."""

    frames: int
    rows: int

    def run(self, name: str, widget: QWidget, step: Callable[[int], None]) -> None:
        """Time ``frames`` steps, each with its paint into a picture of the widget's size."""
        picture = QImage(widget.size(), QImage.Format.Format_RGB32)
        times, busy = [], []
        for number in range(self.frames + 20):
            begun, used = time.perf_counter(), time.process_time()
            step(number)
            painter = QPainter(picture)
            widget.render(painter, QPoint(0, 0))
            painter.end()
            times.append((time.perf_counter() - begun) * 1000)
            busy.append((time.process_time() - used) * 1000)
            QApplication.processEvents()
        times = sorted(times[20:])
        record = {
            "type": "bench",
            "name": name,
            "rows": self.rows,
            "frames": len(times),
            "medianMs": round(statistics.median(times), 2),
            "p99Ms": round(times[min(len(times) - 1, int(len(times) * 0.99))], 2),
            "worstMs": round(times[-1], 2),
            "cpuMedianMs": round(statistics.median(busy[20:]), 2),
            "size": f"{widget.width()}x{widget.height()}",
            "python": platform.python_version(),
        }
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()


def _wheel(view: RecordView, delta: int) -> None:
    centre = QPointF(view.viewport().rect().center())
    event = QWheelEvent(
        centre,
        QPointF(view.viewport().mapToGlobal(centre.toPoint())),
        QPoint(0, 0),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view.viewport(), event)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a frame of the viewer costs.")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--frames", type=int, default=400)
    args = parser.parse_args()
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    theme.apply(app)
    bench, rng = StepTimer(args.frames, args.rows), random.Random(1)
    view = RecordView("units.table", unit_kind(lambda *place: place))
    view.resize(1264, 640)
    view.show()
    begun = time.perf_counter()
    view.set_source(Units(args.rows))
    view.grab()
    opened = {"type": "bench", "name": "open", "rows": args.rows, "ms": round((time.perf_counter() - begun) * 1000, 2)}
    sys.stdout.write(json.dumps(opened) + "\n")
    start = view.source.start
    bench.run("scroll: wheel, three rows", view, lambda _: _wheel(view, -120))
    bench.run("scroll: page down", view, lambda _: view.bar.stepped.emit("page", 1))
    bench.run(
        "scroll: drag to any place", view, lambda _: view.bar.positionChosen.emit(start + rng.randrange(args.rows))
    )
    bench.run("choice: arrow down", view, lambda _: view.choose_next(1))
    data = bytes(rng.randrange(256) for _ in range(1 << 16))
    shown = HexView()
    shown.resize(824, 308)
    shown.show()
    fields = [HexField(f"field{n}", n * 6, 6, ("frame", "id", "time", "host", "topic")[n % 5]) for n in range(50)]
    far = 1 << 42
    shown.show_bytes(
        lambda offset, size: data[offset - far + 4096 : offset - far + 4096 + size], far, fields, 300, far - 4096
    )
    bench.run("bytes: choose the next field", shown, lambda n: shown.choose_field(f"field{n % 50}"))
    bench_live(bench)


POINTS = 36_000


def bench_live(bench: StepTimer) -> None:
    """Paint a live frame of the four plots of Positions, each series full: an hour at ten looks a second."""
    history = LiveHistory(POINTS)
    rng, wrote, flushed, dispatched, now = random.Random(2), 0, 0, 0, 1_795_280_000_000
    file = ((0, 1 << 40, "0" * 20),)
    for number in range(POINTS + 400):
        wrote += rng.randrange(200_000)
        flushed = wrote - rng.randrange(100_000) if number % 5 == 0 else flushed
        dispatched = max(dispatched, wrote - rng.randrange(50_000))
        offsets = {
            "wrote": wrote,
            "committed": wrote - rng.randrange(4096),
            "flushed": flushed,
            "confirm": wrote,
            "dispatched": dispatched,
            "queue_max": dispatched,
            "index_end": dispatched,
            "min": 0,
        }
        positions = Positions(checkpoint={}, **{key: Position(value, "bench") for key, value in offsets.items()})
        flush = (Flush(now + number * 100, flushed, 100_000, rng.random() * 20),)
        history.add(
            PositionReading(positions, file, (), now + number * 100, True, True, units=number * 300, flushes=flush)
        )
    box = QWidget()
    live = LivePositions(LivePlot("a", "a"), LivePlot("b", "b"), box)
    layout = QVBoxLayout(box)
    for part in (live.plot, live.gaps, live.below):
        layout.addWidget(part)
    box.resize(1130, 620)
    box.show()
    live.time.history = history
    last_look = history.last
    assert last_look is not None
    live._ready = True
    live.fit()

    def step(number: int) -> None:
        live._end = last_look.time_ms / 1000 - 40 + number / 10
        live.show()

    bench.rows = POINTS
    bench.run("live: four plots, 36,000 points a curve", box, step)


if __name__ == "__main__":
    main()
