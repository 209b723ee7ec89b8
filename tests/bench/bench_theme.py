"""Wait of a click while five windows change theme, zoom or language, and while views and boxes open.

``python tests/bench/bench_theme.py STORE``: offscreen. A timer in the loop notes the time between two of its turns. One
JSON line a step: milliseconds of the longest wait, on the clock and in processor time of the window's thread, waits
over 100 ms of either, seconds until all windows have the new style; ``load`` is the machine's. The last step is no
click: garbage is collected after some seconds without use.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVE = """
import asyncio, json, os, sys, time
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from viewer.shell.command_handlers import set_language
from viewer.shell.windows import close_all, open_beside
from viewer.shell.window_theme import dressed
from viewer.look.theme import theme
from viewer.shell.views import BY_KIND

AFTER = 0.5
LATER = {"Chinese": 6.0, "a sixth window": 6.0, "nobody at the program": 6.0}

async def pass_time(seconds, name):
    # Without a display the program is never in front: each step has somebody at it, but the last.
    state = Qt.ApplicationState
    there = state.ApplicationInactive if name == "nobody at the program" else state.ApplicationActive
    end = time.perf_counter() + seconds
    QGuiApplication.instance().applicationStateChanged.emit(there)
    while time.perf_counter() < end:
        if there == state.ApplicationActive:
            QGuiApplication.instance().applicationStateChanged.emit(there)
        await asyncio.sleep(0.1)

class Waits:
    # Figures of the turns. None is kept: the collector would look at a hundred thousand lists.

    def __init__(self):
        self.clear()

    def clear(self):
        self.clock = self.cpu = 0.0
        self.over = self.over_cpu = 0

    def add(self, clock, cpu):
        self.clock, self.cpu = max(self.clock, clock), max(self.cpu, cpu)
        self.over += clock > 0.1
        self.over_cpu += cpu > 0.1

async def drive(window):
    for _ in range(4):
        other = open_beside(window, window.session.path, "log")
        await asyncio.sleep(0.5)
        await other.settled(60)
    await asyncio.sleep(5)
    waits, last = Waits(), [time.perf_counter(), time.thread_time()]
    def turn():
        now = [time.perf_counter(), time.thread_time()]
        waits.add(now[0] - last[0], now[1] - last[1])
        last[:] = now
    timer = QTimer(interval=0)
    timer.timeout.connect(turn)
    timer.start()
    steps = {
        "rest": lambda: None,
        "dark": lambda: theme.set_scheme("dark"),
        "light": lambda: theme.set_scheme("light"),
        "four zoom steps": lambda: [window.zoom(theme.target_zoom + 10) for _ in range(4)],
        "zoom 100 %": lambda: window.zoom(100),
        "Chinese": lambda: set_language(window, "zh_CN"),
        **{f"view {view}, first": lambda view=view: window.show_view(view) for view in BY_KIND if view != "log"},
        **{f"view {view}, again": lambda view=view: window.show_view(view) for view in BY_KIND},
        **{
            name: lambda name=name: window.actions_by_id[name].trigger()
            for name in ("palette.open", "help.keys", "help.pages", "help.about", "colour.rules", "layout.save")
        },
        "a sixth window": lambda: open_beside(window, window.session.path, "log"),
        "nobody at the program": lambda: None,
    }
    for name, deed in steps.items():
        await pass_time(1, "")
        waits.clear()
        begun = time.perf_counter()
        deed()
        await asyncio.sleep(0.1)
        while not dressed():
            await asyncio.sleep(0.01)
        seconds = time.perf_counter() - begun
        await pass_time(LATER.get(name, AFTER), name)
        print(json.dumps({
            "type": "bench", "name": name, "windows": 5,
            "longestMs": round(waits.clock * 1000), "longestCpuMs": round(waits.cpu * 1000),
            "over100": waits.over, "over100Cpu": waits.over_cpu,
            "dressedSeconds": round(seconds, 2),
            "load": round(os.getloadavg()[0], 1),
        }), flush=True)
    await close_all()
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        drive = Path(folder) / "drive.py"
        drive.write_text(DRIVE, encoding="utf-8")
        words = [sys.executable, "-m", "viewer", sys.argv[1], "--drive", str(drive), "--config-dir", folder]
        return subprocess.run(
            words, cwd=ROOT, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
