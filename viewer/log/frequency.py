"""Frequency of each value of a field in the log, over the rows of the filter; Enter narrows the filter to a value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Signal

from engine.errors import StoreError
from viewer.log.count_work import Frequencies
from viewer.log.log_model import LogModel
from viewer.log.unit_panes import UnitPanes
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import size
from viewer.pane.frequency import FrequencySheet, value_rows
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import StoreSession
from viewer.widgets.cell_filter import term
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

WORK = "viewer.log.count_work:count_values"
NAMES = {"CRC": "crc", "Body": "body", "Marks": "transaction"}


class LogFrequency(QObject):
    """Frequency sheets of the log: ``termRequested(how, condition)`` drills in. ``known`` gives names of properties."""

    termRequested = Signal(str, str)

    def __init__(
        self, model: LogModel, table: RecordView, unit: UnitPanes, known_values: Callable[[str], Iterable[str]]
    ) -> None:
        super().__init__(table)
        self._model, self._table, self._unit, self._known = model, table, unit, known_values
        self.session: StoreSession | None = None
        self._generation = 0

    def commands(self) -> dict[str, Callable[[], object]]:
        """The one command."""
        return {"frequency.open": self.ask}

    def ask(self) -> FrequencySheet | None:
        """The sheet of the column under the cursor, or of the field that is chosen in the decoded unit."""
        from engine.query import FIELDS

        if self.session is None:
            return None
        names = [(name, name) for name in FIELDS]
        names += [(f"properties.{name}", f"properties.{name}") for name in self._known("properties")]
        field = self._field()
        if field not in {name for name, _ in names}:
            field = "topic"
        sheet = FrequencySheet(names, field, self._table.window())
        sheet.fieldChosen.connect(lambda name: self._count(sheet, name))
        sheet.chosen.connect(lambda value: self._drill(sheet, value))
        sheet.finished.connect(lambda _n: self._stop())
        sheet.show()
        self._count(sheet, field)
        return sheet

    def _field(self) -> str:
        if self._unit.detail_in_focus:
            field = self._unit.detail.chosen_field
            return {"totalSize": "size"}.get(field, field)
        column_number = self._table.currentIndex().column()
        if not 0 <= column_number < len(self._table.kind.columns):
            return "topic"
        column = self._table.kind.columns[column_number]
        return column.key or NAMES.get(column.title, "")

    def _stop(self) -> None:
        self._generation += 1

    def _count(self, sheet: FrequencySheet, field: str) -> None:
        session = self.session
        if session is not None:
            self._generation += 1
            sheet.show_state(State("loading", tr("Counting {field}…", field=field)))
            session.jobs.start(self._work(self._generation, sheet, field))

    async def _work(self, generation: int, sheet: FrequencySheet, field: str) -> None:
        from engine.query import FIELDS

        session, (start, end) = self.session, self._model.span
        assert session is not None
        where = self._model.without_ignored_rows(self._model.filter.text)
        try:
            frequencies: Frequencies = await session.jobs.in_worker(
                tr("Counting {field}…", field=field),
                WORK,
                session.path,
                session.config,
                field,
                where,
                time.time_ns() // 1_000_000,
                start,
                end,
            )
        except (Cancelled, asyncio.CancelledError):
            return
        except (StoreError, OSError, RuntimeError) as error:
            if generation == self._generation:
                sheet.show_state(State("error", str(error)))
            return
        if generation != self._generation:
            return
        times = field in FIELDS and FIELDS[field].kind == "time"
        units = tr_plural("{n:,} unit", "{n:,} units", n=frequencies.units)
        values = tr_plural("{n:,} value in {units}", "{n:,} values in {units}", n=len(frequencies.values), units=units)
        notes = [values]
        if where:
            notes.append(tr("in the rows of the filter"))
        counted_bytes = frequencies.counted_to - start
        notes.append(tr("scanned {done} of {all}", done=size(counted_bytes), all=size(max(end - start, counted_bytes))))
        notes.append(session.unread.edge if frequencies.complete else tr("stopped"))
        if frequencies.other_units:
            notes.append(
                tr_plural(
                    "{n:,} more value is not listed separately",
                    "{n:,} more values are not listed separately",
                    n=frequencies.other_units,
                )
            )
        sheet.show_rows(value_rows(frequencies.values, frequencies.units, times), " · ".join(notes))

    def _drill(self, sheet: FrequencySheet, value: object) -> None:
        """The rows with this value: the filter narrows down."""
        self.termRequested.emit("and", term(str(sheet.fields.currentData()), value))
        sheet.accept()
