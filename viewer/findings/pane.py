"""Findings: what the rules saw, the chosen one taken apart, and below it what the next start of a broker would do.

The check runs in the worker process, by itself where the log is small; it can be stopped, and tells what it saw then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.rules.findings import SEVERITIES
from viewer.findings.detail import FindingDetail
from viewer.findings.recovery_panel import RecoveryPanel
from viewer.look.assets import tr, words
from viewer.look.formats import size, span
from viewer.look.theme import C, follow, px
from viewer.pane import Pane
from viewer.pane.finding_facts import COUNTS, FindingRow, Fold, finding_kind, finding_rows, title, unread_findings
from viewer.pane.incident_card import IncidentCard
from viewer.pane.log_survey import LogSurvey
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place, recovery
from viewer.runtime.places import log as log_place
from viewer.runtime.recovery_plan import recovery_of
from viewer.runtime.store_session import StoreSession
from viewer.runtime.store_work import Checked
from viewer.widgets.basics import Button, Hairline, PaneHead, Paper, Tool
from viewer.widgets.boxes import fill, row, splitter
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.paint import chip_width, draw_chip
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.settings import Settings


UNASKED = 2 << 30
"""Bytes of log up to which the check runs by itself."""
CHECKING = words("Checking the store")
GRAVE_FIRST = tuple(reversed(SEVERITIES))


class FindingsPane(Pane):
    """The view of findings and recovery."""

    table: RecordView

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[FindingRow] = []
        self._shown = frozenset(SEVERITIES)
        self._opened: frozenset[str] = frozenset()
        """Rules of causes whose followers are shown."""
        self._running = False
        self._stale_since = 0
        self._checked_bytes = 0
        self._wanted: Place | None = None
        self._error = ""
        self._build()

    def _build(self) -> None:
        self.strip = LineStrip("findings.line")
        self.strip.placed.connect(lambda offset: self.placeRequested.emit(log_place(offset)))
        self._survey = LogSurvey(self.strip)
        back, forward = Tool("back", tr("Previous problem")), Tool("forward", tr("Next problem"))
        back.clicked.connect(lambda: self.table.choose_next(-1))
        forward.clicked.connect(lambda: self.table.choose_next(1))
        self._run = Button(tr("Check the whole store"))
        self._run.setObjectName("findings.run")
        self._run.clicked.connect(self.check)
        self._head = PaneHead(tr("Findings"), "", back, forward, self._run)
        self._chips = {kind: SeverityChip(kind) for kind in GRAVE_FIRST}
        for chip in self._chips.values():
            chip.toggled.connect(self._filter)
        self._chip_row = row(*self._chips.values(), None, gap=8, margins=(12, 8, 12, 8))
        self.table = RecordView("findings.table", finding_kind())
        self.table.setAccessibleName(tr("Findings"))
        self.table.rowChosen.connect(self._row_chosen)
        self.table.placeRequested.connect(self._followed)
        self.detail, self.recovery = FindingDetail(), RecoveryPanel()
        for part in (self.detail, self.recovery):
            part.placeRequested.connect(self.placeRequested)
        self.detail.told.connect(self.statusMessage)
        self.recovery.tools.told.connect(self.statusMessage)
        list_paper = Paper()
        box = QVBoxLayout(list_paper)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        fill(box, (self._head, self._chip_row, Hairline(), self.table, self.table.strip))
        box.setStretch(3, 1)
        upper = splitter(False, (list_paper, 560), (self.detail, 700))
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        self.incident = IncidentCard("incident")
        self.incident.placeRequested.connect(self.placeRequested)
        self.incident.reportAsked.connect(self.reportAsked)
        self.incident.told.connect(self.statusMessage)
        fill(outer, (self.strip, self.incident, splitter(True, (upper, 416), (self.recovery, 400))))
        outer.setStretch(2, 1)
        self.lead = self.table

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Take the form in which the incident was last shown."""
        self.incident.settings = settings

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        super().set_session(session)
        self._running, self._stale_since, self._error, self._opened = False, 0, "", frozenset()
        self._survey.set_session(session)
        self.recovery.set_session(session)
        self.incident.set_session(session)
        self._show_rows()
        if session is None:
            return
        session.findingsChanged.connect(self._findings_changed)
        recovery_of(session).changed.connect(self._planned)
        session.jobs.changed.connect(self._progressed)
        self.table.copier = command_copier(self.table, session.command_line)
        self._survey.look()
        if session.findings_complete:
            self._findings_changed()
        elif session.snapshot.log.sequence.total_size <= UNASKED:
            self.check()
        if self.isVisible():
            self.recovery.ask_unasked()

    def show_place(self, place: Place) -> None:
        """Choose the first finding of a rule, or the one about abort; or bring the recovery plan into view."""
        if place == recovery():
            self.recovery.take_focus()
            return
        rule_id = place.name or ("AB01" if place.kind == "abort" else "")
        number = self._number_of(rule_id)
        if number is None and (cause := self._cause_of(rule_id)):
            self._opened |= {cause}
            self._show_rows()
            number = self._number_of(rule_id)
        if number is not None:
            self.table.go_to(number)
        elif rule_id:
            self._wanted = place

    def refresh(self) -> None:
        """The store has grown: the findings are of an older time now."""
        self._survey.grown()
        if self.session is not None and self.session.findings_complete and not self._stale_since:
            self._stale_since = self._checked_bytes
            self._show_state()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.table.refresh_look()
        self.recovery.retheme()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.table, self.recovery.plan

    def commands(self) -> dict[str, Callable[[], object]]:
        """Checking, the preview, copying and stepping."""
        return {
            **table_commands(self, lambda: self.table, "findings.jsonl"),
            "check.run": self.check,
            **self.recovery.commands(),
            "problem.next": lambda: self.table.choose_next(1),
            "problem.previous": lambda: self.table.choose_next(-1),
        }

    def status(self) -> str:
        """How much was checked and what was found."""
        session = self.session
        if session is None:
            return ""
        if self._running:
            return tr("The check is running.")
        if session.unread:
            return session.unread.beside(tr("Checked what can be read"))
        if not session.findings_complete and not session.findings:
            return tr("This store has not been checked.")
        edge = tr("complete") if session.findings_complete else tr("stopped before the end")
        count_text = tr("1 finding") if len(session.findings) == 1 else tr("{n:,} findings", n=len(session.findings))
        return " · ".join((tr("Checked {size}", size=size(self._checked_bytes)), count_text, edge))

    def showEvent(self, event: QShowEvent) -> None:
        """The recovery plan is worked out when somebody looks."""
        super().showEvent(event)
        self.recovery.ask_unasked()

    # ---- checking ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Run every rule over the whole store, in the worker process."""
        if self.session is not None and not self._running:
            self._running, self._error = True, ""
            self._show_state()
            self.session.jobs.start(self._check(self.session))

    async def _check(self, session: StoreSession) -> None:
        log = session.snapshot.log
        looked = max(0, log.sequence.total_size)
        checked: Checked | None = None
        try:
            checked = await session.jobs.in_worker(
                tr(CHECKING), "viewer.runtime.store_work:check", session.path, session.config
            )
        except Cancelled:
            self._error = tr("The check was stopped.")
        except (StoreError, OSError, RuntimeError) as error:
            self._error = str(error)
        if session is not self.session:
            return
        self._running = False
        if checked is not None:
            self._checked_bytes, self._stale_since = looked, 0
            session.set_findings(checked.findings, complete=checked.complete, incident=checked.incident)
        self._show_state()
        if self.isVisible():
            self.statusMessage.emit(self.status())

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _findings_changed(self) -> None:
        self._show_rows()
        place, self._wanted = self._wanted, None
        if place is not None:
            self.show_place(place)

    def _filter(self) -> None:
        self._shown = frozenset(kind for kind, chip in self._chips.items() if chip.isChecked())
        self._show_rows()

    def _number_of(self, rule: str) -> int | None:
        return next((n for n, row in enumerate(self._rows) if row.finding.id == rule and not row.folded), None)

    def _cause_of(self, rule: str) -> str:
        """The rule whose folded line holds a finding of ``rule``."""
        return next((row.finding.id for row in self._rows if rule in {finding.id for finding in row.folded}), "")

    def _followed(self, place: object) -> None:
        """A link was followed: to the place of a finding, or to what follows from a cause."""
        if isinstance(place, Fold):
            self._opened ^= {place.rule}
            self._show_rows()
        else:
            self.placeRequested.emit(place)

    def _show_rows(self) -> None:
        session = self.session
        findings = (*unread_findings(session.unread), *session.findings) if session is not None else ()
        chosen = self.table.current_row()
        self._rows = finding_rows(findings, self._shown, self._opened)
        self.table.set_rows(list(self._rows))
        for kind, chip in self._chips.items():
            count = sum(item.severity == kind for item in findings)
            chip.show_count(tr(COUNTS[kind][0]) if count == 1 else tr(COUNTS[kind][1], n=count), visible=count > 0)
        self._chip_row.setVisible(bool(findings))
        self._show_state()
        same = next(
            (
                n
                for n, item in enumerate(self._rows)
                if chosen is not None and item.finding == chosen.finding and bool(item.folded) == bool(chosen.folded)
            ),
            0,
        )
        if self._rows:
            self.table.go_to(same)
        else:
            self._row_chosen(None)

    def _planned(self) -> None:
        """The plan is there, or another: what rests on it is said anew."""
        self.detail.say_why()

    def _show_state(self) -> None:
        session = self.session
        self._run.setEnabled(session is not None and not self._running)
        note = ""
        if session is not None and session.findings_complete:
            note = tr("all rules, whole store") if session.snapshot.kind == "store" else tr("this log only")
        self._head.set_note(note)
        self.table.set_state(self._state(session))

    def _state(self, session: StoreSession | None) -> State | None:
        if session is None:
            return None
        if self._running:
            return self._running_state(session)
        if self._error:
            return State("error", self._error, steps=((tr("Check again"), self.check),))
        if session.unread:
            text = (
                tr("Incomplete: unread files were not checked.")
                if session.unread.unreadable
                else tr("What is not decoded was not checked.")
            )
            return State("cut", text, steps=((tr("Check again"), self.check),))
        if not session.findings_complete and not session.findings:
            text = tr(
                "This store has not been checked: {size} of log.", size=size(session.snapshot.log.sequence.total_size)
            )
            return State("empty", text, steps=((tr("Check now"), self.check),))
        if not session.findings_complete:
            return State(
                "cut",
                tr("The check was stopped: this is what the part it saw shows."),
                steps=((tr("Check again"), self.check),),
            )
        if self._stale_since:
            return State(
                "stale", tr("The store has grown since it was checked."), steps=((tr("Check again"), self.check),)
            )
        if not session.findings:
            if session.snapshot.kind != "store":
                return State("empty", tr("Nothing to complain about in this log. Most rules need a whole store."))
            return State("empty", tr("Nothing to complain about: every rule looked at the whole store."))
        if not self._rows:
            return State("empty", tr("All findings are hidden by their severity."))
        return None

    def _running_state(self, session: StoreSession) -> State:
        job = next((job for job in session.jobs.list if job.title == tr(CHECKING)), None)
        if job is None or not job.total:
            return State("loading", tr("The check begins"))
        text = tr("{done} of {total}", done=size(job.done), total=size(job.total))
        seconds = time.monotonic() - job.begun
        if seconds > 1 and job.done:
            seconds_left = (job.total - job.done) / job.done * seconds
            text += f" · {size(job.done / seconds)}/s · " + tr("{time} left", time=span(round(seconds_left * 1000)))
        return State("loading", text, done=job.part, steps=((tr("Stop"), job.cancel),))

    def _progressed(self) -> None:
        if self._running:
            self.table.set_state(self._state(self.session))

    def _row_chosen(self, chosen: FindingRow | None) -> None:
        text = ""
        if self.session is not None and self.session.findings_complete and not self.session.findings:
            text = tr("No finding: what is here is as a broker would leave it.")
        self.detail.show_finding(chosen.finding if chosen is not None else None, self.session, text)
        if chosen is None or self.session is None:
            return
        self.placeMoved.emit(Place("findings", name=chosen.finding.id))
        place = chosen.place
        if isinstance(place, Place) and place.kind == "log" and place.offset is not None:
            self.strip.set_frame(place.offset, place.offset + 1)
            self.session.select(place.offset)
        else:
            self.strip.set_frame(0, 0)
        self.setAccessibleDescription(title(chosen.finding))


class SeverityChip(QAbstractButton):
    """``toggled(shown)`` by pointer or Space."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self.setObjectName(f"findings.{kind}")
        self.setCheckable(True)
        self.setChecked(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        follow(self, self._fit)
        self.show_count("", visible=False)

    def show_count(self, words: str, *, visible: bool) -> None:
        """Say how many there are."""
        self.setText(words)
        self.setAccessibleName(words)
        self.setVisible(visible)
        self._fit()

    def _fit(self) -> None:
        self.setFixedSize(chip_width(self.text()), px(22))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The chip; grey where it is left out, framed with the focus."""
        p = QPainter(self)
        box = QRectF(0, 1, self.width(), px(20))
        draw_chip(p, box, self._kind if self.isChecked() else "out", self.text())
        if self.hasFocus():
            p.setRenderHint(QPainter.RenderHint.Antialiasing)
            p.setPen(QPen(C("accent"), 2))
            p.drawRoundedRect(box.adjusted(1, 1, -1, -1), 4, 4)
