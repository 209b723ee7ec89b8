"""What the window keeps for a person beside the store: bookmarks, notes, the session and its file, the way to findings.

One :class:`Workspace` a window. What it keeps stands in the settings' folder, never in the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFileDialog, QLineEdit

from engine.errors import StoreError
from viewer.compare.pane import Comparison
from viewer.look.assets import tr
from viewer.pane import Pane
from viewer.runtime import bookmarks, places
from viewer.runtime.bookmarks import Kept, bookmarks_of
from viewer.runtime.places import Place, Search, UnknownPlace
from viewer.runtime.settings import default_cache
from viewer.runtime.store_session import StoreSession, in_store
from viewer.shell import session_file
from viewer.shell.end_question import EndQuestion
from viewer.shell.jump_highlight import Jumps
from viewer.shell.lab_stores import running_in_words
from viewer.shell.open_other import Taken, kind_of, take
from viewer.shell.session_file import Session
from viewer.shell.top_bar import crumbs_of
from viewer.shell.undo import Edits
from viewer.shell.windows import show_beside
from viewer.widgets.focus import set_reading_order

if TYPE_CHECKING:
    from engine.rules.findings import Finding
    from viewer.cluster.cluster_model import AdminRequest
    from viewer.cluster.watch import ClusterWatch
    from viewer.requests.watch import RequestWatch
    from viewer.runtime.lab_session import LabFeed, LabSession
    from viewer.shell.framed_window import FramedWindow
    from viewer.shell.layout import Layout
    from viewer.shell.pipeline_jobs import PipelineRoom

OFFER_AFTER_MS = 1500
"""The first rows come before the last words."""
LAST = "last" + session_file.SUFFIX
"""The session that stood in the window when it was closed; below the settings' folder."""


