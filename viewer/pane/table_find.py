"""Find in any table: the next row whose text holds what is looked for, from the chosen row on, then from the other end.

The line lies over the table's lower edge while it is wanted. Rows are read off the loop, some hundred at a time.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QEvent, QObject

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.pane import Pane
from viewer.runtime.jobs import Cancelled, Control
from viewer.widgets.columns import Record, RecordKind
from viewer.widgets.find_line import FindLine
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import Bounds, ListSource, RowSource
from viewer.widgets.search_term import Sought

AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class RowHit:
    """Position of the row that holds it (None: nothing), rows looked at, whether it went round; which one of how many
    it is, where all were looked at (else 0).
    """

    position: int | None
    rows: int
    wrapped: bool
    number: int = 0
    all: int = 0


class TableFind(QObject):
    """The find line of one table; made when it is first wanted."""

    def __init__(self, pane: Pane, table: RecordView) -> None:
        super().__init__(table)
        self.setObjectName("table.find")
        self._pane, self._table = pane, table
        self.line = FindLine(f"{table.objectName()}.find", ("text", "regex"), parent=table)
        self._hit: tuple[int, Sought] | None = None
        self._turn = 0
        self.line.wanted.connect(self.step)
        self.line.closed.connect(self.close)
        self.line.hide()
        table.installEventFilter(self)

    @classmethod
    def of(cls, pane: Pane, table: RecordView) -> TableFind:
        """The one of ``table``."""
        found = table.findChild(TableFind, "table.find")
        return found if isinstance(found, TableFind) else cls(pane, table)

    def open(self) -> None:
        """Show the line and go there."""
        self._place()
        self.line.use_span(self._table)
        self.line.focus()
        self.line.raise_()

    def close(self) -> None:
        """Put the line away."""
        self._turn += 1
        self.line.leave_span()
        self._table.setFocus()
        self.line.hide()

    def step(self, step: int) -> None:
        """Go to the next row that holds it (1) or the one before (−1)."""
        if not self.line.field.text():
            self.open()
            return
        self._place()
        self.line.show()
        self.line.use_span(self._table)
        sought, session = self.line.sought(), self._pane.session
        if sought is None or session is None:
            return
        self._turn += 1
        session.jobs.start(self._look(self._turn, sought, step > 0))

    async def _look(self, turn: int, sought: Sought, forward: bool) -> None:
        session, table = self._pane.session, self._table
        assert session is not None
        source, kind = table.source, table.kind
        row = table.current_row()
        at = source.position(row) if row is not None else source.start
        if forward and row is not None and self._hit == (at, sought):
            at = source.behind(row)
        try:
            title = tr("Finding {text}", text=sought.text[:40])
            span = self.line.span()
            work = partial(find_row, source=source, kind=kind, sought=sought, at=at, forward=forward, span=span)
            hit = await session.jobs.run(title, work)
        except (Cancelled, asyncio.CancelledError):
            return
        except (StoreError, OSError) as error:
            self.line.say(str(error), "error")
            return
        if turn != self._turn or source is not table.source:
            return
        rows = tr("{n:,} rows looked at", n=hit.rows)
        if span is not None:
            rows = f"{tr('in the selection')} · {rows}"
        if hit.position is None:
            self.line.say(f"{tr('Not found')} · {rows}", "warn")
            return
        self._hit = hit.position, sought
        table.go_to(hit.position)
        parts = [
            tr("{n:,} of {all}", n=hit.number, all=f"{hit.all:,}") if hit.all else "",
            tr("went on from the other end") if hit.wrapped else "",
            rows,
        ]
        self.line.say(" · ".join(part for part in parts if part), "ok")

    def _place(self) -> None:
        area, height = self._table.rect(), self.line.height()
        self.line.setGeometry(0, area.height() - height, area.width(), height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The line keeps to the table's lower edge."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return bool(super().eventFilter(watched, event))


def find_row(
    control: Control,
    source: RowSource[Record],
    kind: RecordKind,
    sought: Sought,
    at: int,
    forward: bool,
    span: Bounds | None = None,
) -> RowHit:
    """The next row from ``at`` on (or in front of it) whose shown text holds ``sought``; reads the rows.

    In a span of rows, and in a list in memory, all hits are counted.
    """

    def holds(row: Record) -> bool:
        return sought.find(kind.as_text(row).encode("utf-8", "surrogatepass")) is not None

    if span is not None or isinstance(source, ListSource):
        first, last = span if span is not None else (source.start, source.end)
        return _of_all(control, source, holds, at, forward, (first, last))
    looked = 0
    for wrapped in (False, True):
        position = at if not wrapped else (source.start if forward else source.end)
        while True:
            control.check()
            page = source.read(position, 0 if forward else AT_A_TIME, AT_A_TIME if forward else 0)
            rows = page.rows if forward else [row for row in reversed(page.rows) if source.position(row) < position]
            for row in rows:
                here = source.position(row)
                if wrapped and (here >= at if forward else here < at):
                    return RowHit(None, looked, True)
                looked += 1
                if holds(row):
                    return RowHit(here, looked, wrapped)
            if not rows or (page.last if forward else page.first):
                break
            position = source.behind(rows[-1]) if forward else source.position(rows[-1])
            control.report(looked, source.total)
    return RowHit(None, looked, True)


def _of_all(
    control: Control,
    source: RowSource[Record],
    holds: Callable[[Record], bool],
    at: int,
    forward: bool,
    span: Bounds,
) -> RowHit:
    """The next hit among the rows of ``span``, with its number among them all."""
    found: list[int] = []
    looked, position = 0, span[0]
    while True:
        control.check()
        page = source.read(position, 0, AT_A_TIME)
        for row in page.rows:
            here = source.position(row)
            if here > span[1]:
                break
            looked += 1
            if holds(row):
                found.append(here)
        if not page.rows or page.last or source.position(page.rows[-1]) > span[1]:
            break
        position = source.behind(page.rows[-1])
        control.report(looked, source.total)
    if not found:
        return RowHit(None, looked, True)
    number = bisect_left(found, at) - (not forward)
    return RowHit(
        found[number % len(found)], looked, number not in range(len(found)), number % len(found) + 1, len(found)
    )


def find_commands(pane: Pane, table: Callable[[], RecordView]) -> dict[str, Callable[[], object]]:
    """The commands of finding in the table in front."""
    return {
        "find.open": lambda: TableFind.of(pane, table()).open(),
        "find.next": lambda: TableFind.of(pane, table()).step(1),
        "find.previous": lambda: TableFind.of(pane, table()).step(-1),
    }


def find_or(pane: Pane, table: Callable[[], RecordView], step: int, otherwise: Callable[[int], object]) -> None:
    """Find on where something is sought in the table in front; else what the view does by itself."""
    finder = TableFind.of(pane, table())
    if finder.line.isVisible():
        finder.step(step)
    else:
        otherwise(step)
