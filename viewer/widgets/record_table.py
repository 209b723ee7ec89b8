"""The one table model: any page of records under any columns.

Rows are Python objects, shown through a :class:`~viewer.widgets.columns.RecordKind`. ``data`` compares roles with plain
numbers: an enum comparison in Python costs 3 µs a call, and a table asks hundreds of times a frame. Positions and
offsets stay Python integers; nothing here is narrowed to 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from viewer.widgets.columns import Column, Record, RecordKind, RowAppearance

DISPLAY_ROLE = 0
TOOL_TIP_ROLE = 3
ALIGNMENT_ROLE = 7
ACCESSIBLE_TEXT_ROLE = 11
ACCESSIBLE_DESCRIPTION_ROLE = 12
ValueRole = int(Qt.ItemDataRole.UserRole) + 1
"""Role that gives a cell's raw Python value."""
RecordRole = int(Qt.ItemDataRole.UserRole) + 2
"""Role that gives the row's record itself."""

_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_CENTER = int(Qt.AlignmentFlag.AlignCenter)
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
FOLDED_HEAD = "⋮"
SORT_ARROWS = {Qt.SortOrder.DescendingOrder: " ▾", Qt.SortOrder.AscendingOrder: " ▴"}
"""After the title of the sorted column. The style would draw its own arrow over the last letter."""
AnyIndex = QModelIndex | QPersistentModelIndex


class RecordTable(QAbstractTableModel):
    """A table model of rows of one kind. The texts of a row are computed once and kept until the rows change."""

    def __init__(self, kind: RecordKind, rows: Sequence[Record] = (), parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.kind = kind
        self.rows: list[Record] = list(rows)
        self._texts: dict[int, tuple[Record, list[str]]] = {}
        self._looks: dict[int, tuple[Record, RowAppearance | None]] = {}
        """By the row's id, with the row itself: while it is held no other row can have this id."""
        self.sorted_by, self.order = -1, Qt.SortOrder.AscendingOrder
        """The column by which the rows are sorted, −1 for none."""
        self.folded: frozenset[int] = frozenset()
        """Columns without a visible value. Their head is only a mark; the title is in the tool tip."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.kind.columns

    def set_rows(self, rows: Sequence[Record]) -> None:
        """Replace all rows. The texts of rows that stay are kept."""
        self.beginResetModel()
        self.rows = list(rows)
        row_ids = {id(row) for row in self.rows}
        self._texts = {key: texts for key, texts in self._texts.items() if key in row_ids}
        self._looks = {key: look for key, look in self._looks.items() if key in row_ids}
        self.endResetModel()

    def set_kind(self, kind: RecordKind) -> None:
        """Show the same rows under other columns."""
        self.beginResetModel()
        self.kind = kind
        self._texts.clear()
        self._looks.clear()
        self.endResetModel()

    def set_order(self, section: int, order: Qt.SortOrder) -> None:
        """Set the column that the rows are sorted by; −1 for none."""
        if (section, order) != (self.sorted_by, self.order):
            self.sorted_by, self.order = section, order
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

    def replace_row(self, number: int, row: Record) -> None:
        """Replace row ``number`` with another record."""
        self._forget(self.rows[number])
        self.rows[number] = row
        self.row_changed(number)

    def _forget(self, row: Record) -> None:
        self._texts.pop(id(row), None)
        self._looks.pop(id(row), None)

    def row_changed(self, number: int) -> None:
        """The record in row ``number`` was changed in place."""
        self._forget(self.rows[number])
        self.dataChanged.emit(self.index(number, 0), self.index(number, len(self.columns) - 1))

    def retranslate(self) -> None:
        """Compute all texts again after language, zone or theme has changed."""
        self._texts.clear()
        self._looks.clear()
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, len(self.columns) - 1))
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

    def texts(self, number: int) -> list[str]:
        """The displayed texts of the cells of row ``number``."""
        row = self.rows[number]
        cached = self._texts.get(id(row))
        if cached is None:
            cached = self._texts[id(row)] = (row, [column.text(row) for column in self.kind.columns])
        return cached[1]

    def look(self, number: int) -> RowAppearance | None:
        """The look of row ``number`` if it differs from the others, else None."""
        row = self.rows[number]
        cached = self._looks.get(id(row))
        if cached is None:
            cached = self._looks[id(row)] = (row, self.kind.look(row))
        return cached[1]

    def rowCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.kind.columns)

    def data(self, index: AnyIndex, role: int = DISPLAY_ROLE) -> object:
        number, section = index.row(), index.column()
        if not (0 <= number < len(self.rows) and 0 <= section < len(self.kind.columns)):
            return None
        if role == DISPLAY_ROLE:
            return self._display(number, section)
        if role == ValueRole:
            return self.kind.columns[section].value(self.rows[number])
        if role == RecordRole:
            return self.rows[number]
        if role == ALIGNMENT_ROLE:
            return _RIGHT if self.kind.columns[section].right else _LEFT
        if role == TOOL_TIP_ROLE:
            return self._tip(number, section)
        if role == ACCESSIBLE_TEXT_ROLE:
            return self._spoken(number, section)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY_ROLE) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.kind.columns):
            return None
        column = self.kind.columns[section]
        if role == DISPLAY_ROLE:
            arrow = SORT_ARROWS.get(self.order, "") if section == self.sorted_by else ""
            return FOLDED_HEAD if section in self.folded else self.head(section) + arrow
        if role == TOOL_TIP_ROLE:
            return " · ".join(part for part in (self.head(section), column.key) if part) or None
        if role == ACCESSIBLE_TEXT_ROLE:
            return self.head(section)
        if role == ALIGNMENT_ROLE:
            return _CENTER if section in self.folded else _RIGHT if column.right else _LEFT
        if role == ACCESSIBLE_DESCRIPTION_ROLE:
            return column.key or None
        return None

    def head(self, section: int) -> str:
        """The title of a column, folded or not."""
        return self.kind.columns[section].head

    def _display(self, number: int, section: int) -> str:
        look = self.look(number)
        if look is not None and look.words and section == look.words_from:
            return look.words
        return self.texts(number)[section]

    def _tip(self, number: int, section: int) -> str | None:
        column = self.kind.columns[section]
        if column.tip is not None:
            return column.tip(self.rows[number]) or None
        text = self._display(number, section)
        return column.in_words(self.rows[number]) if text and column.paint == "topic" else text or None

    def _spoken(self, number: int, section: int) -> str:
        """The text for screen readers: on the first cell the verdict and the whole row, on the others the cell with
        its title.
        """
        if section == 0:
            return self.kind.speak(self.rows[number])
        text = (
            self._tip(number, section)
            if self.kind.columns[section].paint == "topic"
            else self._display(number, section)
        )
        return f"{self.head(section)} {text}" if text else ""
