"""The frequency sheet: every value of a column with its count and a bar, over the filtered rows. Enter drills in.

In the log it counts the whole log in the worker (:mod:`viewer.log.frequency`); in other tables the rows of the table.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import moment, number, plain
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.runtime.jobs import Cancelled, Control
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField
from viewer.widgets.columns import Column, RecordKind, number_column, text_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_painter import BarPainter

ROWS_PER_ROUND = 500


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A value with its count, its part of all, and its ``share`` of the most frequent one's count."""

    value: Any
    shown: str
    units: int
    part: float
    share: float


KIND = RecordKind(
    "frequency",
    (
        text_column("shown", words("Value"), 260, mono=True),
        number_column("units", words("Rows"), 90),
        Column("part", words("Part"), 70, lambda r: f"{100 * r.part:.1f} %", lambda r: r.part, right=True, mono=True),
        Column("bar", "", 200, lambda _row: "", lambda row: row.share, filterable=False),
    ),
    record=lambda r: {"value": r.value, "rows": r.units},
)


def value_rows(values: Sequence[tuple[Any, int]], all_units: int, times: bool = False) -> list[ValueRow]:
    """Return the values as rows. The most frequent has a share of 1."""
    largest_count = max((n for _, n in values), default=1)
    return [ValueRow(value, _shown(value, times), n, n / max(1, all_units), n / largest_count) for value, n in values]


def _shown(value: object, times: bool) -> str:
    if value is None:
        return tr("(absent)")
    if times and isinstance(value, int):
        return moment(value)
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else plain(str(value))


class FrequencySheet(QDialog):
    """Shows the values.

    ``chosen(value)`` on Enter or a double click, ``fieldChosen(field)`` when another field is chosen.
    """

    chosen = Signal(object)
    fieldChosen = Signal(str)
    stopped = Signal()

    def __init__(self, fields: Sequence[tuple[str, str]], field: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("frequency.sheet")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("How often each value occurs"))
        self.setAccessibleName(tr("How often each value occurs"))
        self.resize(px(700), px(520))
        self.fields = ChoiceField()
        self.fields.setObjectName("frequency.field")
        self.fields.setAccessibleName(tr("Field"))
        for key, text in fields:
            self.fields.addItem(text, key)
        self.fields.setCurrentIndex(max(0, self.fields.findData(field)))
        self.fields.activated.connect(lambda _n: self.fieldChosen.emit(self.fields.currentData()))
        self.note = Label("", 12, "text3", wrap=True)
        self.note.setObjectName("frequency.note")
        self.table = RecordView("frequency.table", KIND)
        self.table.setAccessibleName(tr("Values by how often they occur"))
        self.table.painter = BarPainter("bar", lambda row: ("", row.share), role="accent")
        self.table.installEventFilter(self)
        self.table.doubleClicked.connect(lambda _index: self._choose())
        close = Button(tr("Close"))
        close.clicked.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        layout.addWidget(row(self.fields, None))
        layout.addWidget(self.table, 1)
        layout.addWidget(self.table.strip)
        layout.addWidget(row(self.note, None, close))
        self.table.setFocus()

    def show_rows(self, rows: list[ValueRow], summary: str) -> None:
        """Show the values, and a sentence about how they were counted."""
        self.table.set_state(None if rows else State("empty", tr("There is nothing to count.")))
        self.table.set_rows(list(rows))
        self.table.first_row()
        self.note.setText(summary)

    def show_state(self, state: State | None) -> None:
        """Show that counting is under way, or why it failed."""
        self.table.set_state(state)

    def _choose(self) -> None:
        value_row = self.table.current_row()
        if value_row is not None:
            self.chosen.emit(value_row.value)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Drill in on Enter."""
        pressed = watched is self.table and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent)
        if pressed and isinstance(event, QKeyEvent) and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._choose()
            return True
        return bool(super().eventFilter(watched, event))


def count_rows(control: Control, source: Any, column: Column) -> tuple[Counter[Any], int]:
    """Count the shown values of a column over all rows of a table. Reads the rows."""
    counts: Counter[Any] = Counter()
    position, rows = source.start, 0
    while True:
        control.check()
        page = source.read(position, 0, ROWS_PER_ROUND)
        for record in page.rows:
            value = column.value(record)
            counts[tuple(value) if isinstance(value, list) else value] += 1
        rows += len(page.rows)
        if page.is_last or not page.rows:
            return counts, rows
        position = source.behind(page.rows[-1])
        control.report(position - source.start, max(1, source.end - source.start))


def table_frequency(pane: Pane, table: RecordView) -> FrequencySheet | None:
    """Open the sheet for the column under the cursor. Enter goes to the first row with the chosen value."""
    session, column_index = pane.session, table.currentIndex().column()
    columns = [column for column in table.kind.columns if column.key]
    if session is None or not columns:
        return None
    cursor_key = table.kind.columns[column_index].key if 0 <= column_index < len(table.kind.columns) else ""
    sheet = FrequencySheet(
        [(column.key, column.head or column.key) for column in columns],
        cursor_key if any(column.key == cursor_key for column in columns) else columns[0].key,
        pane.window(),
    )
    source = table.source
    closed: list[int] = []
    sheet.finished.connect(closed.append)

    def column_of(key: str) -> Column:
        return next(column for column in columns if column.key == key)

    async def work(key: str) -> None:
        try:
            counts, rows = await session.jobs.run(
                tr("Counting {field}…", field=key), lambda control: count_rows(control, source, column_of(key))
            )
        except (Cancelled, asyncio.CancelledError):
            return
        except (StoreError, OSError) as error:
            if not closed:
                sheet.show_state(State("error", str(error)))
            return
        if closed:
            return
        ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
        rows_text = tr_plural("{n:,} row of the table", "{n:,} rows of the table", n=rows)
        values = tr_plural("{n:,} value in {rows}", "{n:,} values in {rows}", n=len(ordered), rows=rows_text)
        summary = session.unread.beside(values)
        sheet.show_rows(value_rows(ordered, rows), summary)

    def go(value: object) -> None:
        column = column_of(str(sheet.fields.currentData()))

        def look(control: Control) -> int | None:
            return first_row(control, source, column, value)

        async def find() -> None:
            position = await session.jobs.run(tr("Finding {text}", text=str(value)[:40]), look)
            if position is not None and source is table.source:
                table.go_to(position)

        session.jobs.start(find())
        sheet.accept()

    sheet.fieldChosen.connect(lambda key: session.jobs.start(work(key)))
    sheet.chosen.connect(go)
    sheet.show()
    session.jobs.start(work(str(sheet.fields.currentData())))
    return sheet


def first_row(control: Control, source: Any, column: Column, value: object) -> int | None:
    """Return the position of the first row whose cell has ``value``. Reads the rows."""
    position = source.start
    while True:
        control.check()
        page = source.read(position, 0, ROWS_PER_ROUND)
        for record in page.rows:
            cell_value = column.value(record)
            if (tuple(cell_value) if isinstance(cell_value, list) else cell_value) == value:
                row_position: int = source.position(record)
                return row_position
        if page.is_last or not page.rows:
            return None
        position = source.behind(page.rows[-1])
