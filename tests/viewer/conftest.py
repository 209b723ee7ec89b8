"""The window under test has its own settings and event loop, and is closed and deleted after each test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import forked_processes
import garbage_on_main_thread
import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from qt_imports import watched_imports

from viewer.look import assets
from viewer.look.theme import theme
from viewer.runtime.garbage import LoopGarbage
from viewer.runtime.settings import Settings
from viewer.shell.main_window import MainWindow
from viewer.shell.opening_stages import Stages

Run = Callable[[Coroutine[Any, Any, Any]], Any]
TIMEOUT_S = 240
"""Seconds a test's coroutine may take where the machine is busy with other things."""


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


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Use settings in a folder of the test."""
    return Settings(tmp_path / "config")


@pytest.fixture(autouse=True)
def in_english() -> Iterator[None]:
    """Whatever language a test uses, the next test begins in English."""
    assets.set_language("en")
    yield
    assets.set_language("en")


@pytest.fixture
def themed_app(qapp: QApplication) -> Iterator[QApplication]:
    """The application in light colours, speaking English, at 100 %."""
    assets.set_language("en")
    theme.scheme, theme.zoom = "light", 100
    theme.contrast_follows = False
    theme.set_contrast(False)
    theme.apply(qapp)
    qapp.setQuitOnLastWindowClosed(False)  # as in the program; otherwise the loop ends with the first window
    yield qapp
    assets.set_language("en")
    theme.set_scheme("light")
    theme.set_zoom(100)


@pytest.fixture
def run(themed_app: QApplication) -> Iterator[Run]:
    """``run(coroutine)``: await it in Qt's loop, at most :data:`TIMEOUT_S` seconds."""
    import qasync

    with garbage_on_main_thread.what_is_new():
        garbage = LoopGarbage()
        loop = qasync.QEventLoop(themed_app, already_running=False)
        asyncio.set_event_loop(loop)
        yield lambda work: loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_S))
        loop.close()
        asyncio.set_event_loop(None)
        garbage.end()


@pytest.fixture
def every_pane() -> None:
    """Let the window of the test make its panes before anybody looks at them, as in the program."""


@pytest.fixture
def window(
    run: Run, settings: Settings, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MainWindow]:
    """A window without a store. It makes a pane when a test looks for it: all of them take a second of processing."""
    if "every_pane" not in request.fixturenames:
        monkeypatch.setattr(Stages, "make_ahead", lambda _stages: None)
        monkeypatch.setattr(Stages, "_make_next", lambda _stages: None)
    main_window = MainWindow(settings)
    main_window.remembers = False
    main_window.resize(1600, 1000)
    main_window.show()
    yield main_window
    main_window.close()
    run(main_window.jobs.drain())
    main_window.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete


@pytest.fixture
def shown(qtbot: QtBot) -> Callable[..., QWidget]:
    """``shown(widget, width=900)``: show the widget at its preferred height and paint it once."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    theme.apply(app)

    def show(widget: QWidget, width: int = 900) -> QWidget:
        qtbot.addWidget(widget)
        widget.resize(width, widget.sizeHint().height())
        widget.show()
        widget.grab()
        return widget

    return show
