"""What happens one after another when a store opens: the first rows are painted, and everything else waits behind them.

The survey, the other panes, the worker process and the check take the interpreter from the thread that reads the rows;
they begin when the rows stand on the screen.
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
from viewer.shell.dressing import dressed
from viewer.shell.views import BY_KIND, pane_module
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.shell.framed_window import FramedWindow
    from viewer.shell.store_changes import StoreChanges

MAKE_AFTER_MS = 300
"""Panes behind the one in front are made when that one stands, one at a turn of the loop."""
ICONS_AFTER_MS = 60
MAKE_EVERY_MS = 20
WORKER_AFTER_MS = 500
"""The worker process starts when the first rows are on the screen, not before them."""
FINDINGS_AFTER_MS = 1200
"""What is wrong is asked for when the first rows stand."""
USED_LATER = ("viewer.shell.palette_box",)
"""What a key press will ask for; loaded with the panes behind the one in front."""
LONGEST_WAIT = 1.0
"""Seconds after which a window that nobody sees goes on without its first rows having been painted."""
LOOK_EVERY = 0.015
SOON = 1.5
"""Seconds within which a job has to end that only adds to what is shown, else nobody waits for it."""
GRACE = 0.15
"""Seconds that the first rows stand before a drive file begins on a store whose survey takes longer."""


def _load_filters() -> None:
    """The language of filters is loaded in a thread: the first filter must not hold the loop for that."""
    importlib.import_module("engine.query")


def _load_ahead(view: str) -> list[str]:
    """Load what ``view`` needs of the engine, in a thread; the viewer's modules that its pane and key presses need."""
    return [name for module in (*USED_LATER, pane_module(view)) for name in load_engine_parts(module)]


class Stages:
    """The order of things in one window."""

    next_pane = 0.0
    """Before this time no window makes a pane: one a turn of the loop, though many windows wait for theirs."""

    def __init__(self, window: FramedWindow, changes: StoreChanges) -> None:
        self._window, self._changes = window, changes
        self._drawn = False
        self._wait: asyncio.Future[None] | None = None

    async def first_rows_painted(self) -> None:
        """Until the tables in front have painted the rows they were given, or the store is closed."""
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
        await asyncio.wait({wait}, timeout=LONGEST_WAIT)
        for view, link in zip(views, links, strict=True):
            view.rowsDrawn.disconnect(link)

    def stop_waiting(self) -> None:
        """Go on: the rows are there, or nobody wants them any more."""
        if self._wait is not None and not self._wait.done():
            self._wait.set_result(None)

    def go_on(self, session: StoreSession) -> None:
        """Everything that waited for the first rows of ``session``."""
        window = self._window
        session.tailed.connect(self._changes.tailed)
        session.begin()
        window.jobs.read(_load_filters, lambda _answer: None)
        self.draw_icons_soon()
        QTimer.singleShot(MAKE_AFTER_MS, window, self._make_next)
        QTimer.singleShot(WORKER_AFTER_MS, window, window.jobs.worker.release)
        QTimer.singleShot(FINDINGS_AFTER_MS, window, lambda: self._look_for_findings(session))

    def go_on_again(self, session: StoreSession) -> None:
        """The window's parts are new: they are told what was told before, and what is still to be done begins."""
        window = self._window
        self._changes.surveyed()
        self._changes.found()
        QTimer.singleShot(MAKE_AFTER_MS, window, self._make_next)
        if not session.findings_complete:
            QTimer.singleShot(FINDINGS_AFTER_MS, window, lambda: self._look_for_findings(session))

    def _look_for_findings(self, session: StoreSession) -> None:
        """What is wrong is asked for by the pane that shows it, once that was made in its turn."""
        window = self._window
        if window.session is not session:
            return
        if "findings" in window.panes and not window.pane(window.view).busy():
            window.awake("findings")
            if session.survey is not None and session.survey.unqueued:
                held = window.focusWidget()
                window.awake("log")  # it counts the units: nothing else tells of the topics
                if held is not None:
                    held.setFocus()
        else:
            QTimer.singleShot(MAKE_AFTER_MS, window, lambda: self._look_for_findings(session))

    def draw_icons_soon(self) -> None:
        """The window's icon and those of the menus, once."""
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

    def missing(self) -> str | None:
        """The next view without a pane; None where all are there."""
        return next((view for view in BY_KIND if view not in self._window.panes), None)

    def _engaged(self) -> bool:
        """Whether something goes on that the user waits for."""
        return not dressed() or self._window.pane(self._window.view).busy()

    def _make_next(self) -> None:
        """One more pane: the engine's modules are loaded in a thread, the viewer's one a turn, then the pane is made.

        The one before is set aside first, at a turn of its own: with all of them at once that would hold the loop.
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
        """Until the first rows are shown, and for a moment longer for what comes at once: the survey, the unit."""
        window = self._window
        if window.session is None or window.view != "log":
            await self.settled(10.0, quiet=False)
            return
        end = time.monotonic() + GRACE
        for _ in range(round(GRACE / LOOK_EVERY)):
            await asyncio.sleep(LOOK_EVERY)
            if time.monotonic() > end or (self.first_rows() and window.jobs.quick_idle):
                return

    async def settled(self, seconds: float, quiet: bool) -> bool:
        """Wait until the rows in front are there and every pane is made; see :meth:`StoreWindow.settled`.

        A job that will not have ended by then is not waited for, nor one that only adds to what is shown and will not
        end soon: it goes on, and the status bar says how far it is.
        """
        end, calm = time.monotonic() + seconds, 0
        while calm < 3 and time.monotonic() < end:
            await asyncio.sleep(LOOK_EVERY)
            soon = min(end, time.monotonic() + SOON)
            late = [job for job in self._window.jobs.list if not job.ends_by(soon if job.is_background else end)]
            still = not quiet or self._window.jobs.idle_but_for(len(late))
            calm = calm + 1 if self.first_rows() and dressed() and still else 0
            if calm == 1:
                self.make_all()
        return calm >= 3

    def first_rows(self) -> bool:
        """Whether what is in front shows what it has."""
        window = self._window
        if window.session is None:
            return not window.opening
        views = window.pane(window.view).findChildren(RecordView)
        return window.session.survey is not None and not any(view.isVisible() and view.loading for view in views)
