"""A table's painting, keys and pointer: rows painted in one pass, columns that fit, links, hover and context menu.

It is a QTableView, so selection, focus and screen readers work as everywhere. The subclass
:class:`viewer.widgets.record_view.RecordView` provides the rows.

Cells and rows that have just changed glow for 0.4 s and then fade for 0.8 s. With reduced motion they glow for a second
and do not fade. Glowing cells are identified by the positions of their rows, which stay the same when rows are read
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QWidget

from viewer.look.theme import C, scale, theme, ui
from viewer.look.topic_colours import colours_of
from viewer.widgets.columns import Column, Record, RecordKind
from viewer.widgets.long_scroll_bar import LongScrollBar
from viewer.widgets.record_state import IN_TABLE, State, StateLine
from viewer.widgets.record_table import RecordTable
from viewer.widgets.row_painter import ROW, RowPainter, RowState, Slot
from viewer.widgets.row_window import Bounds, RowSpan
from viewer.widgets.table_columns import SizedTable, TableColumns

FULL_GLOW_S, FADE_S, STILL_GLOW_S = 0.4, 0.8, 1.0
FRAME_MS = 80
MAX_CELLS = 512
WHOLE_ROW = -1
"""The section number of a glow over the whole row."""


class CellGlow:
    """The glowing cells of one table. ``widget`` is repainted until all of them have faded."""

    def __init__(self, widget: QWidget, clock: Callable[[], float] = time.monotonic) -> None:
        self._widget, self._clock = widget, clock
        self._begun: dict[tuple[object, int], float] = {}
        self._timer = QTimer(widget, interval=FRAME_MS)
        self._timer.timeout.connect(self._tick)

    def __bool__(self) -> bool:
        return bool(self._begun)

    def add(self, key: object, sections: Iterable[int] = (WHOLE_ROW,)) -> None:
        """Highlight cells of the row ``key`` for a moment; without sections the whole row."""
        now = self._clock()
        for section in sections:
            self._begun.pop((key, section), None)
            self._begun[key, section] = now
        while len(self._begun) > MAX_CELLS:
            del self._begun[next(iter(self._begun))]
        if self._begun and not self._timer.isActive():
            self._timer.start()

    def clear(self) -> None:
        """Stop all glow."""
        self._begun.clear()
        self._timer.stop()

    def of(self, key: object, count: int) -> tuple[tuple[int, float], ...]:
        """Return (section, strength from 0 to 1) of the glowing cells in row ``key`` of ``count`` columns."""
        if not self._begun:
            return ()
        now = self._clock()
        strengths = (
            (n, self._strength(now - begun))
            for n in range(WHOLE_ROW, count)
            if (begun := self._begun.get((key, n))) is not None
        )
        return tuple((section, strength) for section, strength in strengths if strength > 0)

    @staticmethod
    def _strength(age: float) -> float:
        if theme.still:
            return 1.0 if age < STILL_GLOW_S else 0.0
        return 1.0 if age < FULL_GLOW_S else max(0.0, 1 - (age - FULL_GLOW_S) / FADE_S)

    def _tick(self) -> None:
        now = self._clock()
        self._begun = {key: begun for key, begun in self._begun.items() if self._strength(now - begun) > 0}
        if not self._begun:
            self._timer.stop()
        self._widget.update()


def changed_cells(kind: RecordKind, old: Record, new: Record, columns: Sequence[str]) -> list[int]:
    """Return the sections of ``columns`` (by key) whose value differs between two records of the same row."""
    return [
        number
        for number, column in enumerate(kind.columns)
        if column.key in columns and column.value(old) != column.value(new)
    ]


HEAD_HEIGHT = 26
BAR_WIDTH = 12
"""Sizes in px at 100 %."""


class _Head(QHeaderView):
    """The head of a table. The line below it continues to the right edge of the table."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        columns_end = self.length() - self.offset()
        p = QPainter(self.viewport())
        p.fillRect(
            QRect(columns_end, self.viewport().height() - 1, self.viewport().width() - columns_end, 1), C("hair")
        )
        p.end()


