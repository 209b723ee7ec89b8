"""Full speed under live views: memory stays flat, the window keeps answering, nothing is lost, everything closes.

Seconds by itself; ``STORESCOPE_SOAK=3600 python -m pytest -q tests/journeys/test_soak.py`` is the hour, with the bounds
of the full form: memory within 5 % after warm-up, no gap of the event loop above 100 ms.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import qasync
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from suite_minutes import account
from walker import Walker

from engine.lab.load import LoadSettings
from engine.lab.presets import PRESETS

SECONDS = float(os.environ.get("STORESCOPE_SOAK", "8"))
pytestmark = [pytest.mark.journey, pytest.mark.timeout(SECONDS + 300)]
FULL = SECONDS >= 600
VIEWS = ("positions", "log", "queue", "lab", "space", "groups", "findings", "where")
WARM_UP = 0.25
"""Share of the time after which memory is measured for the first time."""
GAP_MS = 100 if FULL else 400
clock = time.perf_counter if FULL else time.thread_time
"""In the short form other work runs beside us and takes its turns: there the loop's own time counts, not the wall's."""
GROWTH = 0.05 if FULL else 0.25


@pytest.fixture
def soak(walker: Walker, loop: qasync.QEventLoop, tmp_path: Path) -> Iterator[Any]:
    """Runs a coroutine as long as the soak takes; the lab is closed at the end."""
    walker.window.settings.lab_folder = tmp_path / "lab"
    yield lambda work: loop.run_until_complete(asyncio.wait_for(work, SECONDS + 240))
    loop.run_until_complete(asyncio.wait_for(walker.window.lab.desk.close(), 60))


def resident() -> int:
    """Bytes of this process in memory."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Gaps:
    """Watches how long the event loop takes to come round."""

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
        """No more looks."""
        self._timer.stop()


def test_full_speed_under_live_views(
    soak: Any, walker: Walker, tmp_path: Path, qtlog: Any, request: pytest.FixtureRequest
) -> None:
    async def walk() -> None:
        window = walker.window
        folder = tmp_path / "lab" / "soak"
        assert await window.lab.start(folder, PRESETS[0].config, "5.3")
        desk = window.lab.desk
        for view in VIEWS:
            window.show_view(view)
            await asyncio.sleep(0.2)
        await desk.set_load(LoadSettings(producers=2, topics=4, keys=200, body_size=200, batch=4))
        begun, seen, warm = time.monotonic(), 0, 0
        gaps = Gaps()
        last = -1
        while time.monotonic() - begun < SECONDS:
            window.show_view(VIEWS[seen % len(VIEWS)])
            seen += 1
            await asyncio.sleep(min(1.0, SECONDS / 12))
            wrote = desk.sample.positions.wrote
            assert wrote >= last, "positions never fall"
            last = wrote
            if not warm and time.monotonic() - begun > SECONDS * WARM_UP:
                gc.collect()
                warm, gaps.longest = resident(), 0.0
        gaps.stop()
        await desk.set_load(None)
        gc.collect()
        grown = resident() / warm - 1
        memory = f"{warm >> 20} MiB after warm-up, {grown:+.1%}"
        gap = f"longest gap of the loop {gaps.longest:.0f} ms ({'wall' if FULL else 'its own time'})"
        account(request.node, "soak", [f"{SECONDS:.0f} s, {seen} views shown, {last:,} bytes put; {memory}; {gap}"])
        assert last > 1 << 20, "the load ran"
        assert grown < GROWTH, f"memory grew by {grown:.1%}"
        assert gaps.longest < GAP_MS, f"the loop stood for {gaps.longest:.0f} ms"
        window.close_store()
        await asyncio.sleep(0.1)

    soak(walk())
    told = [one.message for one in qtlog.records if "propagateSizeHints" not in one.message]
    assert not told, told
    assert QApplication.instance() is not None
