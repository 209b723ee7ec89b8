"""Export of the log: a box asks which rows and in which form, the worker writes them, and the result is reported."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from engine.errors import StoreError
from viewer.log.log_model import LogModel
from viewer.log.row_scopes import RowScope, RowScopeBox, row_scopes
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.field_words import MASKS
from viewer.look.formats import size
from viewer.look.theme import px
from viewer.pane.exporting import ask_target
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession, in_store
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField, TickBox
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.log.export_work import ExportPlan, ExportResult


WORK = "viewer.log.export_work:export"


class LogExport(QObject):
    """The export of one table of units. ``over`` is the widget that the dialog is shown over.

    Emits ``statusText(text)`` for the status bar, and ``operationDone`` as a pane does.
    """

    statusText = Signal(str)
    operationDone = Signal(str, str, object, str)

    def __init__(self, model: LogModel, table: RecordView, over: QWidget) -> None:
        super().__init__(table)
        self._model, self._table, self._over = model, table, over
        self.session: StoreSession | None = None

    def commands(self) -> dict[str, Callable[[], object]]:
        """The one command."""
        return {"export.table": self.ask}

    def ask(self) -> ExportBox | None:
        """The dialog."""
        if self.session is None:
            return None
        scopes = [*row_scopes(self._model, self._table), RowScope("all", tr("The whole log"))]
        chosen_scope = "span" if self._span() else "filter" if self._model.filter.text else "all"
        box = ExportBox(scopes, chosen_scope, Path.home(), self._over)
        box.exportRequested.connect(self.begin)
        box.open()
        return box

    def begin(self, choice: Choice) -> None:
        """Write the chosen rows, as a job that is shown and can be stopped."""
        session = self.session
        if session is None or self._model.log is None:
            return
        if in_store(session.path, choice.target):
            self.statusText.emit(tr("Nothing is written into the store: choose another folder."))
            return
        session.jobs.start(self._work(choice, self.plan(choice)))

    def plan(self, choice: Choice) -> ExportPlan:
        """The choice with its rows."""
        offsets, where = self._model.to_export(choice.scope, self._table.current_row(), self._span())
        from engine.rules.masking import Masking
        from viewer.log.export_work import ExportPlan

        masking = Masking.of(",".join(choice.masked))
        if choice.visible_properties:
            masking = masking.except_for(choice.visible_properties)
        return ExportPlan(choice.target, choice.form, where, offsets, choice.body, masking)

    def _span(self) -> tuple[int, int] | None:
        """Offsets of the first and the last selected row; None if one row is selected."""
        return self._model.chosen_span(self._table.chosen_span())

    async def _work(self, choice: Choice, plan: ExportPlan) -> None:
        session, (start, end) = self.session, self._model.span
        assert session is not None
        try:
            done: ExportResult = await session.jobs.in_worker(
                tr("Exporting {name}", name=plan.target.name),
                WORK,
                session.path,
                session.config,
                plan,
                time.time_ns() // 1_000_000,
                start,
                end,
            )
        except (Cancelled, asyncio.CancelledError):
            self.statusText.emit(tr("The export was stopped; no file was written."))
            return
        except (StoreError, OSError, RuntimeError) as error:
            self.statusText.emit(f"{plan.target}: {engine_words(getattr(error, 'strerror', None) or str(error))}")
            return
        self.statusText.emit(self.result_text(done, plan))
        self._note(choice, plan, done)

    def result_text(self, done: ExportResult, plan: ExportPlan) -> str:
        """``1,204 units written to … · scanned 38.0 GiB · complete · 3 cells cut``."""
        parts = [
            tr_plural("{n:,} row written to {path}", "{n:,} rows written to {path}", n=done.rows, path=str(plan.target))
        ]
        if plan.offsets is None:
            parts.append(tr("{size} of log read", size=size(done.looked)))
            edge = self.session.unread.edge if self.session is not None else tr("complete")
            parts.append(edge if done.complete else tr("not complete: {reason}", reason=done.reason))
        if done.odd:
            parts.append(tr("with blanks and spans of damage: {n:,}", n=done.odd))
        if done.cut:
            parts.append(tr_plural("{n:,} cell was cut", "{n:,} cells were cut", n=done.cut))
        ignored = len(self._model.markings.ignored)
        if ignored:
            parts.append(tr_plural("{n:,} ignored row left out", "{n:,} ignored rows left out", n=ignored))
        return " · ".join(parts)

    def _note(self, choice: Choice, plan: ExportPlan, done: ExportResult) -> None:
        """For the operation log, with the command that gives the same rows."""
        session = self.session
        command = ["storescope", "units", "STORE", "--json", *(["--where", plan.where] if plan.where else [])]
        if plan.offsets is not None:
            rows = ", ".join(map(str, plan.offsets))
            command = ["storescope", "units", "STORE", "--json", "--where", f"physicalOffset in ({rows})"]
        masked = ",".join(plan.masking.parts)
        if masked:
            command += ["--mask", masked]
        if plan.masking.kept:
            command += ["--keep-properties", ",".join(sorted(plan.masking.kept))]
        parameters = {
            "rows": choice.scope,
            "form": plan.form,
            "file": str(plan.target),
            "where": plan.where,
            "masked": masked,
            "written": done.rows,
        }
        line = session.command_line(command) if session is not None else shlex.join(command)
        equal = f"{line} > {shlex.quote(str(plan.target))}" if plan.form == "jsonl" else ""
        self.operationDone.emit("export.table", tr("Export the table…"), parameters, equal)


FORMS = (
    ("jsonl", words("JSON lines: every field"), "jsonl"),
    ("csv", words("CSV: one line a unit"), "csv"),
    ("markdown", words("Markdown table: long cells are cut"), "md"),
    ("raw", words("Raw: the units' bytes, one after the other"), "bin"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The choices made in the export box."""

    scope: str
    form: str
    target: Path
    body: bool
    masked: tuple[str, ...]
    """Words of ``--mask``."""
    visible_properties: tuple[str, ...] = ()
    """Names of user properties that are kept when ``properties`` are masked."""


