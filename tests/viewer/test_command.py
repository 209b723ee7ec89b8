"""``storescope view`` as a process: pictures, driven runs, exit codes, no word on standard error that is no error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from viewer.look import theme

Golden = Callable[..., Path]


def view(tmp_path: Path, *args: str, program: tuple[str, ...] = ("-m", "viewer")) -> subprocess.CompletedProcess[str]:
    """Run the viewer without a display."""
    environment = {k: v for k, v in os.environ.items() if k not in {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}}
    command = [sys.executable, *program, "--config-dir", str(tmp_path / "config"), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_picture_shows_the_store_in_the_size_and_colours_asked_for(tmp_path: Path, golden: Golden) -> None:
    target = tmp_path / "out.png"
    done = view(
        tmp_path,
        str(golden("broker-orders")),
        "--screenshot",
        str(target),
        "--size",
        "1280x720",
        "--theme",
        "dark",
        "--lang",
        "zh_CN",
        "--at",
        "queue:OrderEvents/0/42",
    )
    assert (done.returncode, done.stdout) == (0, "")
    picture = QImage(str(target))
    assert (picture.width(), picture.height()) == (1280, 720)
    assert picture.pixelColor(640, 16).name().upper() == theme.DARK["window"]
    colors = {picture.pixel(x, y) for x in range(0, 1280, 3) for y in range(0, 720, 3)}
    assert len(colors) > 60


def test_picture_of_what_is_no_store_shows_the_error_and_ends_with_three(tmp_path: Path) -> None:
    target = tmp_path / "out.png"
    (tmp_path / "empty").mkdir()
    done = view(tmp_path, str(tmp_path / "empty"), "--screenshot", str(target))
    assert done.returncode == 3
    assert "expected a store" in done.stderr
    assert "Traceback" not in done.stderr
    assert not QImage(str(target)).isNull()


def test_a_picture_of_a_recording_that_is_not_there_is_an_error(tmp_path):
    """It drew an empty view and ended with 0, so that a script went on as if there were no requests."""
    target, missing, no_recording = tmp_path / "window.png", tmp_path / "none.requests", tmp_path / "text"
    no_recording.write_text("no recording")
    for file, words in ((missing, "No such file"), (no_recording, "is not a recording of requests")):
        done = view(tmp_path, "--at", f"requests:{file}", "--screenshot", str(target))
        assert (done.returncode, target.exists()) == (3, False), done.stderr
        assert str(file) in done.stderr
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_picture_of_a_place_that_is_not_there_ends_with_three(tmp_path, golden):
    """It drew the log and ended with 0. Without a store it ended with 3 and an empty line."""
    store, target = str(golden("clean-5.3.3")), str(tmp_path / "window.png")
    done = view(tmp_path, store, "--at", "queue:Missing/0/1", "--screenshot", target)
    assert done.returncode == 3
    assert done.stderr.startswith("storescope: --at queue:Missing/0/1: ")
    assert "Missing" in done.stderr.removeprefix("storescope: --at queue:Missing/0/1: ")
    done = view(tmp_path, store, "--at", "findings:ZZ99", "--screenshot", target)
    assert (done.returncode, done.stderr) == (3, "storescope: --at findings:ZZ99: There is no rule ZZ99.\n")
    done = view(tmp_path, "--at", "log:5", "--screenshot", target)
    assert (done.returncode, done.stderr) == (3, "storescope: --at log:5: expected STORE, found none\n")


def test_driven_run_finds_rows_and_ends_with_nought(tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "drive.py"
    file.write_text(
        "from PySide6.QtGui import QAction\n"
        "from PySide6.QtWidgets import QTableView\n"
        "async def drive(window):\n"
        "    assert window.objectName() == 'mainWindow'\n"
        "    assert window.findChild(QTableView, 'units.table').model().rowCount() > 0\n"
        "    window.findChild(QAction, 'view.queues').trigger()\n"
        "    await window.settled()\n"
        "    print('rows', window.findChild(QTableView, 'queue.table').model().rowCount() > 0)\n"
    )
    done = view(tmp_path, str(golden("broker-orders")), "--drive", str(file))
    assert (done.returncode, done.stdout) == (0, "rows True\n")


def test_driven_run_that_raises_ends_with_one_and_its_line(tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "drive.py"
    file.write_text("async def drive(window):\n    raise ValueError('the third row differs')\n")
    done = view(tmp_path, str(golden("broker-orders")), "--drive", str(file))
    assert done.returncode == 1
    assert "ValueError: the third row differs" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--size", "large"], "expected WIDTHxHEIGHT"),
        (["--lang", "fr"], "--lang"),
        (["--drive", "/no/such/file.py"], "is no file"),
    ],
)
def test_wrong_options_end_with_two(tmp_path: Path, args: list[str], words: str) -> None:
    done = view(tmp_path, *args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_window_that_nobody_could_see_is_not_opened(tmp_path: Path, golden: Golden) -> None:
    done = view(tmp_path, str(golden("broker-orders")))
    assert done.returncode == 3
    assert done.stderr == "storescope: there is no display; --screenshot OUT.png draws the window into a file\n"


NOTE_IMPORTS_AT_FIRST_ROWS = """
import sys
from viewer.shell.opening_stages import Stages
go_on = Stages.go_on
def note_imports(stages, session):
    Stages.slow_modules = [name for name in ("numpy", "numba", "pyqtgraph") if name in sys.modules]
    go_on(stages, session)
