"""The Findings view: the list of findings, details of the selected one, and below them the plan of the next start.

The check runs in the worker process; for a small log it starts by itself. It can be stopped, and its findings up to
there are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.rules.findings import SEVERITIES
from viewer.findings.detail import FindingDetail
from viewer.findings.finding_histogram import FindingHistogram
from viewer.findings.findings_model import CHECK_AGAIN, CHECK_NOW, STOP, CheckedStore, FindingsModel, Progress
from viewer.findings.recovery_panel import RecoveryPanel
from viewer.findings.repair_box import RepairBox
from viewer.findings.repair_model import can_mend
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import clock, moment
from viewer.look.theme import C, follow, px
from viewer.pane import Pane
from viewer.pane.finding_facts import log_offset, title
from viewer.pane.finding_rows import COUNTS, FindingRow, ToggleConsequences, finding_kind, unread_findings
from viewer.pane.histogram_bar import HistogramBar
from viewer.pane.incident_card import IncidentCard
from viewer.pane.log_survey import LogSurvey
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place, recovery
from viewer.runtime.places import log as log_place
from viewer.runtime.recovery_plan import recovery_of
from viewer.runtime.store_session import StoreSession
from viewer.runtime.store_work import CheckResult
from viewer.widgets.basics import Button, Hairline, PaneHead, ThemedPanel, ToolButton
from viewer.widgets.boxes import fill, splitter, stacked, wrapped_row
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.paint import chip_width, draw_chip
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.jobs import Job
    from viewer.runtime.settings import Settings


MAX_AUTOMATIC_CHECK_BYTES = 2 << 30
"""Bytes of log up to which the check runs by itself."""
CHECKING = words("Checking the store")
STEP_WORDS = {CHECK_AGAIN: words("Check again"), CHECK_NOW: words("Check now"), STOP: words("Stop")}
WORST_FIRST = tuple(reversed(SEVERITIES))


class FindingsPane(Pane):
    """The view of findings and recovery."""

    table: RecordView
    repairDockRequested = Signal(object, bool)
    """Ask for a place of the bench of repairs among the views, or for a window of its own."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = FindingsModel()
        self._wanted: Place | None = None
        self.repair_box: RepairBox | None = None
        self._settings: Settings | None = None
        self._build()

    def _build(self) -> None:
        self.strip = LineStrip("findings.line")
        self.strip.offsetChosen.connect(lambda offset: self.placeRequested.emit(log_place(offset)))
        self._survey = LogSurvey(self.strip)
        self.histogram = FindingHistogram("findings.histogram")
        self.times = HistogramBar("findings.histogram", self.histogram)
        self.times.offsetRequested.connect(self._bar_chosen)
        self.histogram.rangeBrushed.connect(lambda begin, end: self._show_time((begin, end)))
        self.histogram.undoRequested.connect(lambda: self._show_time(None))
        self._histogram_room = stacked(self.histogram)
        self.model.times = self.histogram.finding_model.times
        back, forward = ToolButton("back", tr("Previous problem")), ToolButton("forward", tr("Next problem"))
        back.clicked.connect(lambda: self.table.choose_next(-1))
        forward.clicked.connect(lambda: self.table.choose_next(1))
        self._run = Button(tr("Check the whole store"))
        self._run.setObjectName("findings.run")
        self._run.clicked.connect(self.check)
        self._mend = Button(tr("What can be mended…"))
        self._mend.setObjectName("findings.mend")
        self._mend.clicked.connect(self.show_repairs)
        self._head = PaneHead(tr("Findings"), "", back, forward, self._run)
        self._chips = {kind: SeverityChip(kind) for kind in WORST_FIRST}
        for chip in self._chips.values():
            chip.toggled.connect(self._filter)
        self._time_button = Button("", "pill", "close")
        self._time_button.setObjectName("findings.time")
        self._time_button.setToolTip(tr("Show the findings of all times again"))
        self._time_button.clicked.connect(lambda: self._show_time(None))
        self._time_button.hide()
        chips = (*self._chips.values(), self._time_button)
        self._chip_row = wrapped_row(*chips, None, self._mend, gap=8, margins=(12, 5, 8, 5))
        self.table = RecordView("findings.table", finding_kind())
        self.table.setAccessibleName(tr("Findings"))
        self.table.rowChosen.connect(self._row_chosen)
        self.table.placeRequested.connect(self._followed)
        self.detail, self.recovery = FindingDetail(), RecoveryPanel()
        for part in (self.detail, self.recovery):
            part.placeRequested.connect(self.placeRequested)
        self.detail.statusText.connect(self.statusMessage)
        self.recovery.tools.statusText.connect(self.statusMessage)
        list_paper = ThemedPanel()
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
        self.incident.reportRequested.connect(self.reportRequested)
        self.incident.statusText.connect(self.statusMessage)
        body = splitter(True, (upper, 416), (self.recovery, 400))
        fill(outer, (self.strip, self._histogram_room, self.incident, body))
        outer.setStretch(3, 1)
        self.lead = self.table

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Take the form in which the incident was last shown, and the place of the bench of repairs."""
        self.incident.settings = self._settings = settings
        self.times.use(settings)

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        if self.repair_box is not None and session is not None and session is not self.repair_box.session:
            self.repair_box.close()
        super().set_session(session)
        self.model.open(self._checked_store())
        self._survey.set_session(session)
        self.times.set_session(session)
        if session is not None:
            self.times.show("")
        self.recovery.set_session(session)
        self.incident.set_session(session)
        self._show_rows()
        if session is None:
            return
        session.findingsChanged.connect(self._findings_changed)
        recovery_of(session).changed.connect(self._planned)
        session.jobs.changed.connect(self._progressed)
        self.table.copier = command_copier(self.table, session.command_line)
        self._survey.read_extent()
        if session.findings_complete:
            self._findings_changed()
        elif session.snapshot.log.sequence.total_size <= MAX_AUTOMATIC_CHECK_BYTES:
            self.check()
        if self.isVisible():
            self.recovery.start_if_cheap()

    def show_place(self, place: Place) -> None:
        """Choose the first finding of a rule, or the one about abort; or bring the recovery plan into view."""
        if place == recovery():
            self.recovery.take_focus()
            return
        rule_id = place.name or ("AB01" if place.kind == "abort" else "")
        opened = self.model.opened
        index = self.model.find(rule_id)
        if self.model.opened != opened:
            self._show_rows()
        if index is not None:
            self.table.go_to(index)
        elif rule_id:
            self._wanted = place

    def refresh(self) -> None:
        """The store has grown: the findings are of an older time now."""
        self._survey.on_log_grown()
        self.model.grow()
        self._show_state()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.table.refresh_look()
        self.recovery.retheme()
        if self.repair_box is not None:
            self.repair_box.retheme()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.histogram, self.table, self.detail.hex, self.recovery.plan, self.recovery.files

    def commands(self) -> dict[str, Callable[[], object]]:
        """Checking, the preview, copying and stepping."""
        return {
            **table_commands(self, lambda: self.table, "findings.jsonl"),
            "check.run": self.check,
            "view.histogram": self.times.toggle,
            "repair.show": self.show_repairs,
            **self.recovery.commands(),
            "problem.next": lambda: self.table.choose_next(1),
            "problem.previous": lambda: self.table.choose_next(-1),
        }

    def status(self) -> str:
        """Return how much was checked and how many findings there are."""
        self.model.store = self._checked_store()
        text = self.model.status()
        if self.session is None or self.model.running:
            return text
        return self.session.unread.beside(text)

    def showEvent(self, event: QShowEvent) -> None:
        """Make the recovery plan when the view is first shown."""
        super().showEvent(event)
        self.recovery.start_if_cheap()

    # ---- checking ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Run every rule over the store, in the worker process."""
        if self.session is not None and not self.model.running:
            self.model.begin_check()
            self._show_state()
            self.session.jobs.start(self._check(self.session))

    async def _check(self, session: StoreSession) -> None:
        log = session.snapshot.log
        looked = max(0, log.sequence.total_size)
        checked: CheckResult | None = None
        error_words = ""
        try:
            checked = await session.jobs.in_worker(
                tr(CHECKING), "viewer.runtime.store_work:check", session.path, session.config, gives_way=True
            )
        except Cancelled:
            error_words = tr("The check was stopped.")
        except (StoreError, OSError, RuntimeError) as error:
            error_words = str(error)
        if session is not self.session:
            return
        self.model.end_check(looked if checked is not None else None, error_words)
        if checked is not None:
            session.set_findings(checked.findings, complete=checked.complete, incident=checked.incident)
        self._show_state()
        if self.isVisible():
            self.statusMessage.emit(self.status())

    # ---- mending -----------------------------------------------------------------------------------------------------

    def show_repairs(self) -> None:
        """Show what can be mended, in a window of its own."""
        if self.session is None:
            return
        if self.repair_box is None:
            self.repair_box = RepairBox(self, self.session, self.statusMessage.emit)
            self.repair_box.placeRequested.connect(self.placeRequested)
            self.repair_box.finished.connect(self._repairs_closed)
            box = self.repair_box
            box.dockRequested.connect(lambda is_docked: self.repairDockRequested.emit(box, is_docked))
            box.begin()
            if self._settings is not None and self._settings.repair_docked:
                self.repairDockRequested.emit(box, True)
        self.repair_box.show()
        self.repair_box.raise_()

    def _repairs_closed(self) -> None:
        self.repair_box = None

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _findings_changed(self) -> None:
        self._show_rows()
        place, self._wanted = self._wanted, None
        if place is not None:
            self.show_place(place)

    def _filter(self) -> None:
        self.model.show_only([kind for kind, chip in self._chips.items() if chip.isChecked()])
        self._show_rows()

    def _show_time(self, time: tuple[int, int] | None) -> None:
        """Show only the findings of a time that was chosen in the histogram; None shows all."""
        self.model.show_time(time)
        self._time_button.setText(f"{moment(time[0])} – {clock(time[1])}" if time is not None else "")
        self._time_button.setVisible(time is not None)
        self._show_rows()

    def _bar_chosen(self, offset: int) -> None:
        """Choose the first finding of a bar."""
        row = self.model.row_at(offset)
        if row is not None:
            self.table.go_to(row)

    def _followed(self, place: object) -> None:
        """Follow a link: to the place of a finding, or to the consequences of a cause."""
        if isinstance(place, ToggleConsequences):
            self.model.toggle_cause(place.rule)
            self._show_rows()
        else:
            self.placeRequested.emit(place)

    def _checked_store(self) -> CheckedStore | None:
        session = self.session
        if session is None:
            return None
        return CheckedStore(
            (*unread_findings(session.unread), *session.findings),
            session.findings_complete,
            session.snapshot.kind == "store",
            session.snapshot.log.sequence.total_size,
            bool(session.unread),
            bool(session.unread.unreadable),
        )

    def _show_rows(self) -> None:
        model, chosen = self.model, self.table.current_row()
        model.set_store(self._checked_store())
        self.histogram.finding_model.set_findings(model.findings)
        self._histogram_room.setVisible(any(log_offset(finding) is not None for finding in model.findings))
        self.histogram.look_again()
        self._time_button.setVisible(model.time is not None)
        self.table.set_rows(list(model.rows))
        for kind, chip in self._chips.items():
            count = model.count_of(kind)
            chip.show_count(tr_plural(*COUNTS[kind], n=count), visible=count > 0)
        self._chip_row.setVisible(bool(model.findings))
        self._show_state()
        if model.rows:
            self.table.go_to(model.same_row(chosen))
        else:
            self._row_chosen(None)

    def _planned(self) -> None:
        """Show a new plan, and all words that depend on it."""
        self.detail.say_why()

    def _show_state(self) -> None:
        self.model.store = self._checked_store()
        self._run.setEnabled(self.session is not None and not self.model.running)
        self._run.setToolTip(tr("The check is running.") if self.model.running else "")
        self._mend.setVisible(self.session is not None and can_mend(self.session.findings))
        self._head.set_note(self.model.head_note())
        self._show_table_state()

    def _show_table_state(self) -> None:
        job = self._check_job()
        progress = Progress(job.done, job.total, time.monotonic() - job.begun) if job is not None else None
        state = self.model.table_state(progress)
        if state is None:
            self.table.set_state(None)
            return
        handler = job.cancel if state.step == STOP and job is not None else self.check
        steps = ((tr(STEP_WORDS[state.step]), handler),) if state.step else ()
        self.table.set_state(State(state.kind, state.text, done=state.part, steps=steps))

    def _check_job(self) -> Job | None:
        """Return the job of the running check, once the window lists it."""
        if self.session is None or not self.model.running:
            return None
        return next((job for job in self.session.jobs.list if job.title == tr(CHECKING)), None)

    def _progressed(self) -> None:
        if self.model.running:
            self._show_table_state()

    def _row_chosen(self, chosen: FindingRow | None) -> None:
        self.detail.show_finding(
            chosen.finding if chosen is not None else None, self.session, self.model.empty_detail()
        )
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
        """The chip; grey if its severity is hidden, framed with the focus."""
        p = QPainter(self)
        box = QRectF(0, 1, self.width(), px(20))
        draw_chip(p, box, self._kind if self.isChecked() else "out", self.text())
        if self.hasFocus():
            p.setRenderHint(QPainter.RenderHint.Antialiasing)
            p.setPen(QPen(C("accent"), 2))
            p.drawRoundedRect(box.adjusted(1, 1, -1, -1), 4, 4)
