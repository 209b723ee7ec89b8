"""The user's own data of a window: bookmarks, notes, the session and its file, the way to findings.

Each window has one :class:`Workspace`. It stores its data in the settings' folder, never in the store.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFileDialog

from engine.errors import StoreError
from viewer.look.assets import tr, tr_plural
from viewer.pane import Pane
from viewer.runtime import bookmarks, places
from viewer.runtime.bookmarks import SavedBookmarks, bookmarks_of
from viewer.runtime.places import Place, Search, UnknownPlace
from viewer.runtime.settings import default_cache
from viewer.runtime.store_session import StoreSession, in_store
from viewer.shell import session_file
from viewer.shell.comparison import Comparison
from viewer.shell.crumbs import crumbs_of
from viewer.shell.end_question import CloseQuestion
from viewer.shell.jump_highlight import Jumps
from viewer.shell.lab_stores import running_in_words
from viewer.shell.open_other import StoreToOpen, kind_of, take
from viewer.shell.repair_dock import RepairPlace
from viewer.shell.session_file import Session
from viewer.shell.tab_window import tab_window_of
from viewer.shell.undo import Edits
from viewer.shell.windows import MAX_WINDOWS, show_beside
from viewer.widgets.focus import set_reading_order

if TYPE_CHECKING:
    from engine.cluster.state import Queue
    from engine.codec.message import Unit
    from engine.decoding.rules import DecodingRule
    from engine.rules.findings import Finding
    from viewer.cluster.cluster_model import AdminRequest
    from viewer.cluster.watch import ClusterWatch
    from viewer.log.pane import UnitsPane
    from viewer.remote.send_box import SendBox
    from viewer.remote.send_work import NewMessage
    from viewer.remote.window import RemoteWindow
    from viewer.reports.report_html import Picture
    from viewer.requests.watch import RequestWatch
    from viewer.shell.help_box import HelpBox
    from viewer.shell.lab_stores import WindowLab
    from viewer.shell.layout import Layout
    from viewer.shell.main_window import MainWindow
    from viewer.shell.pipeline_jobs import WindowPipeline

OFFER_AFTER_MS = 1500
"""Delay of the crash notes, so that the first rows are shown before them."""
LAST = "last" + session_file.SUFFIX
"""File name of the last session in the settings' folder."""


