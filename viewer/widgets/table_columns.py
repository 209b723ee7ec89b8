"""The columns of one table on the screen: widths from the visible values, folds, drags, order, and what is
remembered.

A new source is measured at once (at least 200 rows around the first in sight), later rows when they come on the
screen. Until the source changes, widths only grow, so that nothing jumps while the user scrolls.

If there is too little room, columns are shortened in this order: bodies, sentences, long names, titles that are
longer than their values, then all names as far as no two of them look alike. Numbers, offsets, times and states
are never shortened: then the table scrolls sideways.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtWidgets import QMenu, QTableView

from viewer.look.assets import tr
from viewer.look.theme import scale
from viewer.widgets.columns import Column, RecordKind
from viewer.widgets.record_table import RecordTable
from viewer.widgets.row_painter import RowPainter

NARROW = 1100
"""Width in px at 100 % below which slim columns are hidden."""
HALF = 620
"""The same for columns that are hidden when a window has half a screen."""
SHORT_NAME = 160
"""Px at 100 % that a name keeps beside titles and the sentence of a row, if it still differs from other names then."""
MAX_LINES = 6
MIN_LINES = 2
"""Lines of wrapped text that a row may have even if other rows are then out of sight."""
"""Maximum text lines of a row. Longer texts are in the tool tip."""
NAMES = 400
"""Names kept for each column to find out whether shortened names would look alike."""


class _Seen:
    """The measurements of one column: its widest visible value, whether there is any, and its names."""

    __slots__ = ("any", "names", "width")

    def __init__(self) -> None:
        self.width, self.any = 0, False
        self.names: set[str] = set()


class SizedTable(QTableView):
    """A table whose columns are sized by its content."""

    table: RecordTable
    painter: RowPainter

    @property
    def kind(self) -> RecordKind:
        """The kind of its rows."""
        return self.table.kind

    @abstractmethod
    def visible_rows(self) -> int:
        """Rows that fit on the screen."""

    @abstractmethod
    def bar_width(self) -> int:
        """Width in px that the long scroll bar covers at the right edge."""

    @abstractmethod
    def columns_moved(self) -> None:
        """React to new places or widths of columns."""

    @abstractmethod
    def set_lines(self, lines: int) -> None:
        """Set the number of text lines of each row."""


class TableColumns(QObject):
    """Sizes the columns of a :class:`SizedTable`. ``changed()`` is emitted when the user changed something that is
    to be remembered.
    """

    changed = Signal()
    columnsEdited = Signal()
    """The user adds or removes columns; the added names are in ``kept.added``."""

    def __init__(self, view: SizedTable) -> None:
        super().__init__(view)
        self._view = view
        self.kept = SavedColumns()
        self.remembered = False
        """A window remembers the user's changes to these columns."""
        self._seen: list[_Seen] = []
        self._rows_seen = False
        self._known: set[int] = set()
        self._words: dict[int, int] = {}
        self._fitting = False
        self._dragging = False
        head = view.horizontalHeader()
        head.sectionResized.connect(self._resized)
        head.sectionMoved.connect(self._moved)
        head.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        head.customContextMenuRequested.connect(self._open_menu)
        head.viewport().installEventFilter(self)

    # ---- measuring ---------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Drop all measurements, because rows, columns or fonts change."""
        self._seen = [_Seen() for _ in self._view.kind.columns]
        self._rows_seen = False
        self._known = set()
        self._words = {}

    def rows_came(self, top: int) -> None:
        """Measure the rows around number ``top``: at least 200 of a new source, later those on the screen."""
        count, visible = len(self._view.table.rows), self._view.visible_rows() + 1
        if not count:
            return
        span = visible if self._rows_seen else max(visible, MEASURED_ROWS)
        start_row = max(0, min(top, count - span))
        self.look(start_row, min(count, start_row + span))

    def look(self, start_row: int, end_row: int) -> None:
        """Measure rows ``start_row`` to ``end_row`` (excluded). Columns open or widen where they must."""
        fresh, self._rows_seen = not self._rows_seen, True
        rows = self._view.table.rows[start_row:end_row]
        measured, self._known = self._known, {id(row) for row in rows}
        if self._measure([n for n, row in enumerate(rows, start_row) if id(row) not in measured]) or fresh:
            self.fit()

    def row_changed(self, number: int) -> None:
        """Measure a row whose record has changed."""
        if self._rows_seen and self._measure([number]):
            self.fit()

    def _measure(self, numbers: Iterable[int]) -> bool:
        if len(self._seen) != len(self._view.kind.columns):
            self.forget()
        table, painter, grew = self._view.table, self._view.painter, False
        columns = list(enumerate(zip(self._view.kind.columns, self._seen, strict=True)))
        names = {n for n, (column, _) in columns if rank_of(column) == NAME}
        for number in numbers:
            look = table.look(number)
            end_section = look.words_from if look is not None and look.words else len(columns)
            row, texts = table.rows[number], table.texts(number)
            if look is not None and look.words:
                width = painter.words_width(look)
                if width > self._words.get(end_section, 0):
                    self._words[end_section], grew = width, True
            for n, (column, measured) in columns[:end_section]:
                text = texts[n]
                if not text or text in measured.names:
                    continue
                width = painter.cell_width(column, row, text)
                if width > measured.width or not measured.any:
                    measured.width, measured.any, grew = max(width, measured.width), True, True
                if n in names and len(measured.names) < NAMES:
                    measured.names.add(text)
                    grew = grew or self._is_shortened(n)  # it may look like a name before it
        return grew

    def _is_shortened(self, section: int) -> bool:
        """Return True if the column is narrower than its longest name."""
        return self._view.horizontalHeader().sectionSize(section) < self._seen[section].width

    def _head_width(self, section: int) -> int:
        """Width of the title, with the arrow if the table is sorted by the column."""
        table, folded = self._view.table, self._view.table.folded
        table.folded = frozenset()
        try:
            return self._view.horizontalHeader().sectionSizeHint(section) if table.head(section) else 0
        finally:
            table.folded = folded

    def _full(self, section: int) -> int:
        """Width in px for the title and all visible values; before rows have come, the column's declared width."""
        column = self._view.kind.columns[section]
        declared_width = round(column.width * scale())
        if not self._rows_seen:
            return max(declared_width, self._head_width(section))
        if not column.title:
            return declared_width
        measured = self._seen[section]
        return max(self._head_width(section), measured.width) if measured.any else round(FOLDED * scale())

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Give every column its width. The remaining room goes to columns that grow, else to the last of words."""
        view, z = self._view, scale()
        if len(self._seen) != len(view.kind.columns):
            self.forget()
        room, columns = view.viewport().width() - view.bar_width(), view.kind.columns
        narrow, half = (view.viewport().width() < limit * z for limit in (NARROW, HALF))
        shown = [n for n, column in enumerate(columns) if not ((column.slim and narrow) or (column.leaves and half))]
        shown = [n for n in shown if not (columns[n].hides and self._is_folded(n))]
        shown = [n for n in shown if column_id(columns[n]) not in self.kept.hidden] or shown
        widths = self._widths(shown, room)
        spare = room - sum(widths.values())
        growing = [n for n in shown if columns[n].grows]
        if not growing and (last_section := self._last_of_words(shown)) is not None:
            growing = [last_section]
        for number, section in enumerate(growing if spare > 0 else ()):
            widths[section] += spare * (number + 1) // len(growing) - spare * number // len(growing)
        if shown:
            widths[self._rightmost(shown)] += view.bar_width()
        self._apply(widths)
        view.set_lines(self._lines(widths))

    def _lines(self, widths: dict[int, int]) -> int:
        """Number of text lines that a row needs so that no wrapped text is cut."""
        view, lines = self._view, 1
        wrapped = [(n, column) for n, column in enumerate(view.kind.columns) if column.wrap and n in widths]
        for n, column in wrapped:
            width = widths[n] - (view.bar_width() if n == self._rightmost(list(widths)) else 0)
            if self._seen[n].width > width:
                texts = {view.table.texts(number)[n] for number in range(min(MEASURED_ROWS, len(view.table.rows)))}
                lines = max([lines, *(view.painter.lines_of(column, text, width) for text in texts)])
        return min(lines, MAX_LINES, max(MIN_LINES, self._lines_in_sight()))

    def _lines_in_sight(self) -> int:
        """Number of text lines that each row may have so that all rows are in sight."""
        view = self._view
        height = view.viewport().height() // max(1, len(view.table.rows))
        return next((lines for lines in range(MAX_LINES, 1, -1) if view.painter.lines_height(lines) <= height), 1)

    def _widths(self, shown: list[int], room: int) -> dict[int, int]:
        """Titles and names are shortened last. Only then is it computed how short names can be without looking
        alike.
        """
        needs = [self._need(n) for n in shown]
        widths = fitted([self._before_names_are_compared(need) for need in needs], room)
        if sum(widths) > room:
            needs = [self._kept_apart(n, need) for n, need in zip(shown, needs, strict=True)]
            widths = fitted(needs, room)
        by_section = dict(zip(shown, widths, strict=True))
        self._give_to_words(by_section, room)
        return by_section

    def _before_names_are_compared(self, need: ColumnWidth) -> ColumnWidth:
        if need.rank == WHOLE:
            return replace(need, least=need.full)
        return replace(need, least=max(need.least, min(need.full, need.easy))) if need.rank == NAME else need

    def _give_to_words(self, widths: dict[int, int], room: int) -> None:
        """Give sentences of whole rows the room that long names before them can spare. Else they are cut at their
        end.
        """
        for words_section, words_width in self._words.items():
            later_sections = [n for n in self._visual(list(widths)) if n >= words_section]
            missing_px = words_width - sum(widths[n] for n in later_sections) - max(0, room - sum(widths.values()))
            for n in widths if later_sections and missing_px > 0 else ():
                if n < words_section and rank_of(self._view.kind.columns[n]) == NAME:
                    moved_px = max(0, min(missing_px, widths[n] - round(SHORT_NAME * scale())))
                    widths[n] -= moved_px
                    widths[later_sections[-1]] += moved_px
                    missing_px -= moved_px

    def _need(self, section: int) -> ColumnWidth:
        z, column = scale(), self._view.kind.columns[section]
        kept_width = self.kept.widths.get(column_id(column))
        if kept_width is not None:
            return ColumnWidth(round(kept_width * z), round(kept_width * z), WHOLE)
        full, rank, measured = self._full(section), rank_of(column), self._seen[section]
        least = round((MIN_TOPIC_WIDTH if column.paint == "topic" else MIN_WIDTHS[rank]) * z)
        if not measured.any:
            return ColumnWidth(full, min(full, least), rank, round(LONG_NAME * z) if rank == NAME else 0)
        least = max(measured.width, least) if rank == WHOLE else min(measured.width, least)
        return ColumnWidth(full, min(full, least), rank, round(LONG_NAME * z) if rank == NAME else 0)

    def _kept_apart(self, section: int, need: ColumnWidth) -> ColumnWidth:
        if need.rank != NAME or need.full <= need.least:
            return need
        column, painter = self._view.kind.columns[section], self._view.painter
        names = self._seen[section].names
        least = apart(names, need.full, need.least, lambda name, width: painter.shortened(column, name, width))
        return replace(need, least=least, easy=round(SHORT_NAME * scale()))

    def _visual(self, shown: list[int]) -> list[int]:
        head = self._view.horizontalHeader()
        return sorted(shown, key=head.visualIndex)

    def _rightmost(self, shown: list[int]) -> int:
        return self._visual(shown)[-1]

    def _last_of_words(self, shown: list[int]) -> int | None:
        """The last open column, if it holds words; None if it holds figures or states."""
        for n in reversed(self._visual(shown)):
            column = self._view.kind.columns[n]
            if self._is_folded(n) or column_id(column) in self.kept.widths:
                continue
            return None if column.right or column.paint in {"chip", "letters"} else n
        return None

    def _is_folded(self, section: int) -> bool:
        column = self._view.kind.columns[section]
        has_kept_width = column_id(column) in self.kept.widths
        return self._rows_seen and bool(column.title) and not self._seen[section].any and not has_kept_width

    def _apply(self, widths: dict[int, int]) -> None:
        head, table = self._view.horizontalHeader(), self._view.table
        folded = frozenset(n for n in widths if self._is_folded(n))
        moved = folded != table.folded
        table.folded = folded
        self._fitting = True
        try:
            for n in range(min(head.count(), len(table.columns))):
                if head.isSectionHidden(n) == (n in widths):
                    head.setSectionHidden(n, n not in widths)
                    moved = True
                if n in widths and head.sectionSize(n) != widths[n]:
                    head.resizeSection(n, widths[n])
                    moved = True
        finally:
            self._fitting = False
        if moved:
            head.viewport().update()
            self._view.columns_moved()

    # ---- changes by the user -----------------------------------------------------------------------------------------

    def ask_saved_widths(self) -> None:
        """Register with the nearest window around the table that keeps columns. Tables of dialogs do so too."""
        window = self._view.parentWidget()
        while window is not None and not self.remembered:
            keep = getattr(window, "keep_columns", None)
            if keep is not None:
                keep(self._view)
            window = window.parentWidget()

    def take(self, value: object) -> None:
        """Restore the columns as they were left."""
        old_added, self.kept = self.kept.added, kept_columns(value)
        if old_added != self.kept.added:
            self.columnsEdited.emit()
        self.reorder()
        self.fit()

    def add(self, name: str) -> None:
        """Add a column of the field ``name``."""
        if name not in self.kept.added:
            self.kept.added.append(name)
            self.columnsEdited.emit()
            self.changed.emit()

    def remove(self, name: str) -> None:
        """Remove the column ``name`` that the user added."""
        self.kept.added = [other_name for other_name in self.kept.added if other_name != name]
        self.kept.widths.pop(name, None)
        self.kept.order = [other_name for other_name in self.kept.order if other_name != name]
        self.columnsEdited.emit()
        self.changed.emit()

    def hide(self, name: str) -> None:
        """Hide the column ``name``, unless it is the only one that is left."""
        if len(self._names_shown()) > 1 and name in self._names_shown():
            self.kept.hidden.append(name)
            self._columns_chosen()

    def show(self, name: str) -> None:
        """Show the column ``name`` again."""
        self.kept.hidden = [other_name for other_name in self.kept.hidden if other_name != name]
        self._columns_chosen()

    def _names_shown(self) -> list[str]:
        names = (column_id(column) for column in self._view.kind.columns)
        return [name for name in names if name and name not in self.kept.hidden]

    def _columns_chosen(self) -> None:
        self.changed.emit()
        self.fit()
        self._view.columns_moved()

    def has(self, name: str) -> bool:
        """Return whether the field has a column."""
        return self._section(name) is not None

    def reorder(self) -> None:
        """Put the columns into the remembered order. Columns that are not in it stay where they are."""
        head = self._view.horizontalHeader()
        sections = [n for name in self.kept.order if (n := self._section(name)) is not None]
        if not sections:
            return
        places = sorted(head.visualIndex(n) for n in sections)
        self._fitting = True
        try:
            for n, place in zip(sections, places, strict=True):
                head.moveSection(head.visualIndex(n), place)
        finally:
            self._fitting = False
        self._view.columns_moved()

    def _section(self, name: str) -> int | None:
        return next((n for n, column in enumerate(self._view.kind.columns) if name and column_id(column) == name), None)

    def reset(self) -> None:
        """Restore the original columns, widths and order."""
        head = self._view.horizontalHeader()
        added, self.kept = self.kept.added, SavedColumns()
        if added:
            self.columnsEdited.emit()
        self._fitting = True
        try:
            for n in range(len(self._view.kind.columns)):
                head.moveSection(head.visualIndex(n), n)
        finally:
            self._fitting = False
        self._view.columns_moved()
        self.fit()
        self.changed.emit()

    def full_width(self, section: int) -> int:
        """Width in px that shows the title and all measured values completely."""
        top = self._view.verticalScrollBar().value()
        self._measure(range(top, min(top + self._view.visible_rows() + 1, len(self._view.table.rows))))
        return max(self._head_width(section), self._seen[section].width, round(FOLDED * scale()))

    def fit_one(self, section: int) -> None:
        """Make the column as wide as its title and all visible values, and keep that width. A double click does the
        same.
        """
        self._view.resizeColumnToContents(section)
        self.fit()

    def _keep_width(self, column: Column, width: int) -> None:
        name = column_id(column)
        if name:
            self.kept.widths[name] = max(16, round(width / scale()))
            self.changed.emit()

    def _resized(self, section: int, _old: int, new: int) -> None:
        """Keep the width of a dragged column. The other columns stay until the button is released."""
        if self._fitting or not 0 <= section < len(self._view.kind.columns):
            return
        self._dragging = True
        self._keep_width(self._view.kind.columns[section], new)
        self._view.columns_moved()

    def _moved(self, *_: int) -> None:
        if self._fitting:
            return
        head, columns = self._view.horizontalHeader(), self._view.kind.columns
        order = sorted(range(len(columns)), key=head.visualIndex)
        self.kept.order = [column_id(columns[n]) for n in order if column_id(columns[n])]
        self.changed.emit()
        self.fit()
        self._view.columns_moved()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fit the other columns at the end of a drag."""
        if event.type() == QEvent.Type.MouseButtonRelease and self._dragging:
            self._dragging = False
            self.fit()
        return super().eventFilter(watched, event)

    # ---- the head's menu ---------------------------------------------------------------------------------------------

    def _open_menu(self, position: QPoint) -> None:
        head = self._view.horizontalHeader()
        menu = self.menu(head.logicalIndexAt(position))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(head.viewport().mapToGlobal(position))

    def open_menu(self) -> None:
        """Open the menu below the head's left edge, for the keyboard."""
        self._open_menu(self._view.horizontalHeader().rect().bottomLeft())

    def menu(self, section: int) -> QMenu:
        """The menu for the column under the pointer and for all columns. A ticked column is shown."""
        menu = QMenu(self._view)
        menu.setObjectName("columns.menu")
        columns = self._view.kind.columns
        if 0 <= section < len(columns) and column_id(columns[section]):
            name = column_id(columns[section])
            menu.addAction(tr("Fit this column"), lambda: self.fit_one(section)).setObjectName("columns.fit")
            if name in self.kept.added:
                menu.addAction(tr("Remove this column"), lambda: self.remove(name)).setObjectName("columns.remove")
            else:
                hide = menu.addAction(tr("Hide this column"), lambda: self.hide(name))
                hide.setObjectName("columns.hide")
                hide.setEnabled(len(self._names_shown()) > 1)
            menu.addSeparator()
        self._add_column_ticks(menu)
        menu.addSeparator()
        menu.addAction(tr("Reset columns"), self.reset).setObjectName("columns.reset")
        return menu

    def _add_column_ticks(self, menu: QMenu) -> None:
        """Add a line for each column from left to right; the last one that is shown cannot be hidden."""
        names_shown = self._names_shown()
        for n in self._visual(list(range(len(self._view.kind.columns)))):
            column = self._view.kind.columns[n]
            name = column_id(column)
            if not name or name in self.kept.added:
                continue
            action = menu.addAction(column.head or name)
            action.setObjectName(f"columns.show.{name}")
            action.setCheckable(True)
            action.setChecked(name in names_shown)
            action.setEnabled(names_shown != [name])
            action.toggled.connect(lambda on, name=name: self.show(name) if on else self.hide(name))