Stages.go_on = note_imports
"""
VIEWER = "from viewer.command import main\nsys.exit(main())"
STORESCOPE_VIEW = "from engine.cli.main import main\nsys.exit(main(['view', *sys.argv[1:]]))"


@pytest.mark.parametrize("program", [VIEWER, STORESCOPE_VIEW], ids=["viewer", "storescope view"])
def test_plot_library_and_compiler_are_not_on_the_way_to_the_first_rows(
    tmp_path: Path, golden: Golden, program: str
) -> None:
    """Importing pyqtgraph takes 0.9 s and numba 1.0 s: rows must not wait for them.

    They may be imported as soon as the rows are painted, before a drive file begins.
    """
    file = tmp_path / "drive.py"
    file.write_text(
        "from viewer.shell.opening_stages import Stages\nasync def drive(window):\n    print(Stages.slow_modules)\n"
    )
    code = ("-c", NOTE_IMPORTS_AT_FIRST_ROWS + program)
    done = view(tmp_path, str(golden("broker-orders")), "--drive", str(file), program=code)
    assert done.stdout == "[]\n"


def test_a_window_with_all_its_views_has_no_broker_in_it(tmp_path: Path, golden: Golden) -> None:
    """A broker, and the code that writes stores, run in other processes."""
    file = tmp_path / "drive.py"
    file.write_text(
        "import asyncio, sys\nfrom viewer.shell.views import BY_KIND\nasync def drive(window):\n"
        "    while len(window.panes) < len(BY_KIND):\n        await asyncio.sleep(0.01)\n"
        "    print([name for name in ('engine.broker.serving', 'engine.message_store') if name in sys.modules])\n"
    )
    done = view(tmp_path, str(golden("broker-orders")), "--drive", str(file))
    assert done.stdout == "[]\n"


def test_modules_of_other_views_are_not_imported_for_the_first_rows() -> None:
    """Each of these takes tens of milliseconds away from the rows of the log."""
    modules = (
        "viewer.findings.pane",
        "engine.store.recovery.plan",
        "engine.inspection.records",
        "engine.query",
        "csv",
        "engine.inspection.groups",
        "viewer.runtime.put_form",
    )
    code = (
        f"import sys, viewer.shell.app, viewer.log.pane\nprint([name for name in {modules!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(theme.__file__).parents[2]
    )
    assert done.stdout == "[]\n"
