"""Modules that use Qt are imported on the loop's thread only."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from qt_imports import uses_qt

from viewer.runtime import loop_imports
from viewer.shell.views import BY_KIND, load_pane, pane_module

_FIRST_VISITS = """
import asyncio, os, sys
from pathlib import Path
os.environ["QT_QPA_PLATFORM"] = "offscreen"
import qasync
from PySide6.QtWidgets import QApplication
app = QApplication([])
app.setQuitOnLastWindowClosed(False)
from qt_imports import watched_imports
from engine.inspection.samples import sample
from viewer.runtime.settings import Settings
from viewer.shell.main_window import MainWindow
from viewer.shell.views import BY_KIND

async def visit_all():
    window = MainWindow(Settings(Path(sys.argv[1])))
    window.remembers = False
    window.resize(1600, 1000)
    window.show()
    await window.open(sample("orders"))
    for kind in BY_KIND:
        window.show_view(kind)
        await asyncio.sleep(0.05)
        await window.settled(60.0)
    window.close()
    await window.jobs.drain()

with watched_imports() as wrong:
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    loop.run_until_complete(visit_all())
print("visited", len(BY_KIND), "pyqtgraph" in sys.modules)
print(*wrong, sep="\\n")
"""


def test_no_first_visit_of_a_view_imports_qt_in_a_thread(tmp_path):
    """The window crashed with a segmentation fault when the Lab was opened for the first time. A thread imported
    pyqtgraph, which creates Qt's Python types, while the loop's thread was inside Qt.
    """
    support = Path(__file__).resolve().parents[2] / "support"
    environment_path = f"import sys; sys.path.insert(0, {str(support)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", environment_path + _FIRST_VISITS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n", 1) == [f"visited {len(BY_KIND)} True", "\n"], done.stdout + done.stderr[-2000:]


def test_a_pane_is_refused_to_a_thread():
    errors = []

    def load():
        try:
            load_pane("lab")
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert errors == ["viewer.lab.pane uses Qt and must be imported on the loop's thread"]


@pytest.mark.parametrize("kind", BY_KIND)
def test_modules_come_after_those_they_import(kind, monkeypatch):
    """Each step of the loop then loads one module, not a whole tree of modules."""
    monkeypatch.setattr(loop_imports, "sys", type("NothingLoaded", (), {"modules": {}}))
    modules = loop_imports.load_engine_parts(pane_module(kind))
    assert modules[-1] == pane_module(kind)
    assert "viewer.pane" in modules
    assert modules.index("viewer.look.theme") < modules.index("viewer.widgets.basics")


def test_modules_are_imported_one_per_turn(run, monkeypatch):
    import asyncio

    loaded, turns = [], []
    monkeypatch.setattr(loop_imports.importlib, "import_module", loaded.append)

    async def drive():
        done = asyncio.get_running_loop().create_future()
        loop_imports.load_in_turns(["viewer.one", "sys", "viewer.two"], lambda: done.set_result(None))
        turns.append(list(loaded))
        await done

    run(drive())
    assert turns == [["viewer.one"]]
    assert loaded == ["viewer.one", "viewer.two"]


def test_modules_for_the_worker_need_no_qt():
    """The worker's results are unpickled in a thread, which imports the module of the result's class."""
    assert uses_qt("viewer.lab.pane")
    assert uses_qt("viewer.pane.plot_library")
    assert not uses_qt("viewer.space.work")
    assert not uses_qt("viewer.log.find_work")
