"""Drive file of ``bench_window.py``: runs the task that ``BENCH_TASK`` names in a window and prints its figures."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, QTimer

from viewer.shell.views import VIEWS
from viewer.shell.workspace import apply_filter
from viewer.widgets.record_view import RecordView

FILTERS = ('body contains "yyy"', 'keys contains "99999"', "body matches /z{4}/", 'bornHost = "10.9.9.9"')
"""Filters that match little, so that they read the whole log."""
FOLLOWED_S = 12
TICK_MS = 2
NOT_VISITED = ("compare",)
"""Views that ask for something before they are shown."""


class LoopGaps:
    """Watches the time between turns of the event loop, which is what a click has to wait."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._last = time.perf_counter()
        self._timer = QTimer(interval=TICK_MS)
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def _tick(self) -> None:
        now = time.perf_counter()
        self.longest_s = max(self.longest_s, now - self._last)
        self._last = now

    def restart(self) -> None:
        """Forget the longest wait."""
        self.longest_s, self._last = 0.0, time.perf_counter()


def tree_of(process: int) -> list[int]:
    """Return a process and those below it."""
    children = [
        int(child)
        for path in Path(f"/proc/{process}/task").glob("*/children")
        for child in path.read_text("ascii").split()
    ]
    return [process, *(member for child in children for member in tree_of(child))]


def resident_mib() -> float:
    """Return the proportional set size of the window with its worker."""
    total_kib = 0
    for process in tree_of(os.getpid()):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
        total_kib += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kib / 1024


async def filter_seconds(window: Any, text: str) -> float:
    """Apply a filter and return the seconds until the whole log was read."""
    begun = time.perf_counter()
    apply_filter(window, text)
    await asyncio.sleep(0)
    state = window.panes["log"].model.filter
    while state.running or state.text != text:
        await asyncio.sleep(0.005)
    return time.perf_counter() - begun


async def filters(window: Any) -> dict[str, float]:
    """Measure the first text filter after the window is at rest, and further ones."""
    first = await filter_seconds(window, 'body contains "zzz"')
    return {
        "firstS": round(first, 2),
        "laterS": round(max([await filter_seconds(window, text) for text in FILTERS]), 2),
    }


async def views(window: Any) -> dict[str, Any]:
    """Visit every view twice, then check the store; measure waits and memory."""
    while not window.session.findings_complete:
        await asyncio.sleep(0.1)
    gaps = LoopGaps()
    rounds: list[dict[str, float]] = [{}, {}]
    for waits in rounds:
        for view in VIEWS:
            if view.kind in NOT_VISITED:
                continue
            gaps.restart()
            window.show_view(view.kind)
            await asyncio.sleep(0.3)
            await window.settled(20, quiet=True)
            waits[view.kind] = gaps.longest_s * 1000
    first, later = rounds
    return {
        "firstMs": round(max(first.values())),
        "longestView": max(first, key=first.__getitem__),
        "laterMs": round(max(later.values())),
        "MiB": round(resident_mib()),
    }


class PaintWatch(QObject):
    """Calls ``note`` whenever the watched widget is painted."""

    def __init__(self, note: Callable[[], None]) -> None:
        super().__init__()
        self._note = note

    def eventFilter(self, _widget: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Paint:
            self._note()
        return False


async def following(window: Any) -> dict[str, float]:
    """Follow the end of a log that is written; measure from store time to the painted row."""
    delays: list[float] = []
    last_offset = -1
    table = next(view for view in window.findChildren(RecordView) if view.objectName() == "units.table")

    def note_rows() -> None:
        nonlocal last_offset
        now_ms = time.time_ns() / 1e6
        for row in table.table.rows:
            if row.offset > last_offset and getattr(row, "store_timestamp", 0):
                delays.append(now_ms - row.store_timestamp)
                last_offset = row.offset

    window.actions_by_id["view.follow"].trigger()
    await asyncio.sleep(2)
    paint_watch = PaintWatch(note_rows)
    table.viewport().installEventFilter(paint_watch)
    await asyncio.sleep(0.5)
    delays.clear()
    await asyncio.sleep(FOLLOWED_S)
    delays.sort()
    return {
        "rows": len(delays),
        "medianMs": round(statistics.median(delays)),
        "p99Ms": round(delays[min(int(len(delays) * 0.99), len(delays) - 1)]),
    }


async def drive(window: Any) -> None:
    """Run the task."""
    await window.settled(60, quiet=True)
    figures = await {"filters": filters, "views": views, "following": following}[os.environ["BENCH_TASK"]](window)
    sys.stdout.write(json.dumps(figures) + "\n")