FOLDED = 24
"""Width in px at 100 % of a column without a visible value."""
MEASURED_ROWS = 200
"""Rows that are measured when a source is new. Later rows are measured when they come on the screen."""
BODY, SENTENCE, NAME, WHOLE = range(4)
"""The ranks of columns. Of WHOLE columns only the titles are shortened."""
LONG_NAME = 220
"""Px at 100 % to which a name shrinks before it is computed how short it can be without looking like another."""
MIN_WIDTHS = {BODY: 72, SENTENCE: 88, NAME: 64, WHOLE: 68}
"""Minimum px at 100 % of the columns of a rank, unless their values are shorter. Short titles stay complete."""
MIN_TOPIC_WIDTH = 110
"""The same for topics: their coloured bar and about ten letters. Two letters of each tell nothing."""


def rank_of(column: Column) -> int:
    """Return in which turn the column is shortened."""
    if not column.key or column.right or column.elide == "never" or column.paint in {"chip", "letters"}:
        return WHOLE
    if column.slim:
        return BODY
    return NAME if column.elide == "middle" else SENTENCE


def column_id(column: Column) -> str:
    """The name by which a column is remembered; "" for the gutter."""
    return column.key or column.title


@dataclass(frozen=True, slots=True)
class ColumnWidth:
    """The width that a column needs: ``full`` px for its title and all visible values. It shrinks to ``least`` px; a
    name shrinks to ``easy`` px before titles do.
    """

    full: int
    least: int
    rank: int
    easy: int = 0


