"""The window of what can be mended: the repairs with their gains and costs, the store as it is and as patched, and the
list of patches.

The whole main window can show the store as patched. What is taken is written into a copy, saved as a list of patches,
or, after a question, made in the store itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QDialog, QSizePolicy, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.patching.patches import BadPatch
from viewer.findings.repair_model import (
    PatchRow,
    RepairModel,
    TogglePatch,
    compared_kind,
    compared_rows,
    loss_headline,
    patch_kind,
    patch_text,
    repair_lines,
)
from viewer.findings.repair_writer import RepairWriter
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import plain
from viewer.look.theme import px, ui
from viewer.pane.edit_box import ask_edit, edit_menu
from viewer.runtime.command_line import STORE
from viewer.runtime.jobs import Cancelled
from viewer.widgets.basics import Button, ElidedLine, Hairline, Label, PaneHead, Progress, StatusMark, ToolButton
from viewer.widgets.boxes import column, empty, row, scrolling, splitter
from viewer.widgets.choices import TickBox
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.patching.patches import Patch
    from engine.repair.repair import Repair
    from engine.repair.repair_plan import RepairPlan
    from engine.repair.repair_plan import State as StoreState
    from viewer.runtime.jobs import Job
    from viewer.runtime.store_session import StoreSession

PLANNING = words("Working out what can be mended")
JUDGING = words("Checking the store as patched")


class RepairBox(QDialog):
    """Window of the repairs of one store. It stays open beside the store's window, which shows the places of patches.

    :meth:`begin` works out what is missing; ``say`` shows a sentence in the status bar.
    """

    placeRequested = Signal(object)
    """A place to show in the store's window."""
    dockRequested = Signal(bool)
    """Ask for a place among the views of the window, or for a window of its own."""

    def __init__(self, parent: QWidget, session: StoreSession, say: Callable[[str], object]) -> None:
        super().__init__(parent)
        self.session, self._say = session, say
        self._closed = self._is_docked = False
        self.outcome = ""
        """The result of the last change of the store itself."""
        self.model = RepairModel(session.bench)
        self.writer = RepairWriter(self, session, self.model, say)
        self.writer.changed.connect(self._show)
        self.writer.told.connect(self._note_result)
        self.writer.storeChanged.connect(self._store_changed)
        self.setObjectName("repair.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("What can be mended"))
        self.setAccessibleName(tr("What can be mended"))
        self.resize(px(1200), px(660))
        self.finished.connect(lambda _result: self._on_finished())
        session.jobs.changed.connect(self._progressed)
        session.closing.connect(self.close)
        session.benchChanged.connect(self._bench_changed)
        session.replaced.connect(self._show)
        self._make_lists()
        self._make_buttons()
        self._make_shortcuts()
        self._lay_out()
        self._show()
        self.close_button.setFocus()

    def _make_lists(self) -> None:
        """Make the parts that show repairs, the compared stores and patches, and the sentence below them."""
        self.ticks: list[TickBox] = []
        self._repairs = column(gap=4, margins=(10, 8, 10, 8))
        self.compared = RecordView("repair.compared", compared_kind())
        self.compared.setAccessibleName(tr("The store as it is and as patched"))
        self.patches = RecordView("repair.patches", patch_kind())
        self.patches.setAccessibleName(tr("Patches"))
        self.patches.placeRequested.connect(self._followed)
        self.patches.rowChosen.connect(self._show_detail)
        self.detail = Label("", 12, "text2", wrap=True, select=True)
        self.detail.setObjectName("repair.detail")
        self.detail.setContentsMargins(px(12), px(4), px(12), px(4))
        self.note = Label("", 12, "text2", wrap=True, select=True)
        self.note.setObjectName("repair.note")
        self.mark = StatusMark("")
        self.progress = Progress(160)
        self.command = ElidedLine("", 12, "text2", code=True)
        self.command.setObjectName("repair.command")
        self.command.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def _make_buttons(self) -> None:
        bench, writer = self.session.bench, self.writer
        self.undo_step, self.redo_step = ToolButton("undo", tr("Undo")), ToolButton("redo", tr("Redo"))
        self.add_patch = Button(tr("Add a patch…"))
        self.add_patch.setMenu(edit_menu(self, self.ask_edit))
        self.open_file, self.save = Button(tr("Open patches…")), Button(tr("Save patches…"))
        self.as_patched = Button(tr("Show the store as patched"))
        self.as_patched.setToolTip(tr("All views then show the store as the taken patches would leave it."))
        self.stop, self.again = Button(tr("Stop")), Button(tr("Try again"))
        self.copy_command = Button(tr("Copy the command"))
        self.copy_command.setToolTip(tr("It mends the store itself, after a question, and keeps what it changes."))
        self.undo_change, self.apply = Button(tr("Undo a change…")), Button(tr("Apply…"), "danger")
        self.undo_change.setToolTip(tr("Restores what Apply… or a command changed in this store, from its backup."))
        self.apply.setToolTip(tr("Mends the store itself, after a question. What it changes is saved beside it."))
        self.dock = Button(tr("Show below the views"))
        self.dock.setToolTip(tr("The patches then stay in sight beside every view."))
        self.write, self.close_button = Button(tr("Save mended copy…"), "primary"), Button(tr("Close"))
        buttons: tuple[tuple[QAbstractButton, str, Callable[[], object]], ...] = (
            (self.undo_step, "undoStep", bench.undo),
            (self.redo_step, "redoStep", bench.redo),
            (self.open_file, "open", writer.ask_open),
            (self.save, "save", writer.ask_save),
            (self.as_patched, "asPatched", self.toggle_look),
            (self.stop, "stop", self.cancel),
            (self.again, "again", self._try_again),
            (self.copy_command, "copyCommand", lambda: QGuiApplication.clipboard().setText(self._command_line())),
            (self.undo_change, "undo", writer.ask_undo),
            (self.dock, "dock", lambda: self.dockRequested.emit(not self._is_docked)),
            (self.apply, "apply", writer.ask_apply),
            (self.write, "write", writer.ask_copy),
            (self.close_button, "close", self.reject),
        )
        self.add_patch.setObjectName("repair.add")
        for button, name, work in buttons:
            button.setObjectName(f"repair.{name}")
            button.clicked.connect(lambda _checked=False, work=work: work())

    def _make_shortcuts(self) -> None:
        bench = self.session.bench
        self._own_keys = [
            QShortcut(keys, self, work)
            for keys, work in (
                (QKeySequence(QKeySequence.StandardKey.Undo), bench.undo),
                (QKeySequence("Ctrl+Shift+Z"), bench.redo),
                (QKeySequence("Ctrl+Y"), bench.redo),
            )
        ]
        for key, action in ((Qt.Key.Key_Space, self._toggle_current), (Qt.Key.Key_Delete, self._drop_current)):
            QShortcut(QKeySequence(key), self.patches, action).setContext(Qt.ShortcutContext.WidgetShortcut)

    def _lay_out(self) -> None:
        self.compared_head = PaneHead(tr("As it is · as patched"), "", self.as_patched)
        tools = (self.undo_step, self.redo_step, self.add_patch, self.open_file, self.save)
        self.patches_head = PaneHead(tr("Patches"), "", *tools)
        compared = column(self.compared_head, self.compared, gap=0)
        compared.box.setStretch(1, 1)
        patches = column(self.patches_head, self.patches, self.detail, gap=0)
        patches.box.setStretch(1, 1)
        self._repairs_area = scrolling(self._repairs)
        self._upper = splitter(False, (self._repairs_area, 440), (compared, 720))
        self._parts = splitter(True, (self._upper, 280), (patches, 220))
        self._parts_end = Hairline()
        intro = tr("Nothing is changed yet. Take or leave each repair; then save a mended copy, or apply it here.")
        self._intro = Label(intro, 12, "text2", wrap=True)
        self.filler = QWidget()
        self._note_row = row(self.mark, self.note, self.progress, self.stop, self.again)
        self._note_row.box.setStretch(1, 1)
        self._command_row = row(self.command, self.copy_command)
        self._command_row.box.setStretch(0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        layout.addWidget(self._intro)
        layout.addWidget(self._parts, 1)
        layout.addWidget(self._parts_end)
        layout.addWidget(self._note_row)
        layout.addWidget(self.filler, 1)
        layout.addWidget(self._command_row)
        layout.addWidget(row(self.undo_change, self.dock, None, self.apply, self.write, self.close_button))

    def set_docked(self, is_docked: bool) -> None:
        """Arrange the parts for a panel, which is wide and low, or for a window of its own."""
        self._is_docked = is_docked
        self.dock.setText(tr("In a window of its own") if is_docked else tr("Show below the views"))
        self._parts.setOrientation(Qt.Orientation.Horizontal if is_docked else Qt.Orientation.Vertical)
        self._parts.setSizes([600, 600] if is_docked else [280, 220])
        self._upper.setSizes([320, 320] if is_docked else [440, 720])
        for shortcut in self._own_keys:  # in the window its own commands have these keys
            shortcut.setEnabled(not is_docked)
        layout = self.layout()
        assert layout is not None
        layout.setContentsMargins(*((px(8), px(4), px(8), px(6)) if is_docked else (px(16), px(14), px(16), px(12))))
        self._show()

    # ---- working out -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Work out the plan of what is chosen, and what the taken patches do, as far as it is not known yet."""
        store = self.session.snapshot
        if store.kind != "store":
            self.model.error = tr("Only a whole store can be mended; this is a part of one.")
        elif store.writing_refusal:
            self.model.error = tr("Nothing can be mended here: {why}", why=engine_words(store.writing_refusal))
        names = self.model.begin()
        patches = self.model.begin_judging()
        if names is not None:
            self.session.jobs.start(self._plan(names))
        elif patches is not None:
            self.session.jobs.start(self._judge(patches))
        self._show()

    async def _plan(self, names: tuple[str, ...]) -> None:
        session = self.session
        plan: RepairPlan | None = None
        error_words = tr("Stopped.")
        try:
            plan = await session.jobs.in_worker(
                tr(PLANNING), "viewer.findings.repair_work:plan", session.path, session.config, names, as_it_is=True
            )
        except Cancelled:
            pass
        except (StoreError, OSError, RuntimeError) as error:
            error_words = engine_words(str(error))
        finally:
            is_first = self.model.offered is None
            self.model.end(plan, error_words)
        if self._closed:
            return
        if self.model.offered is not None and is_first:
            self._show_repairs(self.model.offered)
        self.begin()

    async def _judge(self, patches: tuple[Patch, ...]) -> None:
        session = self.session
        state: StoreState | None = None
        error_words, is_misfit = tr("Stopped."), False
        try:
            state = await session.jobs.in_worker(
                tr(JUDGING), "viewer.findings.repair_work:judge", session.path, session.config, patches, as_it_is=True
            )
        except Cancelled:
            pass
        except (StoreError, OSError, RuntimeError) as error:
            error_words, is_misfit = engine_words(str(error)), isinstance(error, BadPatch)
        finally:
            self.model.end_judging(state, error_words, is_misfit=is_misfit)
        if not self._closed:
            self.begin()

    def _bench_changed(self) -> None:
        """Show what is staged now, and work out what it does."""
        if self._closed:
            return
        self.outcome = ""
        self.model.error = ""
        for tick in self.ticks:
            tick.blockSignals(True)
            tick.setChecked(tick.property("repair") not in self.session.bench.state.left_repairs)
            tick.blockSignals(False)
        if self.model.is_stale:
            self.cancel()
        self.begin()

    def _try_again(self) -> None:
        self.model.error = ""
        self.begin()

    def _followed(self, target: object) -> None:
        """Take or leave a patch, or show the place of one."""
        if isinstance(target, TogglePatch):
            patch_row = self.model.rows()[target.n - 1]
            self.model.take_patch(target.n, is_taken=not patch_row.is_taken)
        else:
            self.placeRequested.emit(target)

    def _toggle_current(self) -> None:
        patch_row = self.patches.current_row()
        if patch_row is not None:
            self._followed(TogglePatch(patch_row.n))

    def _drop_current(self) -> None:
        """Remove the chosen patch from the list if it is the user's; leave it out if it belongs to a repair."""
        patch_row = self.patches.current_row()
        if patch_row is None:
            return
        if patch_row.repair is None and patch_row.patch in self.session.bench.edits:
            self.session.bench.drop(patch_row.patch, tr("remove {what}", what=tr("patch {n}", n=patch_row.n)))
        elif patch_row.is_taken:
            self._followed(TogglePatch(patch_row.n))

    def ask_edit(self, kind: str) -> None:
        """Ask for a change by hand."""
        ask_edit(self, self.session, kind, say=self._tell)

    def cancel(self) -> None:
        """Stop what runs."""
        job = self._job()
        if job is not None:
            job.cancel()

    def _job(self) -> Job | None:
        working = PLANNING if self.model.running is not None else JUDGING if self.model.judging is not None else ""
        title = self.writer.writing or working
        return next((job for job in self.session.jobs.list if title and job.title == tr(title)), None)

    def _progressed(self) -> None:
        job = None if self._closed else self._job()
        if job is not None:
            self.progress.set_part(job.part)

    def _on_finished(self) -> None:
        self.cancel()
        self._closed = self.writer.is_closed = True

    # ---- the look as patched -----------------------------------------------------------------------------------------

    def toggle_look(self) -> None:
        """Show the store in all views as the taken patches would leave it; if it is shown so, as it is."""
        taken_patches = self.model.taken_patches
        patches = () if taken_patches == self.session.patches else taken_patches
        self.session.jobs.start(self._look(patches))

    async def _look(self, patches: tuple[Patch, ...]) -> None:
        try:
            await self.session.read_anew(patches)
        except (StoreError, OSError) as error:
            self._tell(engine_words(str(error)))

    # ---- what was written --------------------------------------------------------------------------------------------

    def _store_changed(self, result: str) -> None:
        """Work out what can be mended in the changed store."""
        if not self._closed:
            self.cancel()
            self.model.forget()
            self.session.bench.forget()
            self.outcome = result
            self._show()

    def _note_result(self, text: str) -> None:
        if not self._closed:
            self.note.setText(text)
            self._note_row.show()

    def _tell(self, text: str) -> None:
        self._say(text)
        self._note_result(text)

    def _command_line(self) -> str:
        return self.session.command_line(self.model.command(STORE))

    # ---- showing -----------------------------------------------------------------------------------------------------

    def retheme(self) -> None:
        """Apply changed colours, fonts or zoom."""
        self.compared.refresh_look()
        self.patches.refresh_look()

    def _show_repairs(self, repairs: tuple[Repair, ...]) -> None:
        """Show the offered repairs, each with a box to take or leave it."""
        layout = self._repairs.box
        empty(layout)
        self.ticks = []
        for repair in repairs:
            tick = TickBox(plain(engine_words(repair.title)))
            tick.setObjectName(f"repair.take.{repair.name}")
            tick.setProperty("repair", repair.name)
            tick.setFont(ui(13, 600))
            tick.setChecked(repair.name not in self.session.bench.state.left_repairs)
            tick.toggled.connect(lambda is_taken, name=repair.name: self.model.take(name, is_taken=is_taken))
            self.ticks.append(tick)
            lines = [Label(text, 12, role, wrap=True, select=True) for role, text in repair_lines(repair)]
            layout.addWidget(tick)
            layout.addWidget(column(*lines, gap=2, margins=(24, 0, 0, 10)))
        left = self.model.left_lines()
        if left:
            layout.addWidget(Label(tr("Not mended"), 13, "text", 600))
            lines = [Label(text, 12, "text2", wrap=True, select=True) for text in left]
            layout.addWidget(column(*lines, gap=4, margins=(24, 0, 0, 10)))
        layout.addStretch(1)

    def _show(self) -> None:
        if self._closed:
            return
        model, bench = self.model, self.session.bench
        is_working = model.running is not None or model.judging is not None
        has_parts = model.offered is not None or bool(bench.edits)
        self._parts.setVisible(has_parts)
        self._parts_end.setVisible(has_parts)
        self._intro.setVisible(has_parts and not self.outcome and not self._is_docked)
        self.filler.setVisible(not has_parts)
        self._repairs_area.setVisible(bool(model.offered or model.left_lines()))
        self._show_compared()
        self._show_patches()
        self.note.setText(self._note())
        self.mark.set_kind(self._mark())
        busy = is_working or bool(self.writer.writing)
        self.progress.setVisible(busy)
        self.progress.set_part(None)
        self.stop.setVisible(busy)
        self.again.setVisible(bool(model.error) and not busy and self.session.snapshot.kind == "store")
        can_write = bool(model.taken_patches) and model.is_planned and not model.misfit and not self.writer.writing
        if self.writer.writing and self.focusWidget() in {self.apply, self.undo_change}:
            self.close_button.setFocus()  # or Qt moves the focus on from a button that is disabled
        for button in (self.save, self.write, self.apply):
            button.setEnabled(can_write)
        self.undo_change.setEnabled(not self.writer.writing and self.session.snapshot.kind == "store")
        command = model.command(STORE) if model.taken_patches else []
        for part in (self.command, self.copy_command):
            part.setVisible(bool(command))
        self._command_row.setVisible(bool(command) and not self._is_docked)
        self._note_row.setVisible(bool(self.note.text()) or busy or not self._is_docked)
        self.command.setText(self.session.command_line(command) if command else "")

    def _show_compared(self) -> None:
        model = self.model
        current, patched = model.current, model.patched
        self.compared.set_rows(compared_rows(current, patched) if current is not None else [])
        is_working = model.running is not None or model.judging is not None
        waits = (
            State("loading", tr("Working out what is chosen …")) if is_working else State("hint", tr("No plan yet."))
        )
        self.compared.set_state(None if current is not None else waits)
        self.compared_head.set_note(
            loss_headline(current, patched if model.taken_patches else None) if current is not None else ""
        )
        shown = self.session.patches
        is_shown = bool(shown) and shown == model.taken_patches
        self.as_patched.setText(tr("Show the store as it is") if is_shown else tr("Show the store as patched"))
        self.as_patched.setEnabled(
            (is_shown or (bool(model.taken_patches) and not model.misfit)) and not self.writer.writing
        )

    def _show_patches(self) -> None:
        model, bench = self.model, self.session.bench
        rows, chosen = model.rows(), self.patches.current_row()
        self.patches.set_rows(rows)
        if chosen is not None and chosen.n <= len(rows):
            self.patches.go_to(chosen.n - 1)
        else:
            self._show_detail(None)
        waits = State("hint", tr("No patch yet."))
        if model.running is not None:
            waits = State("loading", tr("Working out what is chosen …"))
        elif model.offered and not model.chosen:
            waits = State("hint", tr("No repair is chosen."))
        self.patches.set_state(None if rows else waits)
        count = len(model.taken_patches)
        self.patches_head.set_note(
            tr_plural("{taken:,} of {n:,} patch taken", "{taken:,} of {n:,} patches taken", n=len(rows), taken=count)
            if rows
            else ""
        )
        self.undo_step.setEnabled(bool(bench.undo_title))
        self.redo_step.setEnabled(bool(bench.redo_title))
        self.undo_step.setToolTip(tr("Undo: {what}   Ctrl+Z", what=bench.undo_title or tr("nothing")))
        self.redo_step.setToolTip(tr("Redo: {what}   Ctrl+Shift+Z", what=bench.redo_title or tr("nothing")))

    def _show_detail(self, chosen: PatchRow | None) -> None:
        self.detail.setText(patch_text(chosen) if chosen is not None else "")
        self.detail.setVisible(chosen is not None)

    def _mark(self) -> str:
        """Return the mark before the sentence: an error, what was done, or none."""
        model = self.model
        if self.writer.writing or model.running is not None or model.judging is not None:
            return ""
        return "error" if model.error or model.misfit else "ok" if self.outcome else ""

    def _note(self) -> str:
        """Return the sentence on what runs, what failed, or what does not fit."""
        model = self.model
        if self.writer.writing:
            return f"{tr(self.writer.writing)} …"
        if model.running is not None:
            return tr("Working out what can be mended …")
        if model.judging is not None:
            return f"{tr(JUDGING)} …"
        if model.error:
            return model.error
        if model.misfit:
            return tr("These patches do not fit together: {why}", why=model.misfit)
        if model.offered is None:
            return ""
        if self.outcome:
            return self.outcome
        if not model.offered and not self.session.bench.edits:
            return tr("Nothing that check finds here can be mended.")
        unfit = [plain(engine_words(repair.title)) for repair in model.offered or () if not model.fits(repair)]
        if unfit:
            return tr("Without the others this changes nothing: {titles}", titles=", ".join(dict.fromkeys(unfit)))
        return ""