class Workspace:
    """One a window."""

    def __init__(self, window: FramedWindow, layouts: Layout, comparison: Comparison) -> None:
        self._window, self._layouts = window, layouts
        self._taken: Taken | None = None
        self._asked = 0
        self._found: Finding | None = None
        """The finding that was gone to last: several may be seen best at one place."""
        self.jumps = Jumps(window)
        self.edits = Edits(window)
        self.comparison = comparison
        self.pipeline: PipelineRoom | None = None
        """The pipeline's jobs, from the first look at that view on."""
        self.cluster: ClusterWatch | None = None
        """The cluster that is looked at, from the first look at that view on."""
        self.requests: RequestWatch | None = None
        """The requests that are looked at, from the first look at that view on."""
        self.feed: Callable[[], LabFeed | None] = lambda: None
        """The frames of what this window serves; None where that is nothing."""
        self.lab_session: Callable[[], LabSession | None] = lambda: None
        """The desk of this window."""
        self.ending = EndQuestion(window, self.what_would_end)
        window.opened.connect(self._opened)

    def _said_anew(self, pane: Pane, words: str) -> None:
        """Newer figures of a view that stands behind are said when it comes to the front."""
        if self._window.panes.get(self._window.view) is pane:
            self._window.status.say_anew(words)

    def made(self, pane: Pane) -> None:
        """A view was made: Tab goes through it, what is done in it is noted, what is edited can be taken back.

        Views are made anew with the language: what was edited in the old log then stays as it is.
        """
        if pane.view_id == "log":
            self.edits.forget()
        pane.reportAsked.connect(self.ask_report)
        pane.helpAsked.connect(self.show_help)
        if pane.view_id == "pipeline":
            self._jobs_of_pipeline().wire(pane)
        if pane.view_id == "cluster":
            self._wire_cluster(pane)
        if pane.view_id == "requests":
            self._wire_requests(pane)
        set_reading_order(pane)
        pane.did.connect(self._window.note)
        pane.statusGrew.connect(lambda words: self._said_anew(pane, words))
        pane.edited.connect(self.edits.push)

    def _jobs_of_pipeline(self) -> PipelineRoom:
        from viewer.shell.pipeline_jobs import PipelineRoom

        if self.pipeline is None:
            self.pipeline = PipelineRoom(self._window, self.comparison.begin)
        return self.pipeline

    def _wire_cluster(self, pane: Pane) -> None:
        """The cluster that the window looks at goes on, whatever pane shows it."""
        from viewer.cluster.pane import ClusterPane
        from viewer.cluster.watch import ClusterWatch

        assert isinstance(pane, ClusterPane)
        window = self._window
        if self.cluster is None:
            self.cluster = ClusterWatch(window.jobs.worker, window.jobs.read, window, self.lab_session())
            self.cluster.asked.connect(self._asked_cluster)
            self.cluster.changed.connect(window.enable)
        pane.set_watch(self.cluster)
        pane.commandsChanged.connect(window.enable)

    def _wire_requests(self, pane: Pane) -> None:
        """The requests that the window looks at stay, whatever pane shows them."""
        from viewer.requests.pane import RequestsPane
        from viewer.requests.watch import RequestWatch

        assert isinstance(pane, RequestsPane)
        window = self._window
        if self.requests is None:
            self.requests = RequestWatch(window.jobs.read, window)
            self.requests.changed.connect(window.enable)
        pane.set_watch(self.requests)
        pane.recordAsked.connect(self._record_requests)

    def _record_requests(self) -> None:
        """Record what the lab's broker is asked; where nothing is served, say where that begins."""
        feed = self.feed()
        if feed is None or self.requests is None:
            self._window.say(tr("Nothing is served here: make a lab store and press Serve there, or open a file."))
        else:
            self.requests.follow(feed)

    def _asked_cluster(self, question: AdminRequest) -> None:
        """A request that was not made before; how often it is made since then, the view tells."""
        model = self.cluster.model if self.cluster is not None else None
        said = {"address": question.address, "code": question.code, "answer": question.answer}
        line = f"storescope cluster '{model.address}'" if model is not None else ""
        self._window.note("cluster.ask", question.name or str(question.code), said, line)

    def ask_report(self) -> None:
        """Ask what the report of an incident shall hold, and where it goes."""
        from viewer.reports.report_dialog import ask_report  # what it needs is not on the way to the first rows

        ask_report(self._window)

    def ask_rebuild(self) -> None:
        """Ask where queues and index are to be built from the log."""
        from viewer.compare.rebuild import ask_rebuild

        ask_rebuild(self._window)

    def _failed(self, error: Exception) -> None:
        self._window.say(str(error))

    # ---- opening -----------------------------------------------------------------------------------------------------

    async def taken(self, path: Path) -> Taken:
        """What ``path`` means: a store, or what leads to one. Raises StoreError, OSError."""
        self._asked += 1
        number, found = self._asked, Taken(path)
        kind = kind_of(path)
        if kind:
            said = tr("Unpacking a copy of {name}", name=path.name) if kind == "archive" else path.name
            found = await self._window.jobs.run(said, lambda control: take(control, path, default_cache()))
        if number == self._asked:  # else another path was asked for meanwhile, and this is nothing of its
            self._taken = found
        return found

    def first_place(self) -> str:
        """Where the window begins in the store that was taken."""
        session = self._taken.session if self._taken is not None else None
        return session.place if session is not None else "log"

    def began(self, session: StoreSession) -> None:
        """A store was opened: what is kept of it is read, and kept from now on."""
        marks = bookmarks_of(session)
        file = bookmarks.file_of(self._window.settings.folder, session.path)
        told = self._taken.session if self._taken is not None else None

        def keep(kept: Kept) -> None:
            session.jobs.keep(file, lambda: bookmarks.write(file, session.path, kept), self._failed)

        def known(kept: Kept) -> None:
            meanwhile = Kept(marks.list, marks.notes)
            marks.fill(kept)
            marks.keep = keep
            if meanwhile != Kept():
                keep(Kept(marks.list, marks.notes))
            if told is not None:
                marks.merge(Kept(told.bookmarks, told.notes))

        session.jobs.read_kept(lambda: bookmarks.read(file), known, self._failed)
        self.edits.forget()
        marks.edited.connect(self.edits.push)
        marks.changed.connect(self._window.enable)
        if told is not None:
            self._take_up(told)

    def _take_up(self, told: Session) -> None:
        window = self._window
        if window.remembers and told.size != (0, 0):
            window.resize(*told.size)
        self._layouts.take(told.layout)
        for text in told.places:
            place = _place(text)
            if place is not None:
                window.history.visit(place)

    def _opened(self) -> None:
        told = self._taken.session if self._taken is not None else None
        self._taken = None
        if told is not None and told.filter:
            here = self._window.history.current
            apply_filter(self._window, told.filter)
            if here is not None and here.view != "log":
                self._window.go(here)

    # ---- the session -------------------------------------------------------------------------------------------------

    def session(self) -> Session | None:
        """What a session file would say now; None without a store."""
        window = self._window
        if window.session is None:
            return None
        marks = bookmarks_of(window.session)
        field = window.panes["log"].findChild(QLineEdit, "filter.field") if "log" in window.panes else None
        return Session(
            store=str(window.session.path),
            place=self.here() or "log",
            places=tuple(places.text_of(place) for place in window.history.places),
            bookmarks=marks.list,
            notes=marks.notes,
            filter=field.text().strip() if field is not None else "",
            size=(window.width(), window.height()),
            layout=self._layouts.states(),
            saved=round(time.time() * 1000),
        )

    def ask_save(self) -> None:
        """Ask where the session is to be saved."""
        window = self._window
        session = window.session
        if session is None:
            return
        name = session.survey.name if session.survey is not None else session.path.name
        dialog = QFileDialog(window, tr("Save the session"), str(Path.home() / f"{name}{session_file.SUFFIX}"))
        dialog.setObjectName("session.dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([tr("Storescope session") + f" (*{session_file.SUFFIX})"])
        dialog.setDefaultSuffix(session_file.SUFFIX.removeprefix("."))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self.save(Path(path)))
        dialog.open()

    def save(self, target: Path) -> None:
        """Write the session to ``target``, off the loop and never into the store."""
        window, said = self._window, self.session()
        if said is None or window.session is None:
            return
        if in_store(window.session.path, target):
            window.say(tr("Nothing is written into the store: choose another folder."))
            return

        def done(_none: object) -> None:
            window.say(tr("Session saved: {path}", path=str(target)))

        window.session.jobs.read(lambda: session_file.write(target, said), done, self._failed)

    def close(self) -> None:
        """Close the window; where something runs, or was recorded and not written, it is asked first."""
        if not self.ending.ask(self._window.close):
            self._window.close()

    def what_would_end(self) -> list[str]:
        """A sentence for each thing that ends with the window: jobs, the lab's clients and load, what was recorded."""
        jobs = self.pipeline.running_in_words() if self.pipeline is not None else []
        lab = self.lab_session()
        return [*jobs, *(running_in_words(lab) if lab is not None else []), *self._recorded_in_words()]

    def _recorded_in_words(self) -> list[str]:
        watch = self.requests
        if watch is None or not watch.unsaved:
            return []
        return [tr("{n:,} requests were recorded and are in no file yet: export them first.", n=watch.unsaved)]

    def keep_all(self) -> None:
        """The window closes: keep its layout, and what stands in it for the next start."""
        self._layouts.keep()
        self._layouts.write()
        self.keep_last()
        if self.cluster is not None:
            self.cluster.close()

    def keep_last(self) -> None:
        """Keep what stands in the window for the next start."""
        window = self._window
        said = self.session() if window.remembers and window.settings.restore else None
        file = window.settings.folder / LAST
        try:
            if said is not None:
                session_file.write(file, said)
            elif window.remembers:
                file.unlink(missing_ok=True)
        except OSError as error:
            self._failed(error)

    def last(self) -> Path | None:
        """The session to begin with; None where nobody chose so, or where there is none."""
        file = self._window.settings.folder / LAST
        if not self._window.settings.restore or not file.exists():
            return None
        try:
            session_file.read(file)
        except (StoreError, OSError):
            return None
        return file

    def choose_restore(self) -> None:
        """Whether the next start opens what stands in the window: the other of the two."""
        window = self._window
        window.settings.restore = not window.settings.restore
        window.actions_by_id["session.restore"].setChecked(window.settings.restore)
        window.say(
            tr("The next start opens what stands in the window at the end.")
            if window.settings.restore
            else tr("The next start begins with the welcome page.")
        )

    def show_here_beside(self) -> None:
        """Show the place in front in a window of its own."""
        place = self._window.history.current
        if place is not None:
            self.show_beside(place)

    def shown_beside(self, place: Place) -> bool:
        """Show ``place`` in a window of its own where it asks for one; whether it did."""
        if place.new_window:
            self.show_beside(place)
        return place.new_window

    def show_beside(self, place: Place) -> None:
        """Show ``place`` in a window of its own."""
        if self._window.session is not None and show_beside(self._window, place) is None:
            self._window.say(tr("There are too many windows: close one first."))

    # ---- help --------------------------------------------------------------------------------------------------------

    def show_help(self, rule: str = "") -> None:
        """The help pages, in a window that stays beside this one; at a rule where one is named."""
        from viewer.shell.help_box import open_help

        open_help(self._window, self._window.command_in_words, rule)

    async def tour(self) -> None:
        """Open the damaged sample and lead through the five steps."""
        from viewer.shell.tour import SAMPLE, Tour
        from viewer.shell.welcome import samples

        window = self._window
        wanted = next((one for one in samples() if one.name == SAMPLE), None)
        if wanted is None:
            window.say(tr("No sample store is installed."))
            return
        await window.open_sample(wanted)
        if window.session is not None:
            Tour(window).go(0)

    def offer_last_words(self, text: str) -> None:
        """Offer what the last run left behind when it ended badly."""
        from viewer.shell.crash_notes import LastWordsBox

        window = self._window
        box = LastWordsBox(window, text, window.settings.folder)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        QTimer.singleShot(OFFER_AFTER_MS, box, box.open)

    # ---- bookmarks ---------------------------------------------------------------------------------------------------

    def here(self) -> str:
        """The place in front, as bookmarks write it; empty without a store."""
        place = self._window.history.current
        return places.text_of(place) if place is not None and self._window.session is not None else ""

    def bookmark(self, place: str = "") -> None:
        """Ask for the name of a bookmark at ``place``, by default here; one that is there already is changed."""
        from viewer.pane.bookmark_box import ask_bookmark

        window, text = self._window, place or self.here()
        if window.session is not None and text:
            ask_bookmark(window, window.session, text, self._name_of(text))

    def _name_of(self, text: str) -> str:
        found = _place(text)
        if found is None:
            return text
        parts = [words for words, _ in crumbs_of(found, self._window.session)][1:]
        return " ".join(parts[-2:]) or text

    # ---- problems ----------------------------------------------------------------------------------------------------

    def next_finding(self, step: int) -> None:
        """Go to the next finding from here, in the order of the log and then of the other files; from anywhere."""
        from viewer.pane.finding_facts import place_of, title

        window = self._window
        session = window.session
        if session is None:
            return
        if not session.findings:
            window.say(tr("No finding.") if session.findings_complete else tr("This store has not been checked."))
            return
        goals = [(place_of(one) or Place("findings", name=one.id), one) for one in session.findings]
        goals.sort(key=lambda goal: _order(goal[0]))
        here = window.history.current
        standing = [n for n, (place, _) in enumerate(goals) if place == here]
        at = next((n for n in standing if goals[n][1] is self._found), standing[0] if standing else None)
        if at is None:
            key = _order(here) if here is not None else (0, -1, "")
            behind = sum(_order(place) <= key for place, _ in goals)
            at = behind - 1 if step > 0 else behind
        place, one = goals[(at + step) % len(goals)]
        self._found = one
        window.go(place)
        window.say(f"{one.id} {title(one)}")


def apply_filter(window: FramedWindow, text: str) -> None:
    """Put a filter into the log's field and apply it."""
    window.show_view("log")
    field = window.findChild(QLineEdit, "filter.field")
    if field is not None:
        field.setText(text)
        window.pane_commands()["filter.apply"]()


def _place(text: str) -> Place | None:
    try:
        found = places.parse(text)
    except UnknownPlace:
        return None
    return None if isinstance(found, Search) else found


def _order(place: Place) -> tuple[int, int, str]:
    """Places of the log first, by offset, the log as a whole before its first byte; then every other by its words."""
    if place.kind == "log":
        return (0, -1 if place.offset is None else place.offset, "")
    return (1, 0, places.text_of(place))
