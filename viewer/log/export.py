"""Exporting the log: asks which rows and how, has the worker write them, and says what was written and what was not."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.formats import size
from viewer.runtime.jobs import Cancelled

if TYPE_CHECKING:
    from viewer.log.export_box import Choice, ExportBox
    from viewer.log.export_work import Exported, Plan
    from viewer.log.pane import UnitsPane

WORK = "viewer.log.export_work:export"


class LogExport(QObject):
    """The export of one log pane."""

    def __init__(self, pane: UnitsPane) -> None:
        super().__init__(pane)
        self._pane = pane

    def commands(self) -> dict[str, Callable[[], object]]:
        """The one command."""
        return {"export.table": self.ask}

    def ask(self) -> ExportBox | None:
        """The dialog."""
        from viewer.log.export_box import ExportBox, Scope

        pane = self._pane
        if pane.session is None:
            return None
        text, marked, row = pane.filtering.text, len(pane.marks.dress.marked), pane.table.current_row()
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
        box = ExportBox(scopes, "span" if span else "filter" if text else "all", Path.home(), pane)
        box.wanted.connect(self.begin)
        box.open()
        return box

    def begin(self, choice: Choice) -> None:
        """Write what was chosen, as a job that is shown and can be stopped."""
        pane = self._pane
        session, log = pane.session, pane.log
        if session is None or log is None:
            return
        store = session.path.resolve()
        if choice.target.resolve().is_relative_to(store if store.is_dir() else store.parent):
            pane.statusMessage.emit(tr("Nothing is written into the store: choose another folder."))
            return
        session.jobs.start(self._work(choice, self.plan(choice)))

    def plan(self, choice: Choice) -> Plan:
        """The choice with its rows."""
        pane = self._pane
        row = pane.table.current_row()
        offsets = {
            "row": (row.offset,) if row is not None else (),
            "marked": tuple(sorted(pane.marks.dress.marked - pane.marks.dress.ignored)),
        }.get(choice.scope)
        where = ""
        if offsets is None:
            where = pane.marks.heeded(pane.filtering.text if choice.scope in {"filter", "span"} else "")
        span = self._span() if choice.scope == "span" else None
        if span is not None:
            from engine.query import and_

            where = and_(where, f"physicalOffset between {span[0]} and {span[1]}")
        from engine.rules.masking import Masking
        from viewer.log.export_work import Plan

        masking = Masking.of(",".join(choice.masked))
        if choice.kept:
            masking = masking.keeping(choice.kept)
        return Plan(choice.target, choice.form, where, offsets, choice.body, masking)

    def _span(self) -> tuple[int, int] | None:
        """Offsets of the first and the last chosen row; None where it is one row."""
        span, source = self._pane.table.chosen_span(), self._pane.filtering.source
        if span is None or source is None:
            return span
        return source.offsets[span[0]], source.offsets[span[1]]

    async def _work(self, choice: Choice, plan: Plan) -> None:
        pane = self._pane
        session, log = pane.session, pane.log
        assert session is not None
        assert log is not None
        try:
            done: Exported = await session.jobs.in_worker(
                tr("Exporting {name}", name=plan.target.name), WORK, session.path, session.config, plan,
                time.time_ns() // 1_000_000, log.start, max(log.end, log.start),
            )  # fmt: skip
        except (Cancelled, asyncio.CancelledError):
            pane.statusMessage.emit(tr("The export was stopped; no file was written."))
            return
        except (StoreError, OSError, RuntimeError) as error:
            pane.statusMessage.emit(f"{plan.target}: {getattr(error, 'strerror', None) or error}")
            return
        pane.statusMessage.emit(self.said(done, plan))
        self._note(choice, plan, done)

    def said(self, done: Exported, plan: Plan) -> str:
        """``1,204 units written to … · scanned 38.0 GiB · complete · 3 cells cut``."""
        parts = [tr("{count:,} rows written to {path}", count=done.rows, path=str(plan.target))]
        if plan.offsets is None:
            parts.append(tr("{size} of log read", size=size(done.looked)))
            edge = self._pane.session.unread.edge if self._pane.session is not None else tr("complete")
            parts.append(edge if done.complete else tr("not complete: {reason}", reason=done.reason))
        if done.odd:
            parts.append(tr("with blanks and spans of damage: {n:,}", n=done.odd))
        if done.cut:
            parts.append(tr("{n:,} cells were cut", n=done.cut))
        ignored = len(self._pane.marks.dress.ignored)
        if ignored:
            parts.append(tr("{n:,} ignored rows left out", n=ignored))
        return " · ".join(parts)

    def _note(self, choice: Choice, plan: Plan, done: Exported) -> None:
        """For the operation log, with the command that gives the same rows."""
        session = self._pane.session
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
        self._pane.did.emit("export.table", tr("Export the table…"), parameters, equal)