class RowTable(SizedTable):
    """Paints the rows of a :class:`RecordTable`. Keys and clicks call methods that the subclass overrides.

    Emits ``placeRequested(place)`` when a link is clicked, ``menuRequested(row, column, position)`` for a context menu.
    """

    placeRequested = Signal(object)
    menuRequested = Signal(object, int, object)

    def __init__(self, name: str, kind: RecordKind, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.table = RecordTable(kind, parent=self)
        self.painter = RowPainter()
        self.lines = 1
        self._slots: list[Slot] | None = None
        self._hovered_link = (-1, -1)
        """(row, column) of the link under the pointer; (−1, −1) for none."""
        self._hovered_row = -1
        self._pressed_link = (-1, -1)
        self._is_dimmed = False
        """True if the rows are out of date: they are painted paler."""
        self._focused_by_key = False
        """True if the focus came by the keyboard: then a frame shows it."""
        self.span = RowSpan()
        self.setModel(self.table)
        self.table.dataChanged.connect(self._forget_slots)
        self._set_up()
        self.bar = LongScrollBar(self)
        self.note = StateLine(self.viewport(), strip=False)
        self.glow = CellGlow(self.viewport())
        self.strip = StateLine(strip=True)
        self.fitting = TableColumns(self)
        self.apply_sizes()

    def _set_up(self) -> None:
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setCornerButtonEnabled(False)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalHeader().hide()
        head = _Head(Qt.Orientation.Horizontal, self)
        self.setHorizontalHeader(head)
        head.setSectionsClickable(True)
        head.setHighlightSections(False)
        head.setMinimumSectionSize(8)
        head.setStretchLastSection(False)
        head.setSectionsMovable(True)
        head.setFirstSectionMovable(False)
        head.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.horizontalScrollBar().valueChanged.connect(self._forget_slots)

    def row_key(self, number: int) -> object:
        """A key that identifies row ``number`` of the window while it is there."""
        return self.position_at(number)

    def position_at(self, number: int) -> int | None:
        """Position of row ``number`` of the window; None if there is no such row."""
        return number if 0 <= number < len(self.table.rows) else None

    def chosen_span(self) -> Bounds | None:
        """Positions of the first and the last chosen row; None if at most one is chosen."""
        return self.span.bounds(self.position_at(self.currentIndex().row()))

    def row_height(self) -> int:
        """Height of a row in px."""
        return round(ROW * scale()) + self.painter.lines_height(self.lines) - self.painter.lines_height(1)

    def set_lines(self, lines: int) -> None:
        """Set the number of text lines of each row."""
        if lines != self.lines:
            self.lines = lines
            self.apply_sizes()
            self.viewport().update()

    def visible_rows(self) -> int:
        """Rows that fit on the screen."""
        return max(1, self.viewport().height() // self.row_height())

    def apply_sizes(self) -> None:
        """Set heights and fonts for the current zoom."""
        self.verticalHeader().setMinimumSectionSize(8)
        self.verticalHeader().setDefaultSectionSize(self.row_height())
        self.horizontalHeader().setFixedHeight(round(HEAD_HEIGHT * scale()))
        self.horizontalHeader().setFont(ui(12))
        self._place_children()

    def refresh_look(self) -> None:
        """Compute and paint everything again after theme, zoom or language has changed."""
        self.painter.forget()
        self.table.retranslate()
        self.apply_sizes()
        self.fitting.forget()
        self.fitting.rows_came(self.verticalScrollBar().value())
        self.fit_columns()
        self.note.show_state(self.note.state)
        self.strip.show_state(self.strip.state)
        self.viewport().update()

    def set_state(self, state: State | None) -> None:
        """Show that rows are loading, why there are none, or that there are more than are shown."""
        inside = state is not None and state.kind in IN_TABLE
        self.note.show_state(state if inside else None)
        self.strip.show_state(None if inside else state)
        self._is_dimmed = state is not None and state.kind == "stale"
        self._place_children()
        self.viewport().update()

    # ---- columns -----------------------------------------------------------------------------------------------------

    def fit_columns(self) -> None:
        """Give every column its width. If there is too little room names are shortened, offsets never."""
        self.fitting.fit()

    def showEvent(self, event: QShowEvent) -> None:
        """Restore the remembered columns when the table is first shown, in a view or in a dialog."""
        self.fitting.ask_saved_widths()
        super().showEvent(event)

    def bar_width(self) -> int:
        """Width in px that the long scroll bar covers at the right edge."""
        return BAR_WIDTH if not self.bar.isHidden() else 0

    def columns_moved(self) -> None:
        """Forget the places of columns, which have moved or changed their width."""
        self._forget_slots()

    def sizeHintForColumn(self, column: int) -> int:
        """The width that a double click on an edge gives the column."""
        return self.fitting.full_width(column)

    def _forget_slots(self, *_: object) -> None:
        self._slots = None
        self.painter.forget_texts()
        self.viewport().update()

    def slots_on_screen(self) -> list[Slot]:
        """The columns from left to right with their places."""
        if self._slots is None:
            head = self.horizontalHeader()
            count = min(head.count(), len(self.kind.columns))
            order = sorted((head.visualIndex(n), n) for n in range(count) if not head.isSectionHidden(n))
            last_section = order[-1][1] if order else -1
            inset = self.bar_width()
            self._slots = [
                Slot(
                    n,
                    head.sectionViewportPosition(n),
                    head.sectionSize(n) - (inset if n == last_section else 0),
                    self.kind.columns[n],
                )
                for _, n in order
            ]
        return self._slots

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self.viewport())
        self.painter.use(colours_of(self))
        p.fillRect(event.rect(), self.painter.color("pane"))
        top, height = self.verticalScrollBar().value(), self.row_height()
        chosen, current = self.currentIndex().row(), self.currentIndex().column()
        focused = self.window().focusWidget() in {None, self}
        slots = self.slots_on_screen()
        start_row = top + max(0, event.rect().top() // height)
        end_row = min(len(self.table.rows), top + event.rect().bottom() // height + 1)
        width = self.viewport().width()
        span = self.chosen_span()
        for number in range(start_row, end_row):
            rect = QRect(0, (number - top) * height, width, height)
            hovered_column = self._hovered_link[1] if self._hovered_link[0] == number else -1
            glow = self.glow.of(self.row_key(number), len(self.kind.columns)) if self.glow else ()
            state = RowState(number == chosen, focused, hovered_column, current, number == self._hovered_row, glow)
            if span is not None and number != chosen and span[0] <= (self.position_at(number) or 0) <= span[1]:
                state = RowState(True, False, hovered_column, lit=glow)
            self.painter.draw(p, self.table, number, slots, rect, state)
        self.painter.finish(p)
        if self._is_dimmed:
            overlay = QColor(self.painter.color("pane"))
            overlay.setAlphaF(0.45)
            p.fillRect(self.viewport().rect(), overlay)
        if self._focused_by_key and focused:
            self._paint_focus(p)

    def _paint_focus(self, p: QPainter) -> None:
        color, area = self.painter.color("accent"), self.viewport().rect()
        for side in (
            QRect(0, 0, area.width(), 2),
            QRect(0, area.height() - 2, area.width(), 2),
            QRect(0, 0, 2, area.height()),
            QRect(area.width() - 2, 0, 2, area.height()),
        ):
            p.fillRect(side, color)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_children()
        wraps = any(column.wrap for column in self.kind.columns)  # the lines of a row depend on the height, too
        if event.oldSize().width() != event.size().width() or (wraps and event.oldSize() != event.size()):
            self.fit_columns()

    def _place_children(self) -> None:
        """Place the scroll bar over the right edge of the rows, and the note in their middle."""
        area = self.viewport().geometry()
        width = round(BAR_WIDTH * max(1.0, scale() ** 0.5))
        self.bar.setGeometry(area.right() + 1 - width, area.top(), width, area.height())
        self.bar.raise_()
        self.note.fit(max(120, min(area.width() - 32, round(560 * scale()))))
        filled = len(self.table.rows) * self.row_height() if self.table.rows else 0
        top = max(filled + 24, (area.height() - self.note.height()) // 2 - 12)
        self.note.move(
            max(16, (area.width() - self.note.width()) // 2) if not filled else 12,
            max(8, min(top, area.height() - self.note.height() - 8)),
        )

    # ---- pointer -----------------------------------------------------------------------------------------------------

    def link_at(self, point: QPoint) -> tuple[int, int]:
        """Return (row, column) of the link whose text is under ``point``, or (−1, −1)."""
        number = self.verticalScrollBar().value() + point.y() // self.row_height()
        if not 0 <= number < len(self.table.rows) or point.y() < 0:
            return -1, -1
        for slot in self.slots_on_screen():
            if slot.x <= point.x() < slot.x + slot.width and slot.column.jump is not None:
                text_x, width = self.painter.text_span(self.table, number, slot)
                if text_x - 2 <= point.x() <= text_x + width + 2 and self.place_at(number, slot.column) is not None:
                    return number, slot.section
        return -1, -1

    def place_at(self, number: int, column: Column) -> object | None:
        """Return the place that the cell links to, or None."""
        appearance = self.table.look(number)
        if column.jump is None or (appearance is not None and appearance.words):
            return None
        return column.jump(self.table.rows[number])

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        link = self.link_at(event.position().toPoint())
        hovered_row = self.verticalScrollBar().value() + int(event.position().y()) // self.row_height()
        if link != self._hovered_link or hovered_row != self._hovered_row:
            self._hovered_link, self._hovered_row = link, hovered_row
            self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if link[0] >= 0 else Qt.CursorShape.ArrowCursor)
            self.viewport().update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered_link, self._hovered_row = (-1, -1), -1
        self.viewport().update()
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._focused_by_key = False
        self._pressed_link = (
            self.link_at(event.position().toPoint()) if event.button() == Qt.MouseButton.LeftButton else (-1, -1)
        )
        if event.button() == Qt.MouseButton.LeftButton:
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.span.press(self.position_at(self.currentIndex().row()), shift=shift)
            self.viewport().update()
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        pressed, self._pressed_link = self._pressed_link, (-1, -1)
        if pressed[0] >= 0 and pressed == self.link_at(event.position().toPoint()):
            place = self.place_at(pressed[0], self.kind.columns[pressed[1]])
            if place is not None:
                self.placeRequested.emit(place)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        index = self.indexAt(event.pos())
        if not index.isValid():
            index = self.currentIndex()
        if index.isValid():
            position = (
                event.globalPos() if event.reason() == QContextMenuEvent.Reason.Mouse else self._below(index.row())
            )
            self.menuRequested.emit(self.table.rows[index.row()], index.column(), position)

    def open_menu_here(self) -> None:
        """Open the menu of the current cell."""
        index = self.currentIndex()
        if index.isValid():
            self.menuRequested.emit(self.table.rows[index.row()], index.column(), self._below(index.row()))

    def _below(self, number: int) -> QPoint:
        y = (number - self.verticalScrollBar().value() + 1) * self.row_height()
        return self.viewport().mapToGlobal(QPoint(40, y))

    # ---- keys --------------------------------------------------------------------------------------------------------

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._focused_by_key = event.reason() in (
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
            Qt.FocusReason.ShortcutFocusReason,
        )
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, plain = (
            event.key(),
            not event.modifiers() & ~(Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ControlModifier),
        )
        shift = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.ShiftModifier
        page = max(1, self.visible_rows() - 1)
        steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: page, Qt.Key.Key_PageUp: -page}
        moves: dict[Qt.Key, Callable[[], object]] = {Qt.Key.Key_Home: self.first_row, Qt.Key.Key_End: self.last_row}
        moves |= {step_key: partial(self.choose_next, step) for step_key, step in steps.items()}
        if (plain or shift) and key in moves:
            self.span.press(self.position_at(self.currentIndex().row()), shift=shift)
            moves[Qt.Key(key)]()
            self.viewport().update()
        elif key == Qt.Key.Key_F10 and shift:
            self.open_menu_here()
        elif plain and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if not self.follow():
                event.ignore()
        elif shift and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if not self.follow(True):
                event.ignore()
        else:
            super().keyPressEvent(event)

    def choose_next(self, step: int = 1) -> None:
        """Select the row ``step`` rows further; the subclass does it."""

    def first_row(self) -> None:
        """Select the first row of all, not only of those in memory; the subclass does it."""

    def last_row(self) -> None:
        """Select the last row of all; the subclass does it."""

    def follow(self, _in_own_window: bool = False) -> bool:
        """Follow the link of the current cell. Return False if it has none."""
        return False
