"""Fixtures for walks through one window. Each test finds it in English, light, 1600 × 1000, and leaves no error
behind.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked_processes
import garbage_on_main_thread
import pytest
import qasync
from PySide6.QtWidgets import QApplication
from qt_imports import watched_imports
from walker import Run, Walker

from engine.inspection.samples import sample
from viewer.look import assets
from viewer.look.theme import theme
from viewer.runtime.garbage import LoopGarbage
from viewer.runtime.settings import Settings
from viewer.shell.app import SWITCH_INTERVAL_S
from viewer.shell.main_window import MainWindow
from viewer.shell.windows import close_all

TIMEOUT_S = 240
"""Seconds a walk may take where the machine is busy with other things."""


@pytest.fixture(scope="session", autouse=True)
def _imports() -> Iterator[None]:
    """Fail if a thread imports a module that uses Qt; see :mod:`qt_imports`."""
    with watched_imports() as wrong:
        yield
    assert not wrong, wrong


@pytest.fixture(scope="module", autouse=True)
def _processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Processes of a window are forked; see :mod:`forked_processes`."""
    with forked_processes.forked(request.path.name):
        yield


@pytest.fixture(scope="module")
def loop(qapp: QApplication) -> Iterator[qasync.QEventLoop]:
    """Qt's loop as asyncio's."""
    event_loop = qasync.QEventLoop(qapp, already_running=False)
    asyncio.set_event_loop(event_loop)
    with garbage_on_main_thread.what_is_new():
        garbage = LoopGarbage()
        switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        yield event_loop
        sys.setswitchinterval(switch_interval)
        garbage.end()
    event_loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture(scope="module")
def errors() -> list[str]:
    """Return the list of exceptions that nobody caught."""
    return []


@pytest.fixture(scope="module")
def window(
    loop: qasync.QEventLoop, qapp: QApplication, errors: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MainWindow]:
    """Open the window, with settings of its own."""
    qapp.setQuitOnLastWindowClosed(False)
    assets.set_language("en")
    theme.scheme, theme.zoom = "light", 100
    theme.contrast_follows = False
    theme.set_contrast(False)
    theme.apply(qapp)
    main_window = MainWindow(Settings(tmp_path_factory.mktemp("settings")))
    main_window.remembers = False

    def uncaught(error: object) -> None:
        # Between two walks pytest-qt lets Qt's timers, and with them our tasks, go on for a moment without the loop.
        if not (isinstance(error, RuntimeError) and str(error) == "no running event loop"):
            errors.append(str(error) or repr(error))

    main_window.jobs.failed.connect(uncaught)
    loop.set_exception_handler(lambda _loop, record: uncaught(record.get("exception") or record["message"]))
    main_window.resize(1600, 1000)
    main_window.show()
    yield main_window
    main_window.close()
    loop.run_until_complete(main_window.jobs.drain())
    main_window.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete
    assets.set_language("en")
    theme.set_scheme("light")
    theme.set_zoom(100)


@pytest.fixture
def run(loop: qasync.QEventLoop) -> Run:
    """``run(coroutine)``: await it in Qt's loop."""
    return lambda work: loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_S))


@pytest.fixture
def walker(window: MainWindow, run: Run, errors: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Walker]:
    """A person at the window; an exception behind the scenes fails the test."""
    errors.clear()
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, _trace: errors.append(f"{kind.__name__}: {error}"))
    window.resize(1600, 1000)
    window.activateWindow()
    yield Walker(window)
    run(close_all())
    window.close_store()
    window.show_welcome()
    if assets.language() != "en":
        assets.set_language("en")
        window.rebuild()
    theme.set_scheme("light")
    theme.set_zoom(100)
    run(asyncio.sleep(0.02))
    assert not errors, errors


@pytest.fixture(scope="session")
def orders(_own_cache: None) -> Path:
    """Return the sample store without damage."""
    return sample("orders")


@pytest.fixture(scope="session")
def damaged(_own_cache: None) -> Path:
    """Return the sample store with a flipped bit, a torn tail and a chain that loops."""
    return sample("orders-damaged")


@pytest.fixture
def copied(tmp_path: Path) -> Callable[..., Any]:
    """Return ``copied(store)``, which copies a store so that the test may change it."""
    import shutil

    def copy(store: Path) -> Path:
        return Path(shutil.copytree(store, tmp_path / "store"))

    return copy
