"""The Recovery tab: the plan of the next start, drawn on a line of the log (kept, read again, lost) and as a table.

Making a plan only reads the store.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy, QVBoxLayout, QWidget

from engine.releases import NEWEST_FIRST, Release, rules_of
from engine.store.recovery.plan import RecoveryPlan
from viewer.findings.recovery_commands import RecoveryCommands
from viewer.findings.recovery_outcome import Outcome
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, number, size
from viewer.look.theme import px
from viewer.pane.plan_words import (
    FateRow,
    PlanRow,
    fate_kind,
    fates,
    headline,
    headline_tip,
    plan_kind,
    plan_rows,
    release_name,
    start_rows,
    without_own_lock,
)
from viewer.pane.table_commands import command_copier
from viewer.runtime.lab_session import lab_of
from viewer.runtime.recovery_plan import RecoveryJob, recovery_of
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Button, Chip, Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, empty, fill, row, splitter
from viewer.widgets.choices import ChoiceField
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.recovery_line import LineFlag, Part, RecoveryLine, share_at, shares

MIN_HEIGHT_WITH_TAIL = 300
"""Height in px at 100 % below which the enlarged tail of the log is hidden."""


class RecoveryPanel(ThemedPanel):
    """Recovery plan, result of a trial on a copy, and their commands.

    Emits ``placeRequested(place)`` when a line of the plan is followed, ``openRequested(Path)`` to open a recovered
    copy, ``commandsChanged()`` when other commands become possible.
    """

    placeRequested = Signal(object)
    openRequested = Signal(object)
    commandsChanged = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._session: StoreSession | None = None
        self._job: RecoveryJob | None = None
        self._has_tail = False
        self._chips = row(gap=8)
        self.release = self._release_choice()
        self._again = Button(tr("Work out the recovery plan"))
        self._again.setObjectName("recovery.run")
        self._again.clicked.connect(self.start_plan)
        self.tools = RecoveryCommands(self)
        tools = (self._chips, self.release, self._again, self.tools.save, self.tools.attempt)
        self.head = PaneHead(tr("Recovery"), "", *tools)
        self.line = RecoveryLine("recovery.line", tr("The parts of the log that are kept, read again, and lost"))
        self.tail = RecoveryLine("recovery.tail", tr("The last part of the log"), 22)
        self._tail_words = Label("", 12, "text3")
        self._log_words = Label("", 12, "text3")
        self.plan = RecordView("recovery.plan", plan_kind())
        self.plan.setAccessibleName(tr("Recovery plan"))
        self.files = RecordView("recovery.files", fate_kind())
        self.files.setAccessibleName(tr("Kept and lost"))
        self.outcome = Outcome(self.files)
        self.outcome.againRequested.connect(self.tools.again)
        self.outcome.openRequested.connect(self.openRequested)
        self.tools.requested.connect(self._start_if_idle)
        self.tools.trialDone.connect(self.outcome.show_trial)
        self.tools.changed.connect(self._commands_changed)
        self.plan.placeRequested.connect(self.placeRequested)
        self._row_text = Label("", 12, "text2", wrap=True, select=True)
        self._row_text.setObjectName("recovery.rowText")
        self._row_text.setContentsMargins(px(14), px(5), px(14), px(6))
        self._row_text.hide()
        for table in (self.plan, self.files):
            table.rowChosen.connect(self._show_row_text)
        self._lines = column(self._log_words, self.line, self._tail_words, self.tail, gap=0, margins=(14, 4, 14, 4))
        plan = QWidget()
        plan_box = QVBoxLayout(plan)
        plan_box.setContentsMargins(0, 0, 0, 0)
        plan_box.setSpacing(0)
        fill(plan_box, (self.plan, self.plan.strip))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        fill(
            box, (self.head, self._lines, Hairline(), splitter(False, (plan, 740), (self.outcome, 480)), self._row_text)
        )
        box.setStretch(3, 1)
        self._show()

    def _release_choice(self) -> ChoiceField:
        """Make the choice of the release. A button for each release would push the verdict out of a narrow window."""
        choice = ChoiceField()
        choice.setObjectName("recovery.release")
        choice.setAccessibleName(tr("Release whose start is planned"))
        choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        choice.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        for index, name in enumerate(NEWEST_FIRST):
            title = rules_of(name).title
            choice.addItem(title, name)
            choice.setItemData(
                index, tr("What a start of {release} would do", release=title), Qt.ItemDataRole.ToolTipRole
            )
        choice.activated.connect(lambda index: self._choose(choice.itemData(index)))
        return choice

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none."""
        self._session = session
        self._job = recovery_of(session) if session is not None else None
        self.outcome.show_trial(None)
        if session is not None and self._job is not None:
            self._job.changed.connect(self._show)
            session.findingsChanged.connect(self._show)
            self.plan.copier = command_copier(self.plan, session.command_line)
        self._show()

    def start_plan(self) -> None:
        """Make the plan now."""
        if self._job is not None:
            self._job.start()

    def take_focus(self) -> None:
        """Focus the plan. Makes it first if there is none or if it is out of date."""
        if self._job is not None and self._job.possible and (self._job.plan is None or self._job.stale):
            self._start_if_idle()
        self.plan.setFocus()

    def start_if_cheap(self) -> None:
        """Make the plan if the log is small. For a large one the user presses the button."""
        if self._job is not None and self._job.plans_automatically:
            self._job.start()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the possible commands: make, save and try the plan; after a trial also repeat it and open the copy."""
        commands: dict[str, Callable[[], object]] = {"recovery.preview": self.start_plan, **self.tools.commands()}
        if self.outcome.trial is not None:
            commands["recovery.open"] = self.outcome.open_copy
        return commands

    def _commands_changed(self) -> None:
        self.outcome.set_busy(self.tools.running)
        self.commandsChanged.emit()

    def _start_if_idle(self) -> None:
        """Start making the plan, unless it is being made. Says why if it is impossible."""
        if self._job is None:
            return
        if not self._job.possible:
            self.tools.statusText.emit(self._job.why_impossible)
        elif not self._job.running:
            self._job.start()

    def retheme(self) -> None:
        """Apply changed colours, fonts or zoom."""
        self.plan.refresh_look()
        self.files.refresh_look()
        self.outcome.retheme()

    def _choose(self, release: Release) -> None:
        if self._job is not None:
            self._job.start(release)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave a low panel to the tables: the enlarged tail is hidden first."""
        super().resizeEvent(event)
        self._show_tail()

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        job = self._job
        plan = job.plan if job is not None else None
        lab = self._session is not None and lab_of(self._session.path) is not None
        plan = without_own_lock(plan) if plan is not None and lab else plan
        layout = self._chips.box
        empty(layout)
        harmed = self._session is not None and self._session.harmed
        for position, (shape, label) in enumerate(headline(plan, harmed=harmed) if plan is not None else ()):
            chip = Chip(shape, label)
            if plan is not None and position == 0:
                chip.setToolTip(headline_tip(plan))
            layout.addWidget(chip)
        if lab and plan is not None:
            layout.addWidget(Chip("live", tr("open in the lab")))
        self.release.setVisible(job is not None and job.possible and job.release is not None)
        self.release.setEnabled(job is not None and job.possible and not job.running)
        self.release.setCurrentIndex(self.release.findData(job.release) if job is not None and job.release else -1)
        self._again.setVisible(job is not None and job.possible and not job.running and (plan is None or job.stale))
        self._lines.setVisible(plan is not None)
        rows = []
        if plan is not None and job is not None:
            rows = start_rows(plan, job.other_start, job.written, lab=lab) + plan_rows(
                plan, job.duration_s, harmed=harmed
            )
        self.plan.set_rows(rows)
        files = len(self._session.snapshot.log.files) if self._session is not None else 0
        self.files.set_rows(fates(plan, files) if plan is not None else [])
        if job is None or job.possible:
            waits = State("hint", tr("File by file, once the plan is there."))
        else:
            waits = State("hint", tr("Without a plan there is nothing to show file by file."))
        self.files.set_state(None if plan is not None else waits)
        self.plan.set_state(self._state(job))
        note = tr("what the next start does with this store; nothing is changed here")
        if plan is not None:
            note = tr("what the next start of {release} does; nothing is changed here", release=release_name(plan))
            if lab:
                note = tr(
                    "Our own engine holds the lock: this is what a start of {release} would do if it ended now.",
                    release=release_name(plan),
                )
        self.head.set_note(note)
        self.tools.show_plan(self._session, plan)
        if plan is not None:
            self._draw(plan, files)

    def _show_row_text(self, row: PlanRow | FateRow | None) -> None:
        """Show the full text of the chosen line below the table."""
        named = (
            (row.subject, row.amount) if isinstance(row, PlanRow) else (row.name, row.fate) if row is not None else ()
        )
        head = " ".join(part for part in named if part)
        parts = [part for part in (head, row.reason if row is not None else "") if part]
        self._row_text.setText(tr("{what}: {why}", what=parts[0], why=parts[1]) if len(parts) > 1 else "")
        self._row_text.setVisible(len(parts) > 1)

    def _state(self, job: RecoveryJob | None) -> State | None:
        if job is None:
            return None
        if not job.possible:
            return State(
                "unread" if self._session and self._session.snapshot.undecoded else "empty", job.why_impossible
            )
        if job.running:
            return State("loading", tr("Reading as recovery would …"))
        if job.error:
            return State("error", job.error, steps=((tr("Try again"), self.start_plan),))
        if job.plan is None:
            words = tr("Recovery reads the log from its start file on. Nothing is changed by the plan.")
            return State("hint", words, steps=((tr("Work it out"), self.start_plan),))
        if job.stale:
            words = tr("As of {time}. The store has grown since.", time=clock(round(job.planned_at * 1000))[:8])
            return State("stale", words, steps=((tr("Refresh"), self.start_plan),))
        refusal = self._session.writing_refusal if self._session is not None else ""
        if refusal:
            return State("note", tr("Nothing can be tried on a copy: {why}", why=refusal))
        return None

    def _draw(self, plan: RecoveryPlan, files: int) -> None:
        log_min, log_max = plan.log_min, max(plan.log_max, plan.end_offset)
        broken = self._session.broken if self._session is not None else ()
        line_end = max([log_max, *(broken_range.end for broken_range in broken if broken_range.kind == "missing")])
        start = min(max(plan.start_offset, log_min), plan.end_offset)
        parts = [
            start - log_min,
            plan.end_offset - start,
            log_max - plan.end_offset,
            line_end - log_max,
            max(1, (log_max - log_min) // 50),
        ]
        widths = shares(parts)
        again_words = tr("read and dispatched again") if plan.units else tr("read again, kept")
        kinds = [
            ("keep", tr("unchanged, not read")),
            ("again", again_words),
            ("drop", tr("lost")),
            ("gone", tr("missing")),
            ("zero", ""),
        ]
        flags = [LineFlag(widths[0], tr("start file {name}", name=plan.start_file or ""), "posTime", start)]
        end_role = "error" if plan.units_dropped or plan.bytes_dropped else "posLog"
        end_words = tr("end of log {offset}", offset=number(plan.end_offset))
        flags.append(LineFlag(sum(widths[:2]), end_words, end_role, plan.end_offset))
        exact = [length / max(1, sum(parts)) for length in parts]
        scale = (
            [] if all(abs(a - b) < 0.02 for a, b in zip(exact, widths, strict=True)) else [(0.5, tr("not to scale"))]
        )
        ticks = [(0.0, number(log_min)), *scale, (1.0, number(line_end))]
        bounds = [
            (log_min, start),
            (start, plan.end_offset),
            (plan.end_offset, log_max),
            (log_max, line_end),
            (None, None),
        ]
        line_parts = [
            Part(width, kind, words, *bound) for width, (kind, words), bound in zip(widths, kinds, bounds, strict=True)
        ]
        inside = [
            (
                share_at(broken_range.start - log_min, parts, widths),
                share_at(broken_range.end - log_min, parts, widths),
                broken_range.kind,
            )
            for broken_range in broken
            if broken_range.start < log_max
        ]
        self.line.show_parts(line_parts, flags, ticks, inside)
        self.line.setVisible(line_end > log_min)
        many = tr_plural("Commit log, {n:,} file", "Commit log, {n:,} files", n=files)
        self._log_words.setText(many if files else tr("The log has no files."))
        self._draw_tail(plan, log_max)

    def _draw_tail(self, plan: RecoveryPlan, log_max: int) -> None:
        """Draw the part that would be lost to scale, with the same length before it."""
        dropped = log_max - plan.end_offset
        self._has_tail = dropped > 0
        self._show_tail()
        if not self._has_tail:
            return
        kept_bytes = min(plan.end_offset - plan.log_min, dropped)
        self._tail_words.setText(tr("The last {size}", size=size(kept_bytes + dropped)))
        words = tr_plural(
            "{n:,} unit is dropped, {size}", "{n:,} units are dropped, {size}", n=plan.units_dropped, size=size(dropped)
        )
        widths = shares([kept_bytes, dropped])
        flag = LineFlag(widths[0], f"{plan.end_offset:,}: {engine_words(plan.end_reason)}", "error", plan.end_offset)
        parts = [
            Part(
                widths[0],
                "again",
                tr("kept, {size}", size=size(kept_bytes)),
                plan.end_offset - kept_bytes,
                plan.end_offset,
            ),
            Part(widths[1], "drop", words, plan.end_offset, log_max),
        ]
        self.tail.show_parts(parts, [flag], [(0.0, number(plan.end_offset - kept_bytes)), (1.0, number(log_max))])

    def _show_tail(self) -> None:
        shown = self._has_tail and self.height() >= px(MIN_HEIGHT_WITH_TAIL)
        self.tail.setVisible(shown)
        self._tail_words.setVisible(shown)
