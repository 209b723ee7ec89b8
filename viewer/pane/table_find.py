"""Find in any table: the next row that contains a text, from the selected row on, then from the other end.

The find line covers the table's lower edge while it is open. Rows are read off the loop, some hundred at a time.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QEvent, QObject

from engine.errors import StoreError
from viewer.look.assets import tr, tr_plural
from viewer.pane import Pane
from viewer.runtime.jobs import Cancelled, Control
from viewer.widgets.columns import Record, RecordKind
from viewer.widgets.find_line import FindLine
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import Bounds, ListSource, RowSource
from viewer.widgets.search_term import SearchTerm

ROWS_PER_ROUND = 500


@dataclass(frozen=True, slots=True)
class RowHit:
    """A hit of a search.

    Position of the row (None: no hit), number of rows read, whether the search wrapped around; number of the hit
    and of all hits if all rows were read (else 0).
    """

    position: int | None
    rows: int
    wrapped: bool
    number: int = 0
    all: int = 0


class TableFind(QObject):
    """The find line of a table, made when it is first needed."""

    def __init__(self, pane: Pane, table: RecordView) -> None:
        super().__init__(table)
        self.setObjectName("table.find")
        self._pane, self._table = pane, table
        self.line = FindLine(f"{table.objectName()}.find", ("text", "regex"), parent=table)
        self._hit: tuple[int, SearchTerm] | None = None
        self._generation = 0
        self.line.hitRequested.connect(self.step)
        self.line.closed.connect(self.close)
        self.line.hide()
        table.installEventFilter(self)

    @classmethod
    def of(cls, pane: Pane, table: RecordView) -> TableFind:
        """Return the find line of ``table``, making it if needed."""
        existing = table.findChild(TableFind, "table.find")
        return existing if isinstance(existing, TableFind) else cls(pane, table)

    def open(self) -> None:
        """Show the line and move the focus there."""
        self._place()
        self.line.use_span(self._table)
        self.line.focus()
        self.line.raise_()

    def close(self) -> None:
        """Hide the line."""
        self._generation += 1
        self.line.leave_span()
        self._table.setFocus()
        self.line.hide()

    def step(self, step: int) -> None:
        """Go to the next matching row (1) or the previous one (−1)."""
        if not self.line.field.text():
            self.open()
            return
        self._place()
        self.line.show()
        self.line.use_span(self._table)
        sought, session = self.line.sought(), self._pane.session
        if sought is None or session is None:
            return
        self._generation += 1
        session.jobs.start(self._look(self._generation, sought, step > 0))

    async def _look(self, generation: int, sought: SearchTerm, forward: bool) -> None:
        session, table = self._pane.session, self._table
        assert session is not None
        source, kind = table.source, table.kind
        row = table.current_row()
        start_position = source.position(row) if row is not None else source.start
        if forward and row is not None and self._hit == (start_position, sought):
            start_position = source.behind(row)
        try:
            title = tr("Finding {text}", text=sought.text[:40])
            span = self.line.span()
            work = partial(
                find_row,
                source=source,
                kind=kind,
                sought=sought,
                start_position=start_position,
                forward=forward,
                span=span,
            )
            hit = await session.jobs.run(title, work)
        except (Cancelled, asyncio.CancelledError):
            return
        except (StoreError, OSError) as error:
            self.line.say(str(error), "error")
            return
        if generation != self._generation or source is not table.source:
            return
        rows = tr_plural("{n:,} row looked at", "{n:,} rows looked at", n=hit.rows)
        if span is not None:
            rows = f"{tr('in the selection')} · {rows}"
        if hit.position is None:
            self.line.say(f"{tr('Not found')} · {rows}", "warn")
            return
        self._hit = hit.position, sought
        table.go_to(hit.position)
        parts = [
            tr("{n:,} of {all}", n=hit.number, all=f"{hit.all:,}") if hit.all else "",
            tr("continued from the other end") if hit.wrapped else "",
            rows,
        ]
        self.line.say(" · ".join(part for part in parts if part), "ok")

    def _place(self) -> None:
        area, height = self._table.rect(), self.line.height()
        self.line.setGeometry(0, area.height() - height, area.width(), height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keep the line at the table's lower edge."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return bool(super().eventFilter(watched, event))


def find_row(
    control: Control,
    source: RowSource[Record],
    kind: RecordKind,
    sought: SearchTerm,
    start_position: int,
    forward: bool,
    span: Bounds | None = None,
) -> RowHit:
    """Return the next row from ``start_position`` on (or before it) that contains ``sought``. Reads the rows.

    The shown text of a row is searched. In a span of rows, and in a list in memory, all hits are counted.
    """

    def holds(row: Record) -> bool:
        return sought.find(kind.as_text(row).encode("utf-8", "surrogatepass")) is not None

    if span is not None or isinstance(source, ListSource):
        span_start, span_end = span if span is not None else (source.start, source.end)
        return _of_all(control, source, holds, start_position, forward, (span_start, span_end))
    rows_read = 0
    for wrapped in (False, True):
        position = start_position if not wrapped else (source.start if forward else source.end)
        while True:
            control.check()
            page = source.read(position, 0 if forward else ROWS_PER_ROUND, ROWS_PER_ROUND if forward else 0)
            rows = page.rows if forward else [row for row in reversed(page.rows) if source.position(row) < position]
            for row in rows:
                row_position = source.position(row)
                if wrapped and (row_position >= start_position if forward else row_position < start_position):
                    return RowHit(None, rows_read, True)
                rows_read += 1
                if holds(row):
                    return RowHit(row_position, rows_read, wrapped)
            if not rows or (page.is_last if forward else page.is_first):
                break
            position = source.behind(rows[-1]) if forward else source.position(rows[-1])
            control.report(rows_read, source.total)
    return RowHit(None, rows_read, True)


def _of_all(
    control: Control,
    source: RowSource[Record],
    holds: Callable[[Record], bool],
    start_position: int,
    forward: bool,
    span: Bounds,
) -> RowHit:
    """Return the next hit among the rows of ``span``, with its number among all hits."""
    hits: list[int] = []
    rows_read, position = 0, span[0]
    while True:
        control.check()
        page = source.read(position, 0, ROWS_PER_ROUND)
        for row in page.rows:
            row_position = source.position(row)
            if row_position > span[1]:
                break
            rows_read += 1
            if holds(row):
                hits.append(row_position)
        if not page.rows or page.is_last or source.position(page.rows[-1]) > span[1]:
            break
        position = source.behind(page.rows[-1])
        control.report(rows_read, source.total)
    if not hits:
        return RowHit(None, rows_read, True)
    number = bisect_left(hits, start_position) - (not forward)
    return RowHit(
        hits[number % len(hits)], rows_read, number not in range(len(hits)), number % len(hits) + 1, len(hits)
    )


def find_commands(pane: Pane, table: Callable[[], RecordView]) -> dict[str, Callable[[], object]]:
    """Return the find commands of the current table."""
    return {
        "find.open": lambda: TableFind.of(pane, table()).open(),
        "find.next": lambda: TableFind.of(pane, table()).step(1),
        "find.previous": lambda: TableFind.of(pane, table()).step(-1),
    }


def find_or(pane: Pane, table: Callable[[], RecordView], step: int, otherwise: Callable[[int], object]) -> None:
    """Continue the search if the current table has one, otherwise do what the view does by itself."""
    finder = TableFind.of(pane, table())
    if finder.line.isVisible():
        finder.step(step)
    else:
        otherwise(step)
