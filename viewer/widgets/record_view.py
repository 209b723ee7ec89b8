"""The table of every pane: any number of records behind a 64-bit scroll bar.

It holds a window of rows (:mod:`viewer.widgets.row_window`): a frame costs the same at any number of rows. Reading goes
through a :class:`~viewer.widgets.stepwise.Runner`; late answers are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QWidget

from viewer.widgets.columns import Record, RecordKind, elsewhere
from viewer.widgets.record_menu import MenuTable, copy_text
from viewer.widgets.row_window import JUMPS, Bounds, ListSource, Page, RowRequest, RowSource, Window
from viewer.widgets.stepwise import Runner, run_here

MAX_LOADED_ROWS = 20_000
"""Up to this number of rows a list is held completely."""
Then = Callable[[], None] | None


class RecordView(MenuTable):
    """A table of the rows of a :class:`RowSource` under a :class:`RecordKind`.

    Emits ``rowChosen(record or None)``, ``placeRequested`` for a link, ``moved(first, last)`` with the positions
    on the screen, ``termRequested(how, term)``, ``failed(error)``, ``filled()`` when rows have come, and
    ``rowsDrawn()`` when the first rows of a source have been painted.
    """

    rowChosen = Signal(object)
    moved = Signal(object, object)
    failed = Signal(object)
    filled = Signal()
    rowsDrawn = Signal()

    def __init__(self, name: str, kind: RecordKind, parent: QWidget | None = None, runner: Runner = run_here) -> None:
        super().__init__(name, kind, parent)
        self.runner = runner
        self._window: Window[Record] = Window(ListSource(), whole=MAX_LOADED_ROWS)
        self._asked: tuple[RowRequest, Then] | None = None
        self._next: tuple[RowRequest, Then] | None = None
        self._generation = 0
        self._current: int | None = None
        self._settling = False
        self._section = 0
        self.drawn = False
        """Rows of this source have been painted, or the sentence that there are none."""
        self._held_back = False
        self._finder = RowFinder(self._look_up, self.go_to, self.failed.emit)
        self._sort = (-1, False)
        self.bar.positionChosen.connect(self._dragged)
        self.bar.stepped.connect(self._bar_stepped)
        self.selectionModel().currentChanged.connect(self._current_changed)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.horizontalHeader().sectionClicked.connect(self._head_clicked)

    # ---- public calls ------------------------------------------------------------------------------------------------

    @property
    def source(self) -> RowSource[Record]:
        return self._window.source

    @property
    def loading(self) -> bool:
        """Return whether a read is under way."""
        return self._asked is not None

    def set_kind(self, kind: RecordKind) -> None:
        """Show the rows under other columns."""
        self.table.set_kind(kind)
        self.fitting.forget()
        self.fitting.reorder()
        self.fit_columns()
        self._settle(self.verticalScrollBar().value())

    def set_source(self, source: RowSource[Record], start_position: int | None = None, choose: bool = False) -> None:
        """Show the rows of another source, from ``start_position`` on (default: the first). ``choose`` chooses that
        row, else nothing is chosen.
        """
        previous, self._generation = self._window.source, self._generation + 1
        if not _refreshed(previous, source):
            self.fitting.forget()
        self.drawn = False
        self._asked = self._next = None
        self._window = Window(source, whole=MAX_LOADED_ROWS if isinstance(source, ListSource) else 0)
        self._current = None
        self.span.end()
        self._finder.forget()
        self._sort = (-1, False)
        self.table.set_order(-1, Qt.SortOrder.AscendingOrder)
        self.horizontalHeader().setSectionsClickable(isinstance(source, ListSource))
        position = source.start if start_position is None else start_position
        self._ask(self._window.jump(position, self.visible_rows()), self._chooser(position, choose))

    def set_rows(self, rows: list[Record]) -> None:
        """Show rows that are all in memory."""
        self.set_source(ListSource(rows))

    def reload(self, anew: bool = False) -> None:
        """Read again after files have changed or a source has grown. What is on the screen and the choice stay. Rows
        in the middle of a counted source are not read again, unless ``anew``, because other facts about them are
        known now.
        """
        if self._asked is not None and self._asked[0].kind == "jump":
            return
        window, top = self._window, self.verticalScrollBar().value()
        if not anew and window.rows and not window.last and window.source.total is not None:
            self.show_extent()
            return
        position = self._top_position()
        above = top - (window.find(position) or 0) if window.rows else 0
        self._ask(window.jump(position, max(self.visible_rows(), above)), None)

    def replace_row(self, number: int, row: Record) -> None:
        """Replace a row of a list in memory. The choice and the scroll position stay."""
        self._window.replace(number, row)
        self.table.replace_row(number, row)
        self.fitting.row_changed(number)

    def position_at(self, number: int) -> int | None:
        rows = self._window.rows
        return self._window.source.position(rows[number]) if 0 <= number < len(rows) else None

    def chosen_span(self) -> Bounds | None:
        return self.span.bounds(self._current)

    def tail(self, *, alone: bool = False) -> None:
        """Read the end of a source that has grown and keep it in view. The choice stays. ``alone`` reads no rows
        above the screen until the user scrolls.
        """
        visible = self.visible_rows()
        row_request = self._window.tail(visible) if alone else self._window.jump(self.source.end, visible)
        self._ask(row_request, self.scrollToBottom)

    def total_rows(self) -> int:
        """Number of rows of the source; while it is unknown, the number of rows held."""
        total = self._window.source.total
        return len(self._window.rows) if total is None else total

    def go_to_row(self, number: int) -> bool:
        """Choose row ``number`` (from 0). Returns False while row numbers are unknown."""
        window = self._window
        if window.complete and 0 <= number < len(window.rows):
            self.go_to(window.source.position(window.rows[number]))
            return True
        total = window.source.total
        if total is None or not 0 <= number < total:
            return False
        self._finder.ask(number)
        return True

    def _look_up(
        self, number: int, on_position: Callable[[int | None], None], on_error: Callable[[Exception], None]
    ) -> None:
        source = self._window.source
        self.runner(lambda: source.position_of(number), on_position, on_error)

    def go_to(self, position: int, choose: bool = True) -> None:
        """Bring the row that holds ``position`` into view, a third from the top, and choose it."""
        number = None if self._window.is_outdated_at(position) else self._number_holding(position)
        if number is None:
            self._ask(self._window.jump(position, self.visible_rows()), self._chooser(position, choose))
            return
        self._show_row(number)
        if choose:
            self._choose_number(number)

    def current_row(self) -> Record | None:
        """The chosen record; None if nothing is chosen or the chosen row is no longer held."""
        number = self._current_number()
        return None if number is None else self._window.rows[number]

    def let_lost_choice_go(self) -> None:
        """Clear the choice if the chosen row is no longer held."""
        if self._current is not None and self._current_number() is None:
            self._current = None
            self.span.end()
            self.selectionModel().clear()
            self.rowChosen.emit(None)

    def choose_next(self, step: int = 1) -> None:
        """Move the choice by ``step`` rows, from wherever the focus is."""
        number = self._current_number()
        if number is None and self._current is not None:
            self.go_to(self._current)
        elif number is None:
            self._choose_number(min(self.verticalScrollBar().value(), len(self._window.rows) - 1))
        else:
            self._choose_number(max(0, min(len(self._window.rows) - 1, number + step)))

    def first_row(self) -> None:
        """Choose the very first row."""
        self._go_to_end(self._window.first, self._window.source.start, 0)

    def last_row(self) -> None:
        """Choose the very last row."""
        self._go_to_end(self._window.holds_end, self._window.source.end, -1)

    def follow(self, in_own_window: bool = False) -> bool:
        """Follow the link of the current cell, or else the row's first link. ``in_own_window`` opens it in its own
        window.
        """
        number = self._current_number()
        if number is None:
            return False
        section = self.currentIndex().column()
        columns = [self.kind.columns[section]] if 0 <= section < len(self.kind.columns) else []
        for column in [*columns, *self.kind.columns]:
            place = self.place_at(number, column)
            if place is not None:
                self.placeRequested.emit(elsewhere(place) if in_own_window else place)
                return True
        return False

    def copy_current(self, form: str) -> str | None:
        """Copy ``cell``, ``row``, ``json`` or ``cli`` of the chosen row. Returns the text, or None if there is none."""
        row = self.current_row()
        return None if row is None else copy_text(self, form, row, self.currentIndex().column())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.drawn and not self.loading:
            self.drawn = True
            self.rowsDrawn.emit()

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _ask(self, row_request: RowRequest, then: Then) -> None:
        """Start the read of ``row_request``. While another read is under way only the newest jump waits."""
        if self._asked is not None:
            if row_request.kind in JUMPS:
                self._next = (row_request, then)
            return
        self._asked = (row_request, then)
        generation, source = self._generation, self._window.source
        runner = run_here if isinstance(source, ListSource) else self.runner
        runner(
            lambda: source.read(row_request.position, row_request.rows_before, row_request.rows_after),
            lambda page: self._read(generation, page),
            lambda error: self._not_read(generation, error),
        )

    def _read(self, generation: int, page: Page[Record]) -> None:
        if generation != self._generation or self._asked is None:
            return
        (row_request, then), self._asked = self._asked, None
        if self._next is None or row_request.kind not in JUMPS:
            self._settle(self._window.apply(row_request, page, self.verticalScrollBar().value(), self.visible_rows()))
            if then is not None:
                then()
            self.filled.emit()
        if self._next is not None:
            (row_request, then), self._next = self._next, None
            self._ask(row_request, then)
        elif row_request.kind != "tail":
            self._ask_if_wanted()

    def _not_read(self, generation: int, error: Exception) -> None:
        if generation == self._generation:
            self._asked = self._next = None
            self.failed.emit(error)

    def _ask_if_wanted(self) -> None:
        if self._asked is None:
            row_request = self._window.wanted(self.verticalScrollBar().value(), self.visible_rows())
            if row_request is not None:
                self._ask(row_request, None)

    def _settle(self, top: int) -> None:
        """Put the window's rows into the model, scroll row ``top`` to the top, and keep the choice."""
        self._settling = True
        try:
            section = self._column()
            self.painter.keep_only(self._window.rows)
            self.table.set_rows(self._window.rows)
            self.executeDelayedItemsLayout()
            self.verticalScrollBar().setValue(top)
            self.fitting.rows_came(top)
            number = self._current_number()
            if number is not None:
                self._mark_current(number, section)
        finally:
            self._settling = False
        self.show_extent()
        self._place_children()
        self.viewport().update()

    # ---- choice ------------------------------------------------------------------------------------------------------

    def _chooser(self, position: int, choose: bool = True) -> Callable[[], None]:
        def show() -> None:
            number = self._number_holding(position)
            if number is not None:
                self.verticalScrollBar().setValue(max(0, number - self.visible_rows() // 3))
                if choose:
                    self._choose_number(number)

        return show

    def _number_holding(self, position: int) -> int | None:
        """Number in the window of the row that begins at or holds ``position``."""
        window = self._window
        if not window.rows or not window.covers(position):
            return None
        if (exact := window.find(position)) is not None:
            return exact
        lower, upper = 0, len(window.rows)
        while lower < upper:
            middle = (lower + upper) // 2
            if window.source.position(window.rows[middle]) <= position:
                lower = middle + 1
            else:
                upper = middle
        return max(0, lower - 1)

    def _current_number(self) -> int | None:
        return None if self._current is None else self._window.find(self._current)

    def _choose_number(self, number: int) -> None:
        if 0 <= number < len(self._window.rows):
            self._mark_current(number, self._column())

    def _column(self) -> int:
        """The column of the choice; it stays while rows come and go."""
        section = self.currentIndex().column()
        return section if section >= 0 else self._section

    def _mark_current(self, number: int, section: int) -> None:
        index = self.table.index(number, min(section, self.table.columnCount() - 1))
        flags = QItemSelectionModel.SelectionFlag
        with self._choosing():
            self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)

    @contextmanager
    def _choosing(self) -> Iterator[None]:
        """Hold back reads while Qt scrolls to a new choice: Qt scrolls before it reports the choice."""
        was_held_back, self._held_back = self._held_back, True
        try:
            yield
        finally:
            self._held_back = was_held_back
        if not was_held_back and not self._settling:
            self._ask_if_wanted()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        with self._choosing():
            super().mousePressEvent(event)

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        self._section = current.column() if current.column() >= 0 else self._section
        if self._settling:
            return
        number = current.row()
        if not 0 <= number < len(self._window.rows):
            if not self._window.rows:
                self._current = None
                self.rowChosen.emit(None)
            return
        row = self._window.rows[number]
        position = self._window.source.position(row)
        self.viewport().update()
        if position != self._current:
            self.span.moved()
            self._current = position
            self.rowChosen.emit(row)

    def _go_to_end(self, is_held: bool, position: int, index: int) -> None:
        def choose() -> None:
            if self._window.rows:
                number = index % len(self._window.rows)
                self._choose_number(number)
                self.scrollTo(self.table.index(number, 0))

        if is_held:
            choose()
        else:
            self._ask(self._window.jump(position, self.visible_rows()), choose)

    # ---- scrolling ---------------------------------------------------------------------------------------------------

    def _top_position(self) -> int:
        rows = self._window.rows
        top = self.verticalScrollBar().value()
        return self._window.source.position(rows[min(top, len(rows) - 1)]) if rows else self._window.source.start

    def _show_row(self, number: int) -> None:
        top, visible = self.verticalScrollBar().value(), self.visible_rows()
        if not top <= number < top + visible:
            self.verticalScrollBar().setValue(max(0, number - visible // 3))

    def _scrolled(self, _: int) -> None:
        if not self._settling:
            self.fitting.rows_came(self.verticalScrollBar().value())
            self.show_extent()
            if not self._held_back:
                self._ask_if_wanted()

    def _dragged(self, position: int) -> None:
        if self._window.complete:
            self.verticalScrollBar().setValue(position)
            return

        self.scroll_to(position)

    def scroll_to(self, position: int) -> None:
        """Bring the row that holds ``position`` to the top. The choice stays."""

        def show() -> None:
            number = self._number_holding(position)
            self.verticalScrollBar().setValue(number if number is not None else len(self._window.rows))

        if not self._window.is_outdated_at(position) and self._number_holding(position) is not None:
            show()
        else:
            self._ask(self._window.jump(position, self.visible_rows()), show)

    def _bar_stepped(self, kind: str, sign: int) -> None:
        native = self.verticalScrollBar()
        if kind == "end":
            self._dragged(self.source.end if sign > 0 else self.source.start)
        else:
            native.setValue(native.value() + sign * (self.visible_rows() - 1 if kind == "page" else 3))

    def show_extent(self) -> None:
        """Report the visible rows to the long scroll bar and to every view that draws them."""
        window, source = self._window, self._window.source
        count = len(window.rows)
        if not count:
            self.bar.hide()
            return
        visible = self.visible_rows()
        top = min(self.verticalScrollBar().value(), count - 1)
        bottom = min(count, top + visible) - 1
        first_position, last_position = source.position(window.rows[top]), source.behind(window.rows[bottom])
        needs_bar = not (window.complete and count <= visible)
        if needs_bar == self.bar.isHidden():
            self.bar.setVisible(needs_bar)
            self.fit_columns()
            self._forget_slots()
        if window.complete:
            self.bar.show_place(0, count, top, visible, bottom == count - 1)
        else:
            page, at_end = max(1, min(last_position, source.end) - first_position), window.last and bottom == count - 1
            self.bar.show_place(source.start, max(source.end, first_position), first_position, page, at_end)
        self.moved.emit(first_position, last_position)

    # ---- order -------------------------------------------------------------------------------------------------------

    def _head_clicked(self, section: int) -> None:
        """Sort a list in memory. A log and a queue keep their own order."""
        source = self._window.source
        if not isinstance(source, ListSource) or not self.kind.columns[section].key:
            return
        descending = self._sort == (section, False)
        self._sort = (section, descending)
        row = self.current_row()
        source.sort(self.kind.columns[section].value, descending)
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        self.table.set_order(section, order)
        self.fit_columns()
        self._current = source.position(row) if row is not None else None
        self.span.end()
        self._window = Window(source, whole=MAX_LOADED_ROWS)
        self._ask(self._window.jump(0, self.visible_rows()), None)


def _refreshed(previous: RowSource[Record], source: RowSource[Record]) -> bool:
    """Return whether ``source`` has the same rows with newer values: a list of the same length."""
    return isinstance(previous, ListSource) and isinstance(source, ListSource) and previous.total == source.total


Look = Callable[[int, Callable[[int | None], None], Callable[[Exception], None]], object]
"""``look(number, on_position, on_error)`` looks up the position of a row; None if it is unknown."""


class RowFinder:
    """Looks up one row number at a time with ``look``, then calls ``go(position)``."""

    def __init__(self, look: Look, go: Callable[[int], object], failed: Callable[[Exception], object]) -> None:
        self._look, self._go, self._on_failed = look, go, failed
        self._wanted: int | None = None
        self._generation = 0

    def forget(self) -> None:
        """Drop the lookup under way, because the rows have changed."""
        self._generation += 1
        self._wanted = None

    def ask(self, number: int) -> None:
        """Go to row ``number``."""
        busy, self._wanted = self._wanted is not None, number
        if not busy:
            self._look_up(number)

    def _look_up(self, number: int) -> None:
        generation = self._generation

        def on_position(position: int | None) -> None:
            if generation != self._generation:
                return
            newest, self._wanted = self._wanted, None
            if newest is not None and newest != number:
                self._wanted = newest
                self._look_up(newest)
            elif position is not None:
                self._go(position)

        def on_error(error: Exception) -> None:
            if generation == self._generation:
                self._wanted = None
                self._on_failed(error)

        self._look(number, on_position, on_error)
