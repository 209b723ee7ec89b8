"""The stages of opening a store: the first rows are painted, and everything else waits for them.

The survey, the other panes, the worker process and the check compete with the thread that reads the rows for the
interpreter. They begin when the rows are on the screen.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer

from viewer.look.assets import app_icon
from viewer.runtime.garbage import set_aside
from viewer.runtime.loop_imports import load_engine_parts, load_in_turns
from viewer.runtime.store_session import StoreSession
from viewer.shell.commands import draw_icons
from viewer.shell.views import BY_KIND, pane_module
from viewer.shell.window_theme import all_windows_themed
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow
    from viewer.shell.store_changes import StoreChanges

MAKE_AFTER_MS = 300
"""Hidden panes are made after the front one, one a turn of the loop."""
ICONS_AFTER_MS = 60
MAKE_EVERY_MS = 20
WORKER_AFTER_MS = 500
"""The worker process starts after the first rows are on the screen."""
FINDINGS_AFTER_MS = 1200
"""The check starts after the first rows are on the screen."""
MODULES_USED_LATER = ("viewer.shell.palette_box",)
"""Modules that a key press needs. They are loaded with the hidden panes."""
MAX_WAIT_S = 1.0
"""Longest wait (s) for the first rows. A hidden window never paints them."""
POLL_INTERVAL_S = 0.015
MAX_JOB_WAIT_S = 1.5
"""A background job is waited for only if it will end within this time (s)."""
GRACE = 0.15
"""Longest wait (s) for the survey after the first rows, before a drive file begins."""


def _load_filters() -> None:
    """Load the language of filters in a thread, so that the first filter does not block the loop."""
    importlib.import_module("engine.query")


def _load_ahead(view: str) -> list[str]:
    """Load the engine modules of ``view`` in a thread, and return the viewer modules that its pane needs."""
    return [name for module in (*MODULES_USED_LATER, pane_module(view)) for name in load_engine_parts(module)]


class Stages:
    """Runs the stages of one window."""

    next_pane = 0.0
    """Time before which no window makes a pane, so that several windows make only one a turn of the loop."""

    def __init__(self, window: MainWindow, changes: StoreChanges) -> None:
        self._window, self._changes = window, changes
        self._drawn = False
        self._wait: asyncio.Future[None] | None = None

    async def first_rows_painted(self) -> None:
        """Wait until the front tables have painted their rows, or the store is closed."""
        window = self._window
        self._wait = wait = asyncio.get_running_loop().create_future()
        views = [view for view in window.pane(window.view).findChildren(RecordView) if view.isVisible()]
        waiting = {id(view) for view in views if not view.drawn}

        def drawn(view: RecordView) -> None:
            waiting.discard(id(view))
            if not waiting:
                self.stop_waiting()

        links = [view.rowsDrawn.connect(lambda view=view: drawn(view)) for view in views]
        if not waiting:
            asyncio.get_running_loop().call_soon(self.stop_waiting)
        await asyncio.wait({wait}, timeout=MAX_WAIT_S)
        for view, link in zip(views, links, strict=True):
            view.rowsDrawn.disconnect(link)

    def stop_waiting(self) -> None:
        """End the wait: the rows are painted, or not needed any more."""
        if self._wait is not None and not self._wait.done():
            self._wait.set_result(None)

    def go_on(self, session: StoreSession) -> None:
        """Start everything that waited for the first rows of ``session``."""
        window = self._window
        session.tailGrown.connect(self._changes.tailed)
        session.begin()
        window.jobs.read(_load_filters, lambda _answer: None)
        self.draw_icons_soon()
        QTimer.singleShot(MAKE_AFTER_MS, window, self._make_next)
        QTimer.singleShot(WORKER_AFTER_MS, window, window.jobs.worker.release)
        QTimer.singleShot(FINDINGS_AFTER_MS, window, lambda: self.look_for_findings(session))

    def go_on_again(self, session: StoreSession) -> None:
        """Pass the current state to the window's new parts, and start the stages that are not done yet."""
        window = self._window
        self._changes.surveyed()
        self._changes.show_findings()
        QTimer.singleShot(MAKE_AFTER_MS, window, self._make_next)
        if not session.findings_complete:
            QTimer.singleShot(FINDINGS_AFTER_MS, window, lambda: self.look_for_findings(session))

    def look_for_findings(self, session: StoreSession) -> None:
        """Wake the findings view, which starts the check, once its pane is made."""
        window = self._window
        if window.session is not session:
            return
        if "findings" in window.panes and not window.pane(window.view).busy():
            window.awake("findings")
            if session.survey is not None and session.survey.unqueued:
                focused = window.focusWidget()
                window.awake("log")  # it counts the units, the only source of the topics
                if focused is not None:
                    focused.setFocus()
        else:
            QTimer.singleShot(MAKE_AFTER_MS, window, lambda: self.look_for_findings(session))

    def draw_icons_soon(self) -> None:
        """Draw the icons of the window and the menus a little later, once."""
        if not self._drawn:
            self._drawn = True
            QTimer.singleShot(ICONS_AFTER_MS, self._window, self._draw_icons)

    def _draw_icons(self) -> None:
        self._window.setWindowIcon(app_icon())
        draw_icons(self._window.actions_by_id)

    # ---- the panes that nobody has looked at yet ---------------------------------------------------------------------

    def make_all(self) -> None:
        """Make every pane that is not there yet."""
        for view in BY_KIND:
            self._window.pane(view)

    def make_ahead(self) -> None:
        """Make every pane that nobody has looked at yet."""
        self.make_all()

    def missing(self) -> str | None:
        """Return the next view without a pane, or None."""
        return next((view for view in BY_KIND if view not in self._window.panes), None)

    def _engaged(self) -> bool:
        """Return True while the user waits for something."""
        return not all_windows_themed() or self._window.pane(self._window.view).busy()

    def _make_next(self) -> None:
        """Make one more pane: load the engine's modules in a thread, the viewer's one a turn, then make the pane.

        The previous pane's objects are set aside first, in a turn of their own: doing this for all panes at once
        would block the loop.
        """
        view = self.missing()
        if self._window.closed:
            return
        if self._engaged():
            QTimer.singleShot(MAKE_AFTER_MS, self._window, self._make_next)
            return
        set_aside()
        if view is None:
            return

        def loaded() -> None:
            if self._window.closed:
                return
            if self._engaged():
                QTimer.singleShot(MAKE_AFTER_MS, self._window, self._make_next)
                return
            if time.monotonic() < Stages.next_pane:
                QTimer.singleShot(MAKE_EVERY_MS, self._window, self._make_next)
                return
            self._window.pane(view, ahead=True)
            Stages.next_pane = time.monotonic() + MAKE_EVERY_MS / 1000
            QTimer.singleShot(MAKE_EVERY_MS, self._window, self._make_next)

        self._window.jobs.read(lambda: _load_ahead(view), lambda modules: load_in_turns(modules, loaded))

    # ---- waiting -----------------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait until the first rows are shown, and a moment longer for the survey and the unit."""
        window = self._window
        if window.session is None or window.view != "log":
            await self.settled(10.0, quiet=False)
            return
        end = time.monotonic() + GRACE
        for _ in range(round(GRACE / POLL_INTERVAL_S)):
            await asyncio.sleep(POLL_INTERVAL_S)
            if time.monotonic() > end or (self.first_rows() and window.jobs.quick_idle):
                return

    async def settled(self, seconds: float, quiet: bool) -> bool:
        """Wait until the front rows are loaded and every pane is made; see :meth:`MainWindow.settled`.

        Jobs that cannot end in time are not waited for, nor are background jobs that will not end soon. The
        status bar shows how far they are.
        """
        end, calm_looks = time.monotonic() + seconds, 0
        while calm_looks < 3 and time.monotonic() < end:
            await asyncio.sleep(POLL_INTERVAL_S)
            soon = min(end, time.monotonic() + MAX_JOB_WAIT_S)
            late = [job for job in self._window.jobs.list if not job.ends_by(soon if job.is_background else end)]
            jobs_idle = not quiet or (self._window.jobs.idle_but_for(len(late)) and (late or not self._reads_behind()))
            calm_looks = calm_looks + 1 if self.first_rows() and all_windows_themed() and jobs_idle else 0
            if calm_looks == 1:
                self.make_ahead()
        return calm_looks >= 3

    def _reads_behind(self) -> bool:
        """Return True if the front view will read more once nothing else runs."""
        return self._window.pane(self._window.view).reads_behind()

    def first_rows(self) -> bool:
        """Return True if the front view shows all it has."""
        window = self._window
        if window.session is None:
            return not window.opening
        views = window.pane(window.view).findChildren(RecordView)
        return window.session.survey is not None and not any(view.isVisible() and view.loading for view in views)