def fitted(needs: Sequence[ColumnWidth], room: int) -> list[int]:
    """The widths in the order of ``needs``. Their sum is more than ``room`` if no column can shrink further."""
    widths = [need.full for need in needs]
    long_names = [replace(need, least=max(need.least, need.easy)) for need in needs]
    for rank, floors in ((BODY, needs), (SENTENCE, needs), (NAME, long_names), (WHOLE, needs), (NAME, needs)):
        missing = sum(widths) - room
        if missing <= 0:
            break
        _lower(widths, [n for n, need in enumerate(needs) if need.rank == rank], floors, missing)
    return widths


def _lower(widths: list[int], sections: list[int], needs: Sequence[ColumnWidth], missing: int) -> None:
    """Take ``missing`` px from ``sections``, from the widest first. A short column stays complete beside a long one."""
    target = sum(widths[n] for n in sections) - missing

    def capped(level: int) -> list[int]:
        return [max(min(needs[n].least, widths[n]), min(widths[n], level)) for n in sections]

    lower, upper = 0, max((widths[n] for n in sections), default=0)
    while lower < upper:
        level = (lower + upper + 1) // 2
        lower, upper = (level, upper) if sum(capped(level)) <= target else (lower, level - 1)
    for n, width in zip(sections, capped(lower), strict=True):
        widths[n] = width


def apart(names: Iterable[str], full: int, least: int, shorten: Callable[[str, int], str], step: int = 8) -> int:
    """The smallest width from ``least`` on at which no two different ``names`` look alike after ``shorten`` (text,
    px); ``full`` if there is none.
    """
    different = set(names)
    for width in range(least, full, step):
        if len({shorten(name, width) for name in different}) == len(different):
            return width
    return full


@dataclass
class SavedColumns:
    """The user's changes to the columns of one table: dragged widths in px at 100 %, the order, added fields, hidden
    columns.
    """

    widths: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """The changes as JSON for the settings; empty without changes."""
        parts = {"widths": self.widths, "order": self.order, "added": self.added, "hidden": self.hidden}
        return {name: part for name, part in parts.items() if part}


def kept_columns(value: object) -> SavedColumns:
    """Read what :meth:`SavedColumns.record` wrote; anything else counts as no changes."""
    settings = value if isinstance(value, dict) else {}
    widths = settings.get("widths")
    return SavedColumns(
        {k: v for k, v in widths.items() if isinstance(v, int) and 16 <= v <= 4000} if isinstance(widths, dict) else {},
        *(_names(settings.get(part)) for part in ("order", "added", "hidden")),
    )


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
