"""The real window on a real X display, in a process of its own: drawing into memory cannot show this.

The system libraries of the X plug-in, a missing window manager, and the end of the process are part of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.journey, pytest.mark.display]

ROOT = Path(__file__).resolve().parents[2]
DRIVE = """
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget


async def drive(window):
    assert QGuiApplication.platformName() == "xcb", QGuiApplication.platformName()
    assert window.isVisible()
    table = window.findChild(QWidget, "units.table")
    assert table is not None and table.isVisible()
    picture = window.grab().toImage()
    colours = {picture.pixel(x, y) for x in range(0, picture.width(), 7) for y in range(0, picture.height(), 7)}
    assert len(colours) > 20, "an empty window"
    print("drawn", picture.width(), picture.height())
"""


@pytest.fixture
def display():
    """Return the name of a virtual display that ends with the test."""
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1700x1100x24", "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as output:
        number = output.readline().strip()
    try:
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(60)


def test_a_store_is_drawn_on_a_display(golden, unchanged, display, tmp_path):
    script = tmp_path / "drive.py"
    script.write_text(DRIVE, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key not in {"QT_QPA_PLATFORM", "WAYLAND_DISPLAY"}}
    store = unchanged(golden("clean-5.3.3"))
    done = subprocess.run(
        [sys.executable, "-m", "viewer", str(store), "--drive", str(script)],
        cwd=ROOT,
        env={**environment, "DISPLAY": display},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, "drawn" in done.stdout) == (0, True), done.stdout + done.stderr
