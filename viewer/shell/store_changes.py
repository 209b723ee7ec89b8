"""Passes changes of a session to the window: survey, growth, findings, jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from PySide6.QtWidgets import QWidget

from engine.errors import StoreError
from viewer.look.assets import tr, tr_plural
from viewer.runtime.places import Place
from viewer.shell.crumbs import crumbs_of
from viewer.shell.operation_log import Operations
from viewer.shell.welcome import remember_store
from viewer.widgets.record_state import UNREAD, State, StateLine

if TYPE_CHECKING:
    from engine.patching.patches import Patch
    from viewer.pane import Pane
    from viewer.runtime.store_session import StoreSession
    from viewer.shell.following import Follower
    from viewer.shell.main_window import MainWindow

MAX_NAMED = 40
"""Largest number of files in a tooltip."""


class StoreChanges:
    """Passes the signals of a session to the strips of its window."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self.operations = Operations(self._command_line)
        self._followers: WeakKeyDictionary[Pane, Follower | None] = WeakKeyDictionary()

    def _command_line(self, words: Sequence[str]) -> str:
        session = self._window.session
        return session.command_line(words) if session is not None else ""

    def listen(self, session: StoreSession) -> None:
        """Connect to the signals of ``session``."""
        session.surveyed.connect(self.surveyed)
        session.logGrown.connect(self.on_log_grown)
        session.findingsChanged.connect(self.show_findings)
        session.unread.changed.connect(self.unread)
        session.replaced.connect(self.replaced)
        session.benchChanged.connect(self.show_patches)

    def replaced(self) -> None:
        """Make every view read again at its place, because files of the store were replaced."""
        window = self._window
        window.let_go()
        window.take_up(window.history.current)
        self.show_patches()
        if window.session is not None and window.session.patches:
            window.say(tr("The store is shown as patched: everything was read again."))
        else:
            window.say(tr("Files of the store were replaced: everything was read again."))
        if window.session is not None:
            window.stages.look_for_findings(window.session)

    def asked(self, text: str) -> None:
        """Note a use of the go-to box and go to the place."""
        window = self._window
        self.operations.note_go_to(text, tr("Go to…"))
        window.jobs.start(self._go(text))

    async def _go(self, text: str) -> None:
        """Go to the place and move the focus there: the next keys belong to its rows."""
        window = self._window
        if await window.go_to_text(text) and window.focusWidget() is window.top.goto:
            window.pane(window.view).setFocus()

    def surveyed(self) -> None:
        """Show the survey: format, crumbs, list of recent stores."""
        window = self._window
        survey = window.session.survey if window.session else None
        if survey is None:
            return
        window.status.format.setText(survey.kinds)
        window.status.format.setToolTip(survey.written_by)
        current = window.history.current
        if current is not None:
            window.top.crumbs.set_parts(crumbs_of(current, window.session))
        self._remember()

    def _remember(self) -> None:
        """Keep the store among the recent ones, as it is: not with what is only so as patched."""
        session = self._window.session
        if session is not None and not session.patches:
            remember_store(self._window.settings, session)

    def on_log_grown(self) -> None:
        """Refresh every pane, because the store has grown."""
        for pane in self._window.panes.values():
            if pane.session is not None:
                pane.refresh()

    def tailed(self) -> None:
        """Show the new end of the store: in the front view at once, in the others when they are opened."""
        window = self._window
        pane = window.panes.get(window.view)
        if pane is None or pane.session is None or not pane.isVisible():
            return
        if pane not in self._followers:
            from viewer.shell.following import follower_of

            self._followers[pane] = follower_of(pane)
        follower = self._followers[pane]
        if follower is not None:
            follower.tail()

    def unread(self) -> None:
        """Show over every view and in the status bar how much cannot be read."""
        window = self._window
        session = window.session
        noted = session.unread if session is not None else None
        count = noted.count if noted is not None else ""
        window.status.set_unread(count)
        if (window.property(UNREAD) or "") != count:
            window.setProperty(UNREAD, count)
            for line in QWidget.findChildren(window, StateLine):
                line.show_state(line.state)
        if session is None or not noted:
            window.unread.show_state(None)
            return
        sentence = tr("Not all of this store can be read: {unread}. Nothing is concluded from it.", unread=noted.words)
        steps = (
            (tr("Show all"), lambda: window.show_view("findings")),
            (tr("Refresh"), lambda: session.look(anyway=True)),
        )
        window.unread.show_state(State("unread", sentence, steps=steps))
        window.unread.setToolTip("\n".join(noted.entry_text(entry) for entry in noted.list[:MAX_NAMED]))

    def show_patches(self) -> None:
        """Show over every view that the store is shown as patched, or that patches of the user's are staged."""
        window = self._window
        session = window.session
        shown, staged = (session.patches, session.bench.edits) if session is not None else ((), ())
        window.strip.set_patched(bool(shown))
        if session is None or not (shown or staged):
            window.patched.show_state(None)
            return
        show_list = (tr("Show patches"), self._show_bench)
        if shown:
            sentence = tr_plural(
                "The store is shown as {n:,} patch would leave it. Its files are unchanged.",
                "The store is shown as {n:,} patches would leave it. Its files are unchanged.",
                n=len(shown),
            )
            as_it_is = Place("compare", name=str(session.path))
            compare = (tr("Compare with the store as it is"), lambda: window.go(as_it_is))
            look = (tr("Show the store as it is"), lambda: window.jobs.start(self._read_as(session, ())))
            steps = (look, show_list, compare)
            window.patched.show_state(State("live", sentence, steps=steps))
        else:
            sentence = tr_plural(
                "{n:,} patch of yours is staged. Nothing is written yet.",
                "{n:,} patches of yours are staged. Nothing is written yet.",
                n=len(staged),
            )
            look = (tr("Show the store as patched"), lambda: window.jobs.start(self._read_as(session, staged)))
            window.patched.show_state(State("note", sentence, steps=(show_list, look)))

    def _show_bench(self) -> None:
        from viewer.findings.pane import FindingsPane

        pane = self._window.awake("findings")
        assert isinstance(pane, FindingsPane)
        pane.show_repairs()

    async def _read_as(self, session: StoreSession, patches: Sequence[Patch]) -> None:
        """Show the store as ``patches`` would leave it; without patches as it is."""
        try:
            await session.read_anew([patch for patch in patches if session.bench.is_taken(patch)])
        except (StoreError, OSError) as error:
            self._window.say(str(error))

    def show_findings(self) -> None:
        """Show new findings: counters, and a mark on the rail."""
        window = self._window
        if window.session is None:
            return
        counts = window.session.counts()
        window.status.counters.set_counts(counts)
        worst = next((kind for kind in ("error", "warn") if counts[kind]), "")
        window.rail.set_mark("findings", worst)
        if window.session.findings_complete:
            self._remember()

    def jobs(self) -> None:
        """Show the list of jobs after a change."""
        window = self._window
        window.status.jobs.show_jobs(window.jobs.list)
        window.actions_by_id["jobs.cancel"].setEnabled(bool(window.jobs.list))
