"""Drive file of ``tests/journeys/test_soak.py``: loads a lab store at full speed under every live view.

Run as ``storescope view --drive``, in a process that holds only the window. Figures go into the file named by
``STORESCOPE_SOAK_FIGURES``, as JSON; bytes, milliseconds, seconds.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer

from engine.lab.load_settings import LoadSettings
from engine.lab.presets import PRESETS

SECONDS = float(os.environ["STORESCOPE_SOAK"])
FULL = SECONDS >= 600
FIGURES = Path(os.environ["STORESCOPE_SOAK_FIGURES"])
VIEWS = ("positions", "log", "queue", "lab", "space", "groups", "findings", "where")
WARM_UP = 0.25
"""Share of the time after which memory is measured for the first time."""
clock = time.perf_counter if FULL else time.thread_time
"""In the short form other work runs beside us and takes its turns: there the loop's own time counts, not the wall's."""


def resident() -> int:
    """Return the bytes of this process in memory."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def largest_pieces() -> list[str]:
    """Return the ten largest pieces of memory with their names, for a broken bound."""
    pieces: list[tuple[int, str]] = []
    name = ""
    for line in Path("/proc/self/smaps").read_text("utf-8").splitlines():
        word, *fields = line.split()
        if not word.endswith(":"):
            name = fields[4] if len(fields) > 4 else "anonymous"
        elif word == "Rss:":
            pieces.append((int(fields[0]), name))
    return [f"{size:,} KiB {name}" for size, name in sorted(pieces, reverse=True)[:10]]


class LoopGaps:
    """Watch over the time between turns of the event loop."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = clock()
        self._timer = QTimer(interval=10)
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def _tick(self) -> None:
        now = clock()
        self.longest = max(self.longest, (now - self._last) * 1000)
        self._last = now

    def stop(self) -> None:
        """Stop the watch."""
        self._timer.stop()


async def drive(window: Any) -> None:
    """Load, show every view in turn, measure, and leave everything closed."""
    window.settings.lab_folder = FIGURES.parent / "lab"
    assert await window.lab.open_lab(window.settings.lab_folder / "soak", PRESETS[0].config, "5.3")
    lab = window.lab.session
    for view in VIEWS:
        window.show_view(view)
        await asyncio.sleep(0.2)
    await lab.set_load(LoadSettings(producers=2, topics=4, keys=200, body_size=200, batch=4))
    begun, shown_views, warm = time.monotonic(), 0, 0
    gaps = LoopGaps()
    last_wrote = -1
    while time.monotonic() - begun < SECONDS:
        window.show_view(VIEWS[shown_views % len(VIEWS)])
        shown_views += 1
        await asyncio.sleep(min(1.0, SECONDS / 12))
        wrote = lab.sample.positions.wrote
        assert wrote >= last_wrote, "positions never fall"
        last_wrote = wrote
        if not warm and time.monotonic() - begun > SECONDS * WARM_UP:
            gc.collect()
            warm, gaps.longest = resident(), 0.0
    gaps.stop()
    await lab.set_load(None)
    gc.collect()
    figures: dict[str, Any] = {
        "seen": shown_views,
        "put": last_wrote,
        "warm": warm,
        "end": resident(),
        "gap": gaps.longest,
    }
    figures["pieces"] = await asyncio.to_thread(largest_pieces)
    window.close_store()
    await asyncio.sleep(0.1)
    await lab.close()
    await asyncio.to_thread(FIGURES.write_text, json.dumps(figures), "utf-8")