class Workspace:
    """The user's own data of one window."""

    def __init__(self, window: MainWindow, layouts: Layout, lab: WindowLab) -> None:
        self._window, self._layouts, self._lab = window, layouts, lab
        self._taken: StoreToOpen | None = None
        self._asked = 0
        self._last_finding: Finding | None = None
        """The finding that was shown last. Several findings can have the same place."""
        self.jumps = Jumps(window)
        self.edits = Edits(window)
        self.comparison = Comparison(window)
        self.repairs = RepairPlace(window)
        self.pipeline: WindowPipeline | None = None
        """The pipeline's jobs. None until that view is first opened."""
        self.cluster: ClusterWatch | None = None
        """The watched cluster. None until that view is first opened."""
        self.requests: RequestWatch | None = None
        """The watched requests. None until that view is first opened."""
        self.ending = CloseQuestion(window, self.what_would_end)
        window.opened.connect(self._opened)

    def _on_status(self, pane: Pane, words: str) -> None:
        """Update the figures of a view's sentence if the view is in front."""
        if self._window.panes.get(self._window.view) is pane:
            self._window.status.say_anew(words)

    def made(self, pane: Pane) -> None:
        """Connect a new view: tab order, operation log, undo.

        Views are made again when the language changes. Edits of the old log then cannot be undone.
        """
        if pane.view_id == "log":
            self.edits.forget()
            pane.scrolled.connect(self.comparison.lead_scroll)  # type: ignore[attr-defined]  # the log's pane has it
            pane.copyRequested.connect(self.send_copy)  # type: ignore[attr-defined]
        pane.reportRequested.connect(self.ask_report)
        pane.helpRequested.connect(self.show_help)
        if pane.view_id == "pipeline":
            self._jobs_of_pipeline().wire(pane)
        if pane.view_id == "cluster":
            self._wire_cluster(pane)
        if pane.view_id == "requests":
            self._wire_requests(pane)
        if pane.view_id == "compare":
            self._wire_compare(pane)
        if pane.view_id == "findings":
            pane.repairDockRequested.connect(  # type: ignore[attr-defined]  # the pane of the findings has it
                lambda box, is_docked: self.repairs.put(box, pane, is_docked=is_docked)
            )
        set_reading_order(pane)
        pane.operationDone.connect(self._window.note)
        pane.statusUpdated.connect(lambda words: self._on_status(pane, words))
        pane.edited.connect(self.edits.push)
        pane.undoRequested.connect(self._window.actions_by_id["edit.undo"].trigger)

    def _jobs_of_pipeline(self) -> WindowPipeline:
        from viewer.shell.pipeline_jobs import WindowPipeline

        if self.pipeline is None:
            self.pipeline = WindowPipeline(self._window, self.comparison.begin)
        return self.pipeline

    def _wire_compare(self, pane: Pane) -> None:
        """Let the view of two stores ask for the other store, and open a place of it."""
        from viewer.compare.pane import ComparePane

        assert isinstance(pane, ComparePane)
        pane.otherStoreRequested.connect(self.comparison.ask_on_one_page)
        pane.besideRequested.connect(self.comparison.show_other)

    def _wire_cluster(self, pane: Pane) -> None:
        """Connect the view to the window's cluster, which continues when the pane is replaced."""
        from viewer.cluster.pane import ClusterPane
        from viewer.cluster.watch import ClusterWatch

        assert isinstance(pane, ClusterPane)
        window = self._window
        if self.cluster is None:
            self.cluster = ClusterWatch(
                window.jobs.worker, window.jobs.read, window, self._lab.session, window.settings
            )
            self.cluster.requestKindAdded.connect(self._asked_cluster)
            self.cluster.changed.connect(window.enable)
        pane.set_watch(self.cluster)
        pane.commandsChanged.connect(window.enable)
        pane.messagesRequested.connect(self.show_messages)
        pane.sendRequested.connect(self.send_message)

    def show_messages(self, topic: str, queue: Queue | None = None, offset: int | None = None) -> RemoteWindow | None:
        """Show the messages of a topic at the brokers of the connected cluster, in a window of their own."""
        from viewer.remote.window import Actions, RemoteWindow

        cluster = self.cluster
        if cluster is None or not cluster.model.addresses:
            return None
        window, address = self._window, cluster.model.address
        actions = Actions(
            cluster.ask_own,
            lambda: cluster.model.address == address and cluster.model.is_own,
            window.settings.lab_folder.parent / "resent",
        )
        remote = RemoteWindow(cluster.model.addresses, cluster.access, window.session, window, actions)
        remote.operationDone.connect(window.note)
        if topic:
            broker, queue_id = (queue.broker, queue.queue_id) if queue is not None else ("", None)
            remote.show_topic(topic, broker, queue_id, offset)
        remote.show()
        return remote

    def send_message(self, topic: str) -> SendBox | None:
        """Show the box that sends a message to the connected cluster, if it is the user's own."""
        from viewer.remote.send_work import NewMessage

        return self._show_send_box(NewMessage(topic, b""))

    def send_copy(self, unit: Unit) -> SendBox | None:
        """Show that box with a copy of a message."""
        from viewer.remote.send_work import message_of

        try:
            message = message_of(unit)
        except StoreError as error:
            self._failed(error)
            return None
        return self._show_send_box(message)

    def _show_send_box(self, message: NewMessage) -> SendBox | None:
        from engine.cluster.state import Queue
        from viewer.remote.send_box import SendBox

        cluster = self.cluster
        if cluster is None or not cluster.model.is_own:
            self._window.say(
                tr("Connect the Cluster view to a cluster and declare it to be yours: messages are sent there.")
            )
            return None
        box = SendBox(cluster.model.addresses, cluster.access, cluster.ask_own, self._window)
        box.fill(message)
        box.operationDone.connect(self._window.note)
        box.placeRequested.connect(
            lambda topic, broker, queue_id, offset: self.show_messages(topic, Queue(topic, broker, queue_id), offset)
        )
        box.open()
        return box

    def _wire_requests(self, pane: Pane) -> None:
        """Connect the view to the window's requests, which stay when the pane is replaced."""
        from viewer.requests.pane import RequestsPane
        from viewer.requests.watch import RequestWatch

        assert isinstance(pane, RequestsPane)
        window = self._window
        if self.requests is None:
            self.requests = RequestWatch(window.jobs.read, window)
            self.requests.changed.connect(window.enable)
        pane.set_watch(self.requests)
        pane.recordRequested.connect(self._record_requests)

    def _record_requests(self) -> None:
        """Record the requests to the lab's broker. If it serves no store, say where to start that."""
        feed = self._lab.feed()
        if feed is None or self.requests is None:
            self._window.say(tr("Nothing is served here: make a lab store and press Serve there, or open a file."))
        else:
            self.requests.follow(feed)

    def _asked_cluster(self, question: AdminRequest) -> None:
        """Log a new kind of request. The view counts its repetitions."""
        parameters = {"address": question.address, "code": question.code, "answer": question.answer}
        line = self.cluster.command_line() if self.cluster is not None else ""
        self._window.note("cluster.ask", question.name or str(question.code), parameters, line)

    def ask_report(self) -> None:
        """Ask what an incident report should contain, and where to save it."""
        from viewer.reports.report_dialog import ask_report  # its imports must not delay the first rows

        window = self._window
        if window.session is not None and window.session.patches:
            window.say(tr("A report is about the store as it is: go back to it first."))
        elif window.session is not None:
            ask_report(window, window.session, window.say, self.grab_window)

    def grab_window(self) -> Picture:
        """Return a picture of the window with the current place as its caption."""
        from viewer.reports.report_dialog import grab_window

        return grab_window(self._window, self._window.place_in_words)

    def ask_rebuild(self) -> None:
        """Ask where to build queues and index from the log."""
        from viewer.compare.rebuild import ask_rebuild

        window = self._window
        if window.session is None:
            return
        if window.session.patches:
            window.say(window.session.writing_refusal)
            return
        box = ask_rebuild(window, window.session, window.say)
        box.placeRequested.connect(window.go)
        box.operationDone.connect(window.note)

    def _failed(self, error: Exception) -> None:
        self._window.say(str(error))

    # ---- opening -----------------------------------------------------------------------------------------------------

    async def taken(self, path: Path) -> StoreToOpen:
        """Find out what ``path`` refers to: a store, or a file that leads to one. Raises StoreError, OSError."""
        self._asked += 1
        number, source = self._asked, StoreToOpen(path)
        kind = kind_of(path)
        if kind:
            job_title = tr("Unpacking a copy of {name}", name=path.name) if kind == "archive" else path.name
            source = await self._window.jobs.run(job_title, lambda control: take(control, path, default_cache()))
        if number == self._asked:  # otherwise another path was opened meanwhile
            self._taken = source
        return source

    def first_place(self) -> str:
        """Return the first place to show in the opened store."""
        session = self._taken.session if self._taken is not None else None
        return session.place if session is not None else "log"

    def began(self, session: StoreSession) -> None:
        """Read the user's data of an opened store, and store changes from now on."""
        marks = bookmarks_of(session)
        file = bookmarks.file_of(self._window.settings.folder, session.path)
        saved_session = self._taken.session if self._taken is not None else None

        def keep(stored: SavedBookmarks) -> None:
            session.jobs.keep(file, lambda: bookmarks.write(file, session.path, stored), self._failed)

        def on_read(stored: SavedBookmarks) -> None:
            meanwhile = SavedBookmarks(marks.list, marks.notes)
            marks.fill(stored)
            marks.saveRequested.connect(keep)
            if meanwhile != SavedBookmarks():
                keep(SavedBookmarks(marks.list, marks.notes))
            if saved_session is not None:
                marks.merge(SavedBookmarks(saved_session.bookmarks, saved_session.notes))

        session.jobs.read_saved(lambda: bookmarks.read(file), on_read, self._failed)
        self._take_decoding_rules(session)
        self.edits.forget()
        marks.edited.connect(self.edits.push)
        session.patchesEdited.connect(self.edits.push)
        marks.changed.connect(self._window.enable)
        if saved_session is not None:
            self._take_up(saved_session)

    def _take_decoding_rules(self, session: StoreSession) -> None:
        """Decode bodies by the rules that are kept for the store, and keep the user's changes."""
        folder, path = self._window.settings.folder, session.path

        def read() -> tuple[DecodingRule, ...]:
            from engine.decoding.rules import saved_rules

            return saved_rules(folder, path)

        def save(rules: tuple[DecodingRule, ...]) -> None:
            from engine.decoding.rules import file_of, save_rules

            session.jobs.keep(file_of(folder, path), lambda: save_rules(folder, path, rules), self._failed)

        session.decodingSaveRequested.connect(save)
        session.jobs.read_saved(read, session.use_decoding_rules, self._failed)

    def _take_up(self, saved_session: Session) -> None:
        window = self._window
        if window.remembers and saved_session.size != (0, 0):
            window.window().resize(*saved_session.size)
        self._layouts.take(saved_session.layout)
        for text in saved_session.places:
            place = _place(text)
            if place is not None:
                window.history.visit(place)

    def _opened(self) -> None:
        saved_session = self._taken.session if self._taken is not None else None
        self._taken = None
        if saved_session is not None and saved_session.filter:
            current = self._window.history.current
            apply_filter(self._window, saved_session.filter)
            if current is not None and current.view != "log":
                self._window.go(current)

    # ---- the session -------------------------------------------------------------------------------------------------

    def session(self) -> Session | None:
        """Return the content of a session file for the current state. None without a store."""
        window = self._window
        if window.session is None:
            return None
        marks = bookmarks_of(window.session)
        log_pane = _log_pane(window)
        return Session(
            store=str(window.session.path),
            place=self.here() or "log",
            places=tuple(places.text_of(place) for place in window.history.places),
            bookmarks=marks.list,
            notes=marks.notes,
            filter=log_pane.filter.field.text().strip() if log_pane is not None else "",
            size=(window.window().width(), window.window().height()),
            layout=self._layouts.states(),
            saved=round(time.time() * 1000),
        )

    def ask_save(self) -> None:
        """Ask where to save the session."""
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
        window, content = self._window, self.session()
        if content is None or window.session is None:
            return
        if in_store(window.session.path, target):
            window.say(tr("Nothing is written into the store: choose another folder."))
            return

        def done(_none: object) -> None:
            window.say(tr("Session saved: {path}", path=str(target)))

        window.session.jobs.read(lambda: session_file.write(target, content), done, self._failed)

    def close(self) -> None:
        """Close the window. If work runs or a recording is not saved, ask first."""
        if not self.ending.ask(self._window.close):
            self._window.close()

    def what_would_end(self) -> list[str]:
        """Return a sentence for each thing that ends with the window.

        These are jobs, the lab's clients and load, and unsaved recordings.
        """
        jobs = self.pipeline.running_in_words() if self.pipeline is not None else []
        return [*jobs, *running_in_words(self._lab.session), *self._recorded_in_words(), *self._staged_in_words()]

    def _staged_in_words(self) -> list[str]:
        session = self._window.session
        if session is None or not session.bench.is_unsaved:
            return []
        return [
            tr_plural(
                "{n:,} patch of yours is in no file yet: save the patches first.",
                "{n:,} patches of yours are in no file yet: save the patches first.",
                n=len(session.bench.edits),
            )
        ]

    def _recorded_in_words(self) -> list[str]:
        watch = self.requests
        if watch is None or not watch.unsaved:
            return []
        return [
            tr_plural(
                "{n:,} request was recorded and is in no file yet: export it first.",
                "{n:,} requests were recorded and are in no file yet: export them first.",
                n=watch.unsaved,
            )
        ]

    def keep_all(self) -> None:
        """Save the layout and the session for the next start, because the window closes."""
        self._layouts.keep()
        self._layouts.write()
        self.keep_last()
        if self.cluster is not None:
            self.cluster.close()

    def keep_last(self) -> None:
        """Save the sessions of all tabs of the window for the next start."""
        window, tabs = self._window, tab_window_of(self._window)
        if not window.remembers or (tabs is not None and tabs.is_closing):
            return
        pages = tabs.pages if tabs is not None else [window]
        sessions = []
        for page in pages if window.settings.restore else []:
            content = self.session() if page is window else page.workspace.session()
            if content is not None:
                is_in_front = tabs is None or page is tabs.current
                sessions.append(replace(content, in_front=is_in_front))
        folder = window.settings.folder
        try:
            for file, session in zip(_last_files(folder), sessions, strict=False):
                session_file.write(file, session)
            for file in _last_files(folder)[len(sessions) :]:
                file.unlink(missing_ok=True)
        except OSError as error:
            self._failed(error)

    def last(self) -> Path | None:
        """Return the session to begin with. None if the user does not want one or there is none."""
        file = self._window.settings.folder / LAST
        if not self._window.settings.restore or not file.exists():
            return None
        try:
            session_file.read(file)
        except (StoreError, OSError):
            return None
        return file

    def last_tabs(self) -> list[tuple[Path, bool]]:
        """Return the sessions of the further tabs to begin with, each with True if its tab was in front."""
        sessions = []
        for file in _last_files(self._window.settings.folder)[1:]:
            try:
                sessions.append((file, session_file.read(file).in_front))
            except (StoreError, OSError):
                continue
        return sessions

    def choose_restore(self) -> None:
        """Toggle whether the next start restores the session."""
        window = self._window
        window.settings.restore = not window.settings.restore
        window.actions_by_id["session.restore"].setChecked(window.settings.restore)
        window.say(
            tr("The next start opens what the window showed at the end.")
            if window.settings.restore
            else tr("The next start begins with the welcome page.")
        )

    def show_here_beside(self) -> None:
        """Show the current place in a new window."""
        place = self._window.history.current
        if place is not None:
            self.show_beside(place)

    def shown_beside(self, place: Place) -> bool:
        """Show ``place`` in a new window if it asks for one. Return True if it was shown there."""
        if place.new_window:
            self.show_beside(place)
        return place.new_window

    def show_beside(self, place: Place) -> None:
        """Show ``place`` in a new window."""
        if self._window.session is not None and show_beside(self._window, place) is None:
            self._window.say(tr("There are too many windows: close one first."))

    # ---- help --------------------------------------------------------------------------------------------------------

    def show_help(self, rule: str = "") -> HelpBox:
        """Show the help in a box beside this window, at a rule if one is named."""
        from viewer.shell.help_box import open_help

        return open_help(self._window, self._window.command_in_words, rule)

    async def tour(self) -> None:
        """Open the damaged sample and start the five steps of the tour."""
        from viewer.shell.tour import SAMPLE, Tour
        from viewer.shell.welcome import samples

        window = self._window
        sample = next((candidate for candidate in samples() if candidate.name == SAMPLE), None)
        if sample is None:
            window.say(tr("No sample store is installed."))
            return
        await window.open_sample(sample)
        if window.session is not None:
            Tour(window).go(0)

    def offer_crash_notes(self, text: str) -> None:
        """Show the notes of a run that crashed, after the window is open."""
        from viewer.shell.crash_notes import CrashNotesBox

        window = self._window
        box = CrashNotesBox(window, text, window.settings.folder)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        QTimer.singleShot(OFFER_AFTER_MS, box, box.open)

    # ---- bookmarks ---------------------------------------------------------------------------------------------------

    def here(self) -> str:
        """Return the current place as bookmarks write it. Empty without a store."""
        place = self._window.history.current
        return places.text_of(place) if place is not None and self._window.session is not None else ""

    def bookmark(self, place: str = "") -> None:
        """Ask for the name of a bookmark at ``place``, by default the current one. An existing bookmark is changed."""
        from viewer.pane.bookmark_box import ask_bookmark

        window, text = self._window, place or self.here()
        if window.session is not None and text:
            ask_bookmark(window, window.session, text, self._name_of(text))

    def _name_of(self, text: str) -> str:
        place = _place(text)
        if place is None:
            return text
        parts = [words for words, _ in crumbs_of(place, self._window.session)][1:]
        return " ".join(parts[-2:]) or text

    # ---- problems ----------------------------------------------------------------------------------------------------

    def next_finding(self, step: int) -> None:
        """Go to the next finding from the current place, or to the previous one.

        The order is that of the log, then of the other files.
        """
        from viewer.pane.finding_facts import place_of, title

        window = self._window
        session = window.session
        if session is None:
            return
        if not session.findings:
            window.say(tr("No finding.") if session.findings_complete else tr("This store has not been checked."))
            return
        goals = [(place_of(finding) or Place("findings", name=finding.id), finding) for finding in session.findings]
        goals.sort(key=lambda goal: _order(goal[0]))
        current = window.history.current
        standing = [n for n, (place, _) in enumerate(goals) if place == current]
        index = next((n for n in standing if goals[n][1] is self._last_finding), standing[0] if standing else None)
        if index is None:
            key = _order(current) if current is not None else (0, -1, "")
            passed = sum(_order(place) <= key for place, _ in goals)
            index = passed - 1 if step > 0 else passed
        place, finding = goals[(index + step) % len(goals)]
        self._last_finding = finding
        window.go(place)
        window.say(f"{finding.id} {title(finding)}")


def _last_files(folder: Path) -> list[Path]:
    """Return the files of the last sessions, one for each tab."""
    return [folder / LAST, *(folder / f"last-{n}{session_file.SUFFIX}" for n in range(2, MAX_WINDOWS + 2))]


def apply_filter(window: MainWindow, text: str) -> None:
    """Put a filter into the log's field and apply it."""
    window.show_view("log")
    log_pane = _log_pane(window)
    if log_pane is not None:
        log_pane.filter.field.setText(text)
        window.pane_commands()["filter.apply"]()


def _log_pane(window: MainWindow) -> UnitsPane | None:
    """Return the log's view if it was made already."""
    return cast("UnitsPane | None", window.panes.get("log"))


def _place(text: str) -> Place | None:
    try:
        place = places.parse(text)
    except UnknownPlace:
        return None
    return None if isinstance(place, Search) else place


def _order(place: Place) -> tuple[int, int, str]:
    """Return the sort key of a place.

    The log as a whole comes first, then places of the log by offset, then all others by their text.
    """
    if place.kind == "log":
        return (0, -1 if place.offset is None else place.offset, "")
    return (1, 0, places.text_of(place))
