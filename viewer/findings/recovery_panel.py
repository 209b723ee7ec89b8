"""The recovery plan: what the next start of a broker would do with the store, as a line of the log that stays, is
read again and goes; the plan is saved, or tried on a copy. The store itself is never written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QFileDialog, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.releases import NEWEST_FIRST, Release, of
from engine.store.recovery.plan import RecoveryPlan
from viewer.findings.recovery_trial import Trial, again, save_plan, trial
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, number, size, span
from viewer.look.theme import px
from viewer.pane.plan_words import (
    FateRow,
    PlanRow,
    fate_kind,
    fates,
    headline,
    plan_kind,
    plan_rows,
    release_name,
    start_rows,
    without_own_lock,
)
from viewer.pane.table_commands import command_copier
from viewer.pane.target_folder import ask_target_folder
from viewer.runtime.jobs import Cancelled
from viewer.runtime.lab_session import lab_of
from viewer.runtime.recovery_plan import RecoveryJob, recovery_of
from viewer.runtime.store_session import StoreSession, in_store
from viewer.widgets.basics import Button, Chip, Hairline, Label, PaneHead, Paper
from viewer.widgets.basics import Chip as ChipPart
from viewer.widgets.boxes import column, empty, fill, row, splitter, stacked
from viewer.widgets.choices import ChoiceField
from viewer.widgets.columns import Chip as ChipValue
from viewer.widgets.columns import Column, RecordKind, chip_column, text_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.recovery_line import LineFlag, Part, RecoveryLine, share_at, shares
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.lab.plug import Figure
    from viewer.runtime.control import Control


ROOM_FOR_TAIL = 300
"""Height in px at 100 % below which the close look at the tail leaves."""


class RecoveryPanel(Paper):
    """``placeRequested(place)`` when a line of the plan leads somewhere, ``openAsked(Path)`` to open a copy that was
    recovered, ``commandsChanged()`` when something else can be done now.
    """

    placeRequested = Signal(object)
    openAsked = Signal(object)
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
        self._again.clicked.connect(self.ask)
        self.tools = RecoveryCommands(self)
        tools = (self._chips, self.release, self._again, self.tools.save, self.tools.attempt)
        self.head = PaneHead(tr("Recovery"), "", *tools)
        self.line = RecoveryLine("recovery.line", tr("What stays of the log, what is read again, what goes"))
        self.tail = RecoveryLine("recovery.tail", tr("The last part of the log"), 22)
        self._tail_words = Label("", 12, "text3")
        self._log_words = Label("", 12, "text3")
        self.plan = RecordView("recovery.plan", plan_kind())
        self.plan.setAccessibleName(tr("Recovery plan"))
        self.files = RecordView("recovery.files", fate_kind())
        self.files.setAccessibleName(tr("What stays, what goes"))
        self.outcome = Outcome(self.files)
        self.outcome.againAsked.connect(self.tools.again)
        self.outcome.openAsked.connect(self.openAsked)
        self.tools.wanted.connect(self._want)
        self.tools.tried.connect(self.outcome.show_trial)
        self.tools.changed.connect(self._commands_changed)
        self.plan.placeRequested.connect(self.placeRequested)
        self._says = Label("", 12, "text2", wrap=True, select=True)
        self._says.setObjectName("recovery.says")
        self._says.setContentsMargins(px(14), px(5), px(14), px(6))
        self._says.hide()
        for table in (self.plan, self.files):
            table.rowChosen.connect(self._say_whole)
        self._lines = column(self._log_words, self.line, self._tail_words, self.tail, gap=0, margins=(14, 4, 14, 4))
        plan = QWidget()
        plan_box = QVBoxLayout(plan)
        plan_box.setContentsMargins(0, 0, 0, 0)
        plan_box.setSpacing(0)
        fill(plan_box, (self.plan, self.plan.strip))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        fill(box, (self.head, self._lines, Hairline(), splitter(False, (plan, 740), (self.outcome, 480)), self._says))
        box.setStretch(3, 1)
        self._show()

    def _release_choice(self) -> ChoiceField:
        """Choose the release whose start is planned: a button for each pushes the verdict off a narrow window."""
        choice = ChoiceField()
        choice.setObjectName("recovery.release")
        choice.setAccessibleName(tr("Release whose start is planned"))
        choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        choice.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        for index, name in enumerate(NEWEST_FIRST):
            title = of(name).title
            choice.addItem(title, name)
            choice.setItemData(
                index, tr("What a start of {release} would do", release=title), Qt.ItemDataRole.ToolTipRole
            )
        choice.activated.connect(lambda index: self._choose(choice.itemData(index)))
        return choice

    def set_session(self, session: StoreSession | None) -> None:
        """Another store, or none."""
        self._session = session
        self._job = recovery_of(session) if session is not None else None
        self.outcome.show_trial(None)
        if session is not None and self._job is not None:
            self._job.changed.connect(self._show)
            session.findingsChanged.connect(self._show)
            self.plan.copier = command_copier(self.plan, session.command_line)
        self._show()

    def ask(self) -> None:
        """Work the plan out now."""
        if self._job is not None:
            self._job.ask()

    def take_focus(self) -> None:
        """Give the focus to the plan, which is worked out now where there is none or an old one."""
        if self._job is not None and self._job.possible and (self._job.plan is None or self._job.stale):
            self._want()
        self.plan.setFocus()

    def ask_unasked(self) -> None:
        """Work the plan out where that is cheap; a large store waits for the button."""
        if self._job is not None and self._job.unasked:
            self._job.ask()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Saving the plan and trying it; with a copy that was recovered, once more and opening it."""
        commands: dict[str, Callable[[], object]] = {"recovery.preview": self.ask, **self.tools.commands()}
        if self.outcome.trial is not None:
            commands["recovery.open"] = self.outcome.open_copy
        return commands

    def _commands_changed(self) -> None:
        self.outcome.set_busy(self.tools.running)
        self.commandsChanged.emit()

    def _want(self) -> None:
        """A command waits for the plan."""
        if self._job is None:
            return
        if not self._job.possible:
            self.tools.told.emit(self._job.impossible)
        elif not self._job.running:
            self._job.ask()

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.plan.refresh_look()
        self.files.refresh_look()
        self.outcome.retheme()

    def _choose(self, like: Release) -> None:
        if self._job is not None:
            self._job.ask(like)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give small heights to the tables: the close-up of the tail goes first."""
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
        for shape, label in headline(plan, harmed=harmed) if plan is not None else ():
            layout.addWidget(Chip(shape, label))
        if lab and plan is not None:
            layout.addWidget(Chip("live", tr("open in the lab")))
        self.release.setVisible(job is None or job.possible)
        self.release.setEnabled(job is not None and job.possible and not job.running)
        self.release.setCurrentIndex(self.release.findData(job.like) if job is not None and job.like else -1)
        self._again.setVisible(job is not None and job.possible and not job.running and (plan is None or job.stale))
        self._lines.setVisible(plan is not None)
        rows = []
        if plan is not None and job is not None:
            rows = start_rows(plan, job.other, job.written, lab=lab) + plan_rows(plan, job.took, harmed=harmed)
        self.plan.set_rows(rows)
        files = len(self._session.snapshot.log.files) if self._session is not None else 0
        self.files.set_rows(fates(plan, files) if plan is not None else [])
        if job is None or job.possible:
            waits = State("empty", tr("File by file, once the plan is there."))
        else:
            waits = State("empty", tr("Without a plan there is nothing to show file by file."))
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

    def _say_whole(self, row: PlanRow | FateRow | None) -> None:
        """Show the full text of the chosen line below the table."""
        named = (row.what, row.value) if isinstance(row, PlanRow) else (row.name, row.fate) if row is not None else ()
        head = " ".join(part for part in named if part)
        parts = [part for part in (head, row.why if row is not None else "") if part]
        self._says.setText(tr("{what}: {why}", what=parts[0], why=parts[1]) if len(parts) > 1 else "")
        self._says.setVisible(len(parts) > 1)

    def _state(self, job: RecoveryJob | None) -> State | None:
        if job is None:
            return None
        if not job.possible:
            return State("unread" if self._session and self._session.snapshot.undecoded else "empty", job.impossible)
        if job.running:
            return State("loading", tr("Reading as recovery would …"))
        if job.error:
            return State("error", job.error, steps=((tr("Try again"), self.ask),))
        if job.plan is None:
            words = tr("Recovery reads the log from its start file on. Nothing is changed by the plan.")
            return State("empty", words, steps=((tr("Work it out"), self.ask),))
        if job.stale:
            words = tr("As of {time}. The store has grown since.", time=clock(round(job.at * 1000))[:8])
            return State("stale", words, steps=((tr("Look again"), self.ask),))
        refusal = self._session.snapshot.writing_refusal if self._session is not None else ""
        if refusal:
            return State("note", tr("Nothing can be tried on a copy: {why}", why=engine_words(refusal)))
        return None

    def _draw(self, plan: RecoveryPlan, files: int) -> None:
        log_min, log_max = plan.log_min, max(plan.log_max, plan.end_offset)
        broken = self._session.broken if self._session is not None else ()
        reach = max([log_max, *(broken_range.end for broken_range in broken if broken_range.kind == "missing")])
        start = min(max(plan.start_offset, log_min), plan.end_offset)
        parts = [
            start - log_min,
            plan.end_offset - start,
            log_max - plan.end_offset,
            reach - log_max,
            max(1, (log_max - log_min) // 50),
        ]
        widths = shares(parts)
        again_words = tr("read and dispatched again") if plan.units else tr("read again, kept")
        kinds = [
            ("keep", tr("stays as it is, not read")),
            ("again", again_words),
            ("drop", tr("goes")),
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
        ticks = [(0.0, number(log_min)), *scale, (1.0, number(reach))]
        bounds = [
            (log_min, start),
            (start, plan.end_offset),
            (plan.end_offset, log_max),
            (log_max, reach),
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
        self.line.setVisible(reach > log_min)
        many = tr("Commit log, {n:,} files", n=files) if files != 1 else tr("Commit log, 1 file")
        self._log_words.setText(many if files else tr("The log has no files."))
        self._draw_tail(plan, log_max)

    def _draw_tail(self, plan: RecoveryPlan, log_max: int) -> None:
        """Draw the part that goes, and as much again before it, to scale."""
        dropped = log_max - plan.end_offset
        self._has_tail = dropped > 0
        self._show_tail()
        if not self._has_tail:
            return
        kept_bytes = min(plan.end_offset - plan.log_min, dropped)
        self._tail_words.setText(tr("The last {size}", size=size(kept_bytes + dropped)))
        words = tr("{n:,} units go, {size}", n=plan.units_dropped, size=size(dropped))
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
        shown = self._has_tail and self.height() >= px(ROOM_FOR_TAIL)
        self.tail.setVisible(shown)
        self._tail_words.setVisible(shown)


class RecoveryCommands(QObject):
    """The two buttons. ``told(str)`` is a sentence for the status bar, ``wanted()`` asks for a plan where there is none
    yet, ``tried(Trial)`` has what came of recovery on a copy, ``changed()`` says that something else can be done now.
    """

    told = Signal(str)
    wanted = Signal()
    tried = Signal(object)
    changed = Signal()

    def __init__(self, panel: QWidget) -> None:
        super().__init__(panel)
        self._panel = panel
        self._session: StoreSession | None = None
        self._plan: RecoveryPlan | None = None
        self._wish: Callable[[], None] | None = None
        self.trial: Trial | None = None
        self.running = False
        self.save = Button(tr("Save plan…"))
        self.save.setObjectName("recovery.save")
        self.save.setAccessibleName(tr("Save plan…"))
        self.save.clicked.connect(self.ask_save)
        self.attempt = Button(tr("Try on a copy…"), "primary")
        self.attempt.setObjectName("recovery.try")
        self.attempt.setAccessibleName(tr("Try on a copy…"))
        self.attempt.setToolTip(
            tr("Copies what recovery needs into a new directory, recovers it there and compares it with the plan.")
        )
        self.attempt.clicked.connect(self.ask_copy)
        self._able()

    def show_plan(self, session: StoreSession | None, plan: RecoveryPlan | None) -> None:
        """Another plan, or none; what was asked for before there was one is asked now."""
        if session is not self._session:
            self._wish = self.trial = None
        self._session, self._plan = session, plan
        self._able()
        if plan is not None and self._wish is not None:
            wish, self._wish = self._wish, None
            wish()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands that can run now."""
        commands: dict[str, Callable[[], object]] = {"recovery.save": self.ask_save, "recovery.try": self.ask_copy}
        if self.trial is not None and not self.running:
            commands["recovery.again"] = self.again
        return commands

    @property
    def _refusal(self) -> str:
        """Why no copy of this store can be recovered here."""
        return engine_words(self._session.snapshot.writing_refusal) if self._session is not None else ""

    def _able(self) -> None:
        self.save.setVisible(self._plan is not None)
        self.attempt.setVisible(self._plan is not None and not self._refusal)
        self.attempt.setEnabled(self._plan is not None and self._plan.will_start and not self.running)

    def ask_save(self) -> None:
        """Ask where the plan shall be written."""
        if self._later(self.ask_save):
            return
        dialog = self._dialog(tr("Save the recovery plan"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter("JSON (*.json)")
        dialog.selectFile("recovery-plan.json")
        dialog.fileSelected.connect(lambda name: self.save_to(Path(name)))
        dialog.open()

    def ask_copy(self) -> None:
        """Ask where the copy shall be made; says why where a broker would not start."""
        if self.running or self._later(self.ask_copy):
            return
        if self._plan is not None and not self._plan.will_start:
            self.told.emit(tr("A broker would not start here: there is nothing to try."))
            return
        if self._refusal:
            self.told.emit(tr("Nothing can be tried on a copy: {why}", why=self._refusal))
            return
        session = self._session
        if session is not None:
            ask_target_folder(
                self._panel,
                "recovery.target",
                tr("Folder for the copy"),
                tr("Try on a copy"),
                "copy",
                session.path,
                session.jobs.read,
                self.try_in,
            )

    def _later(self, work: Callable[[], None]) -> bool:
        """Return whether ``work`` has to wait for a plan, which is then requested."""
        if self._plan is not None:
            return False
        self._wish = work
        self.wanted.emit()
        return True

    def _dialog(self, title: str) -> QFileDialog:
        dialog = QFileDialog(self._panel, title, str(Path.home()))
        dialog.setObjectName("recovery.dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    def save_to(self, target: Path) -> None:
        """Write the plan as one JSON record; not into the store."""
        session, plan = self._session, self._plan
        if session is None or plan is None:
            return
        job = recovery_of(session)
        other_start, written = job.other, job.written
        if in_store(session.path, target):
            self.told.emit(tr("Nothing is written into the store: choose another folder."))
            return
        session.jobs.read(
            lambda: save_plan(plan, other_start, written, target),
            lambda _none: self.told.emit(tr("Recovery plan written to {path}", path=str(target))),
            lambda error: self.told.emit(f"{target}: {error}"),
        )

    def try_in(self, target: Path) -> None:
        """Copy, recover and compare: a job that can be stopped."""
        session, plan = self._session, self._plan
        if session is None or plan is None or self.running:
            return
        path, config, copy = session.path, session.config, target.absolute()
        self._begin(session, lambda control: trial(control, path, config, plan, copy))

    def again(self) -> None:
        """Recover the copy once more, and hold it against how it stood."""
        session, tried = self._session, self.trial
        if session is None or tried is None or self.running:
            return
        config = session.config
        self._begin(session, lambda control: again(control, tried, config))

    def _begin(self, session: StoreSession, work: Callable[[Control], Trial]) -> None:
        self.running = True
        self._able()
        self.changed.emit()
        session.jobs.start(self._try(session, work))

    async def _try(self, session: StoreSession, work: Callable[[Control], Trial]) -> None:
        done: Trial | None = None
        try:
            done = await session.jobs.run(tr("Recovery on a copy"), work)
        except (Cancelled, asyncio.CancelledError):
            self.told.emit(tr("Stopped: nothing is left of the copy.") if self.trial is None else tr("Stopped."))
        except (StoreError, OSError) as error:
            self.told.emit(engine_words(str(error)))
        finally:
            self.running = False
            self._able()
            if done is not None and session is self._session:
                self.trial = done
                self.told.emit(
                    tr(
                        "Recovered in {path}: the log ends at {offset:,}.",
                        path=str(done.folder),
                        offset=done.end_offset,
                    )
                )
                self.tried.emit(done)
            self.changed.emit()


NAMES = {
    "endOffset": words("end of log"),
    "units": words("units"),
    "unitsDropped": words("units dropped"),
    "unitsDispatched": words("units dispatched again"),
    "logFiles": words("log files"),
    "logFilesDeleted": words("log files deleted"),
    "indexEntries": words("index entries"),
    "indexDeleted": words("index files deleted"),
    "indexKept": words("index files kept"),
}


class TriedRow(NamedTuple):
    """One figure: what was expected, what there is, and whether they are equal."""

    what: str
    planned: int
    done: int
    mark: str
    verdict: str


def tried_rows(trial: Trial) -> list[TriedRow]:
    """Every figure; what differs stands first."""
    rows = [_row(figure) for figure in trial.figures]
    return sorted(rows, key=lambda row: row.mark != "error")


def _row(figure: Figure) -> TriedRow:
    name = tr(NAMES[figure.name]) if figure.name in NAMES else figure.name.replace("/", " / ")
    if figure.equal:
        return TriedRow(name, figure.planned, figure.done, "ok", tr("equal"))
    return TriedRow(name, figure.planned, figure.done, "error", tr("differs"))


def tried_note(trial: Trial) -> str:
    """Return the folder, the duration, and whether everything is as expected."""
    wrong = sum(not figure.equal for figure in trial.figures)
    if wrong:
        result = tr("{n} of {all} figures differ", n=wrong, all=len(trial.figures))
    elif trial.round > 1:
        result = tr("a further recovery changed nothing: equal in all {n} figures", n=len(trial.figures))
    else:
        result = tr("equal in all {n} figures", n=len(trial.figures))
    return f"{result} · {span(round(trial.took * 1000))} · {trial.folder}"


def tried_chip(trial: Trial) -> tuple[str, str]:
    """Mark and words of the whole."""
    wrong = sum(not figure.equal for figure in trial.figures)
    if wrong:
        return "error", tr("{n} of {all} figures differ", n=wrong, all=len(trial.figures))
    return "ok", tr("nothing changed") if trial.round > 1 else tr("as planned")


def tried_kind() -> RecordKind:
    """The table that holds a deed against its plan."""
    return RecordKind(
        "tried",
        (
            text_column("what", words("Figure"), 170, elide="middle"),
            _figure("planned", words("Expected")),
            _figure("done", words("In the copy")),
            chip_column("verdict", words("Verdict"), 120, lambda row: ChipValue(row.mark, row.verdict)),
        ),
        verdict=lambda row: row.verdict,
        record=lambda row: {"what": row.what, "expected": row.planned, "done": row.done, "verdict": row.verdict},
    )


def _figure(key: str, title: str) -> Column:
    return Column(
        key, title, 120, lambda row: number(getattr(row, key)), lambda row: getattr(row, key), right=True, mono=True
    )


class Outcome(Paper):
    """The table of files as planned; with a trial a second one behind a tab. ``againAsked()`` recovers the copy once
    more, ``openAsked(Path)`` opens it.
    """

    againAsked = Signal()
    openAsked = Signal(object)

    def __init__(self, files: RecordView) -> None:
        super().__init__()
        self._files = files
        self.trial: Trial | None = None
        self._pages = QStackedWidget()
        self.table = RecordView("recovery.tried", tried_kind())
        self.table.setAccessibleName(tr("Plan against deed"))
        self.tabs = WordTabs(
            "recovery.outcome", (("plan", tr("What stays, what goes")), ("tried", tr("Plan against deed")))
        )
        self.tabs.chosen.connect(lambda key: self._pages.setCurrentIndex(int(key == "tried")))
        self.again = Button(tr("Recover again"), "pill")
        self.again.setObjectName("recovery.again")
        self.again.setToolTip(tr("Recovers the copy once more: a second recovery must change nothing"))
        self.again.clicked.connect(self.againAsked)
        self.open = Button(tr("Open the copy"), "pill")
        self.open.setObjectName("recovery.open")
        self.open.clicked.connect(self.open_copy)
        self._chip = ChipPart("ok", "")
        self._head = PaneHead("", "", self._chip, self.again, self.open)
        self._head.box.insertWidget(0, self.tabs)
        self._head.title.hide()
        self._head.hide()
        self._pages.addWidget(files)
        self._pages.addWidget(stacked(self.table, self.table.strip, room=0))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self._head)
        box.addWidget(self._pages, 1)

    def show_trial(self, trial: Trial | None) -> None:
        """Show the result of a trial; None for none."""
        self.trial = trial
        self._head.setVisible(trial is not None)
        if trial is None:
            self.table.set_rows([])
            self.tabs.choose("plan")
            return
        self.table.set_rows(tried_rows(trial))
        self._head.set_note(tried_note(trial))
        self._chip.set_chip(*tried_chip(trial))
        self.again.setEnabled(True)
        self.tabs.choose("tried")

    def set_busy(self, on: bool) -> None:
        """A recovery of the copy is under way."""
        self.again.setEnabled(not on and self.trial is not None)

    def open_copy(self) -> None:
        """Have the copy opened."""
        if self.trial is not None:
            self.openAsked.emit(Path(self.trial.folder))

    @property
    def in_front(self) -> RecordView:
        """The table that is seen."""
        return self.table if self.tabs.key == "tried" and self.trial is not None else self._files

    def retheme(self) -> None:
        """Colours, fonts or zoom changed."""
        self.table.refresh_look()
