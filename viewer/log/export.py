"""Exporting the log: asks which rows and how, has the worker write them, and says what was written and what was not."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.errors import StoreError
from viewer.log.log_model import LogModel
from viewer.look.assets import tr
from viewer.look.formats import size
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.log.export_box import Choice, ExportBox
    from viewer.log.export_work import Exported, Plan

WORK = "viewer.log.export_work:export"


class LogExport(QObject):
    """The export of one table of units: ``told(sentence)``, ``did`` as a pane's. The dialog stands over ``over``."""

    told = Signal(str)
    did = Signal(str, str, object, str)

    def __init__(self, model: LogModel, table: RecordView, over: QWidget) -> None:
        super().__init__(table)
        self._model, self._table, self._over = model, table, over
        self.session: StoreSession | None = None

    def commands(self) -> dict[str, Callable[[], object]]:
        """The one command."""
        return {"export.table": self.ask}

    def ask(self) -> ExportBox | None:
        """The dialog."""
        from viewer.log.export_box import ExportBox, Scope

        if self.session is None:
            return None
        text, marked, row = self._model.filter.text, len(self._model.dress.marked), self._table.current_row()
        span, chosen = self._span(), []
        if span is not None:
            chosen.append(Scope("span", tr("The chosen rows, {first:,} to {last:,}", first=span[0], last=span[1])))
        scopes = (
            Scope("row", tr("The chosen row"), row is not None and span is None),
            *chosen,
            Scope("marked", tr("Marked rows: {n:,}", n=marked), bool(marked)),
            Scope("filter", tr("All rows of the filter: {text}", text=text or tr("none")), bool(text)),
            Scope("all", tr("The whole log")),
        )
        box = ExportBox(scopes, "span" if span else "filter" if text else "all", Path.home(), self._over)
        box.wanted.connect(self.begin)
        box.open()
        return box

    def begin(self, choice: Choice) -> None:
        """Write what was chosen, as a job that is shown and can be stopped."""
        session = self.session
        if session is None or self._model.log is None:
            return
        store = session.path.resolve()
        if choice.target.resolve().is_relative_to(store if store.is_dir() else store.parent):
            self.told.emit(tr("Nothing is written into the store: choose another folder."))
            return
        session.jobs.start(self._work(choice, self.plan(choice)))

    def plan(self, choice: Choice) -> Plan:
        """The choice with its rows."""
        offsets, where = self._model.to_export(choice.scope, self._table.current_row(), self._span())
        from engine.rules.masking import Masking
        from viewer.log.export_work import Plan

        masking = Masking.of(",".join(choice.masked))
        if choice.kept:
            masking = masking.keeping(choice.kept)
        return Plan(choice.target, choice.form, where, offsets, choice.body, masking)

    def _span(self) -> tuple[int, int] | None:
        """Offsets of the first and the last chosen row; None where it is one row."""
        return self._model.chosen_span(self._table.chosen_span())

    async def _work(self, choice: Choice, plan: Plan) -> None:
        session, (start, end) = self.session, self._model.span
        assert session is not None
        try:
            done: Exported = await session.jobs.in_worker(
                tr("Exporting {name}", name=plan.target.name), WORK, session.path, session.config, plan,
                time.time_ns() // 1_000_000, start, end,
            )  # fmt: skip
        except (Cancelled, asyncio.CancelledError):
            self.told.emit(tr("The export was stopped; no file was written."))
            return
        except (StoreError, OSError, RuntimeError) as error:
            self.told.emit(f"{plan.target}: {getattr(error, 'strerror', None) or error}")
            return
        self.told.emit(self.said(done, plan))
        self._note(choice, plan, done)

    def said(self, done: Exported, plan: Plan) -> str:
        """``1,204 units written to … · scanned 38.0 GiB · complete · 3 cells cut``."""
        parts = [tr("{count:,} rows written to {path}", count=done.rows, path=str(plan.target))]
        if plan.offsets is None:
            parts.append(tr("{size} of log read", size=size(done.looked)))
            edge = self.session.unread.edge if self.session is not None else tr("complete")
            parts.append(edge if done.complete else tr("not complete: {reason}", reason=done.reason))
        if done.odd:
            parts.append(tr("with blanks and spans of damage: {n:,}", n=done.odd))
        if done.cut:
            parts.append(tr("{n:,} cells were cut", n=done.cut))
        ignored = len(self._model.dress.ignored)
        if ignored:
            parts.append(tr("{n:,} ignored rows left out", n=ignored))
        return " · ".join(parts)

    def _note(self, choice: Choice, plan: Plan, done: Exported) -> None:
        """For the operation log, with the command that gives the same rows."""
        session = self.session
        path = str(session.path) if session is not None else "STORE"
        command = ["storescope", "units", path, "--json", *(["--where", plan.where] if plan.where else [])]
        if plan.offsets is not None:
            rows = ", ".join(map(str, plan.offsets))
            command = ["storescope", "units", path, "--json", "--where", f"physicalOffset in ({rows})"]
        masked = ",".join(plan.masking.parts)
        if masked:
            command += ["--mask", masked]
        if plan.masking.kept:
            command += ["--keep-properties", ",".join(sorted(plan.masking.kept))]
        parameters = {"rows": choice.scope, "form": plan.form, "file": str(plan.target), "where": plan.where,
                      "masked": masked, "written": done.rows}  # fmt: skip
        equal = f"{shlex.join(command)} > {shlex.quote(str(plan.target))}" if plan.form == "jsonl" else ""
        self.did.emit("export.table", tr("Export the table…"), parameters, equal)