class ExportBox(RowScopeBox):
    """``exportRequested(choice)`` when it is to be done."""

    exportRequested = Signal(object)

    def __init__(
        self, scopes: Sequence[RowScope], chosen_scope: str, folder: Path, parent: QWidget | None = None
    ) -> None:
        super().__init__("export", tr("Export units of the log"), scopes, chosen_scope, parent)
        self._folder, self._touched = folder, False
        self.form = ChoiceField()
        self.form.setObjectName("export.form")
        self.form.setAccessibleName(tr("Form"))
        for key, text, _suffix in FORMS:
            self.form.addItem(tr(text), key)
        self.body = _tick("export.body", tr("with bodies, as stored (base64)"))
        self.masks = {part: _tick(f"export.mask.{part}", tr(text)) for part, text in MASKS.items()}
        self.keep = Field(tr("Properties to keep, separated by commas"), code=True)
        self.keep.setObjectName("export.keep")
        self.path = Field(tr("File"), code=True)
        self.path.setObjectName("export.path")
        self.note = Label("", 12, "text3", wrap=True)
        self._lay_out()
        self._formed()

    def _lay_out(self) -> None:
        browse, cancel, go = Button(tr("Choose…")), Button(tr("Cancel")), Button(tr("Export"), "primary")
        actions = {
            "browse": (browse, lambda: ask_target(self, self.path.text(), self._chosen)),
            "cancel": (cancel, self.reject),
            "go": (go, self._go),
        }
        self.form.currentIndexChanged.connect(lambda _n: self._formed())
        self.path.textEdited.connect(lambda _text: setattr(self, "_touched", True))
        layout = self.begin_layout(560, 400, actions)
        layout.addSpacing(px(4))
        layout.addWidget(row(Label(tr("Form"), 13, "text", 600), self.form, self.body, None))
        first_masks, further_masks = list(self.masks.values())[:4], list(self.masks.values())[4:]
        layout.addWidget(row(Label(tr("Masked"), 13, "text", 600), *first_masks, None))
        layout.addWidget(row(*further_masks, self.keep))
        self.masks["properties"].toggled.connect(lambda _on: self._formed())
        layout.addWidget(row(self.path, browse))
        layout.addWidget(self.note)
        layout.addStretch(1)
        layout.addWidget(row(None, cancel, go))

    def _formed(self) -> None:
        """Follow the chosen format: set the file's suffix and the permitted contents."""
        key, _text, suffix = FORMS[self.form.currentIndex()]
        if not self._touched:
            self.path.setText(str(self._folder / f"units.{suffix}"))
        self.body.setEnabled(key != "raw")
        for tick in self.masks.values():
            tick.setEnabled(key != "raw")
        self.keep.setEnabled(key != "raw" and self.masks["properties"].isChecked())
        notes = {
            "jsonl": tr(
                "As storescope units --json prints them; blanks and damage are lines too where all is written."
            ),
            "csv": tr("Units only: blanks and damage are left out."),
            "markdown": tr("Units only. Cells of more than 80 characters are cut; the number of these is shown."),
            "raw": tr("Nothing is masked: these are the bytes of the store."),
        }
        self.note.setText(notes[key])

    def _chosen(self, path: str) -> None:
        self._touched = True
        self.path.setText(path)

    @property
    def choice(self) -> Choice:
        """Return the present choices."""
        key = FORMS[self.form.currentIndex()][0]
        plain = key == "raw"
        return Choice(
            self.chosen_scope("all"),
            key,
            Path(self.path.text()).expanduser(),
            self.body.isChecked() and not plain,
            () if plain else tuple(part for part, tick in self.masks.items() if tick.isChecked()),
            tuple(filter(None, map(str.strip, self.keep.text().split(",")))) if self.keep.isEnabled() else (),
        )

    def _go(self) -> None:
        if self.path.text().strip():
            self.exportRequested.emit(self.choice)
            self.accept()


def _tick(name: str, text: str) -> QCheckBox:
    box = TickBox(text)
    box.setObjectName(name)
    box.setAccessibleName(text)
    return box
