"""``view`` as a program: pictures without a display, files that drive the window, places to open at, exit codes."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.journey
ROOT = Path(__file__).resolve().parents[2]
NAMES = """
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

NAMES = (
    "store.tree units.table unit.detail unit.hex queue.table index.files index.slots index.chain trace.topic trace.key "
    "trace.steps positions.ruler positions.plot positions.gaps findings.table recovery.plan filter.field goto.field "
    "status.message jobs.list"
).split()


async def drive(window):
    missing = [name for name in NAMES if window.findChild(QWidget, name) is None]
    assert not missing, missing
    assert window.objectName() == "mainWindow"
    assert window.findChild(QAction, "copy.cli") is not None
    assert window.view == "positions"
    print("found", len(NAMES))
"""


def viewer(*words: str | Path, display: bool = False) -> subprocess.CompletedProcess[str]:
    """Return a function that runs the program to its end."""
    environment = {key: value for key, value in os.environ.items() if key not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    environment["QT_QPA_PLATFORM"] = "offscreen"
    return subprocess.run(
        [sys.executable, "-m", "viewer", *map(str, words)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_every_name_is_there_at_once_with_another_view_in_front(orders: Path, tmp_path: Path) -> None:
    script = tmp_path / "drive.py"
    script.write_text(NAMES, "utf-8")
    done = viewer(orders, "--at", "positions", "--drive", script)
    assert (done.returncode, done.stdout.strip()) == (0, "found 20"), done.stderr


def test_a_file_that_raises_ends_with_its_line(orders: Path, tmp_path: Path) -> None:
    script = tmp_path / "drive.py"
    script.write_text("async def drive(window):\n    raise ValueError('expected 3 rows, found 2')\n", "utf-8")
    done = viewer(orders, "--drive", script)
    assert done.returncode == 1
    assert "ValueError: expected 3 rows, found 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_picture_is_made_without_a_display(damaged: Path, tmp_path: Path) -> None:
    picture = tmp_path / "out.png"
    words = ("--theme", "dark", "--lang", "zh_CN", "--size", "1280x720", "--at", "queue:OrderPaid/0/3")
    done = viewer(damaged, *words, "--screenshot", picture)
    assert done.returncode == 0, done.stderr
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:24]) == (1280, 720)


def test_a_path_without_a_store_is_one_line_and_a_picture_of_it(tmp_path: Path) -> None:
    picture = tmp_path / "out.png"
    done = viewer(tmp_path, "--screenshot", picture)
    assert done.returncode == 3
    assert done.stderr.startswith("storescope: ")
    assert "Traceback" not in done.stderr
    assert picture.exists()


def test_wrong_words_are_refused(orders: Path) -> None:
    assert viewer(orders, "--size", "big").returncode == 2
    assert viewer(orders, "--drive", "no-such-file.py").returncode == 2
