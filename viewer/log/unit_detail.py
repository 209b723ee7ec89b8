"""A unit decoded: fields by group, with remarks and links; the chosen field goes with the painted bytes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from engine.codec.message import Unit
from viewer.log.columns import field_name
from viewer.log.unit_fields import Group, Line
from viewer.look.assets import tr
from viewer.look.theme import C, follow, mono, px, ui
from viewer.widgets.cell_filter import line_term
from viewer.widgets.columns import elsewhere
from viewer.widgets.focus import FocusRing
from viewer.widgets.record_menu import RowActions, add_row_commands, add_terms, do
from viewer.widgets.record_table import ACCESSIBLE_TEXT_ROLE, ValueRole
from viewer.widgets.row_commands import Facts

ROW = 24
NAMES = 216
MIN_NAMES_WIDTH = 112
LINE_ROLE = int(Qt.ItemDataRole.UserRole) + 10
GROUP_ROLE = int(Qt.ItemDataRole.UserRole) + 11
Index = QModelIndex | QPersistentModelIndex


class UnitDetail(QTreeView):
    """``fieldChosen(name)`` as a field is chosen ("" for a line that is none), ``groupChosen(group)`` as a head is,
    ``placeRequested(place)`` as a link is followed,
    ``termRequested(action_name, term)`` and ``columnRequested(field)`` from the context menu.
    """

    fieldChosen = Signal(str)
    groupChosen = Signal(object)
    placeRequested = Signal(object)
    termRequested = Signal(str, str)
    columnRequested = Signal(str)
    changeRequested = Signal(str)
    """The field whose value shall change."""

    def __init__(
        self,
        name: str = "unit.detail",
        shown_columns: Callable[[], frozenset[str]] = frozenset,
        parent: QWidget | None = None,
    ) -> None:
        """``shown_columns`` returns the fields that the table above shows already."""
        super().__init__(parent)
        self._shown_columns = shown_columns
        FocusRing(self)
        self.setObjectName(name)
        self.setAccessibleName(tr("Decoded message"))
        self._closed: set[str] = set()
        self._opened: set[str] = set()
        self._filling = False
        self.unit: Unit | None = None
        """The unit whose fields are shown: conditions are made of its values, not of what is written."""
        self.doer: RowActions | None = None
        self.has_links = True
        """False: its unit is in no open store, so that no field leads anywhere."""
        self._items = QStandardItemModel(self)
        self._items.setColumnCount(2)
        self.setModel(self._items)
        self.setItemDelegate(_Painter(self))
        self.setHeaderHidden(True)
        self.setUniformRowHeights(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setIndentation(px(14))
        self.setMouseTracking(True)
        self.setExpandsOnDoubleClick(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.header().setStretchLastSection(True)
        self.header().setMinimumSectionSize(20)
        self.selectionModel().currentRowChanged.connect(self._current_changed)
        self.expanded.connect(lambda index: self._folded(index, False))
        self.collapsed.connect(lambda index: self._folded(index, True))
        follow(self, self._retheme)

    def show_groups(self, groups: Sequence[Group]) -> None:
        """Show a unit's groups; the chosen field and folded groups stay as for the previous unit."""
        chosen, scrolled = self.chosen_field, self.verticalScrollBar().value()
        self._filling = True
        try:
            self._items.removeRows(0, self._items.rowCount())
            for group in groups:
                self._items.appendRow(self._group_items(group))
            for number, group in enumerate(groups):
                index = self._items.index(number, 0)
                opened = group.title in self._opened or (group.opened and group.title not in self._closed)
                self.setExpanded(index, opened)
                for child, line in enumerate(group.lines):
                    if not line.folded:
                        self.expand(self._items.index(child, 0, index))
                    if line.is_sentence:
                        self.setFirstColumnSpanned(child, index, True)
        finally:
            self._filling = False
        self._fit()
        if chosen and not self.choose_field(chosen):
            self.setCurrentIndex(QModelIndex())
        self.verticalScrollBar().setValue(scrolled)

    def clear(self) -> None:
        """Show nothing."""
        self.show_groups(())

    @property
    def chosen_field(self) -> str:
        """Name of the chosen field; "" where none is."""
        line = self._line(self.currentIndex())
        return line.name if line is not None else ""

    def choose_field(self, name: str) -> bool:
        """Choose the field ``name`` without a signal; opens its group. False if the unit has none."""
        index = self._find(name)
        self._filling = True
        try:
            if index is None:
                self.setCurrentIndex(QModelIndex())
                return False
            self.setCurrentIndex(index)
            self.scrollTo(index)
        finally:
            self._filling = False
        return True

    def _find(self, name: str) -> QModelIndex | None:
        stack = [self._items.index(row, 0) for row in range(self._items.rowCount())]
        while stack:
            index = stack.pop()
            line = self._line(index)
            if name and line is not None and line.name == name:
                return index
            stack += [self._items.index(row, 0, index) for row in range(self._items.rowCount(index))]
        return None

    def _group_items(self, group: Group) -> list[QStandardItem]:
        head, tail = QStandardItem(tr(group.title)), QStandardItem(group.summary)
        head.setData(group, GROUP_ROLE)
        head.setData(f"{tr(group.title)} {group.summary}", ACCESSIBLE_TEXT_ROLE)
        for line in group.lines:
            head.appendRow(self._line_items(line))
        return [head, tail]

    def _line_items(self, line: Line) -> list[QStandardItem]:
        if not self.has_links and line.place is not None:
            line = replace(line, place=None, note="" if line.note.startswith("→") else line.note)
        name = line.value if line.is_sentence else line.label or line.name
        head, tail = QStandardItem(name), QStandardItem(line.value)
        for item in (head, tail):
            item.setData(line, LINE_ROLE)
            item.setData(f"{line.label or line.name} {line.value} {line.note}".strip(), ACCESSIBLE_TEXT_ROLE)
            item.setToolTip(
                f"{line.value}\n{line.note}".strip() if len(line.value) + len(line.note) > 24 else line.note
            )
        tail.setData(line.value, ValueRole)
        for child in line.lines:
            head.appendRow(self._line_items(child))
        return [head, tail]

    def _line(self, index: Index) -> Line | None:
        line = index.sibling(index.row(), 0).data(LINE_ROLE) if index.isValid() else None
        return line if isinstance(line, Line) else None

    def _folded(self, index: QModelIndex, closed: bool) -> None:
        group = index.data(GROUP_ROLE)
        if self._filling or not isinstance(group, Group):
            return
        (self._closed.add if closed else self._closed.discard)(group.title)
        (self._opened.discard if closed else self._opened.add)(group.title)

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if self._filling:
            return
        group = current.sibling(current.row(), 0).data(GROUP_ROLE) if current.isValid() else None
        if isinstance(group, Group):
            self.groupChosen.emit(group)
        else:
            self.fieldChosen.emit(self._field_of(current))

    def _field_of(self, index: QModelIndex) -> str:
        """Return the field of a line, or of the line above it in the tree."""
        while (line := self._line(index)) is not None:
            if line.name:
                return line.name
            index = index.parent()
        return ""

    def _retheme(self) -> None:
        self.setIndentation(px(14))
        self._fit()
        self.viewport().update()

    def _fit(self) -> None:
        moment = QFontMetrics(mono(12)).horizontalAdvance("2026-11-20 09:41:07.225") + px(22)
        names = self._names_width()
        self.header().resizeSection(
            0, max(px(MIN_NAMES_WIDTH), min(px(NAMES), names, self.viewport().width() - moment))
        )

    def _names_width(self) -> int:
        """Return the width in px of the longest field name in the tree; the values get the rest."""
        metrics, deepest = QFontMetrics(mono(12)), 0
        for group in range(self._items.rowCount()):
            parent = self._items.item(group, 0)
            for line in range(parent.rowCount()):
                index = parent.child(line, 0).index()
                if not self.isFirstColumnSpanned(line, parent.index()):
                    deepest = max(deepest, metrics.horizontalAdvance(str(index.data() or "")))
        return deepest + 2 * self.indentation() + px(14)

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        self._fit()

    # ---- links -------------------------------------------------------------------------------------------------------

    def _link_at(self, point: QPoint) -> Line | None:
        index = self.indexAt(point)
        line = self._line(index)
        if line is None or line.place is None or index.column() != 1:
            return None
        left_x = self.visualRect(index).left() + px(4)
        note = QFontMetrics(ui(12)).horizontalAdvance(line.note) + px(10) if line.note.startswith("→") else 0
        return (
            line
            if left_x <= point.x() <= left_x + QFontMetrics(mono(12)).horizontalAdvance(line.value) + note
            else None
        )

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        link = self._link_at(event.position().toPoint())
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor if link is None else Qt.CursorShape.PointingHandCursor)
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        link = self._link_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and link is not None:
            self.placeRequested.emit(link.place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_F10 and event.modifiers() == Qt.KeyboardModifier.ShiftModifier:
            self._open_menu(self.currentIndex(), self._below(self.currentIndex()))
            return
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            line = self._line(self.currentIndex())
            if line is not None and line.place is not None:
                in_new_window = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
                self.placeRequested.emit(elsewhere(line.place) if in_new_window else line.place)
                return
        super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() != QContextMenuEvent.Reason.Mouse
        index = self.currentIndex() if by_key else self.indexAt(event.pos())
        self._open_menu(index, self._below(index) if by_key else event.globalPos())

    def _below(self, index: Index) -> QPoint:
        return self.viewport().mapToGlobal(self.visualRect(index).bottomLeft() + QPoint(px(40), 0))

    def _open_menu(self, index: QModelIndex, global_position: QPoint) -> None:
        line = self._line(index)
        if line is None:
            return
        self.setCurrentIndex(index)
        menu = self.menu(line)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(global_position)

    def menu(self, line: Line) -> QMenu:
        """Return the menu of the field."""
        menu = QMenu(self)
        menu.setObjectName("unit.detail.menu")
        self._fill(menu, line)
        return menu

    def fill_menu(self, menu: QMenu, name: str) -> None:
        """Add the actions for the field ``name`` of the unit, for the view that shows its bytes."""
        index = self._find(name)
        line = self._line(index) if index is not None else None
        if line is not None:
            self._fill(menu, line)

    def _fill(self, menu: QMenu, line: Line) -> None:
        facts = self._facts(line)
        filters = None if facts.term is None else lambda menu: add_terms(menu, facts.term or "", self._use_term)
        add_row_commands(menu, facts, lambda command, facts: self._do(command, facts, line), self.doer, filters)

    def _facts(self, line: Line) -> Facts:
        unit, able = self.unit, self.doer.able() if self.doer is not None else frozenset()
        name = field_name(line.name)
        facts = Facts(
            "field",
            line.name,
            line.place,
            term=line.term or line_term(line.name, line.value, unit),
            able=able,
            column="" if name in self._shown_columns() else name,
        )
        if unit is None:
            return facts
        key = unit.keys[0] if unit.keys else unit.unique_key or ""
        command = ["storescope", "units", "STORE", "--from", str(unit.offset), "--limit", "1", "--json"]
        return replace(
            facts,
            offset=unit.offset,
            size=unit.size,
            topic=unit.topic,
            queue_id=unit.queue_id,
            queue_offset=unit.queue_offset,
            key=key,
            command=shlex.join(command),
        )

    def _do(self, command: str, facts: Facts, line: Line) -> None:
        name, clipboard = line.label or line.name, QGuiApplication.clipboard()
        texts = {
            "copy.cell": line.value,
            "copy.row": f"{name}={line.value}",
            "copy.json": json.dumps({name: line.value}, ensure_ascii=False),
        }
        if command in texts:
            clipboard.setText(texts[command])
        elif command == "go.link":
            self.placeRequested.emit(line.place)
        elif command == "go.own" and line.place is not None:
            self.placeRequested.emit(elsewhere(line.place))
        elif command == "keep.colour":
            self._use_term("colour", facts.term or "")
        elif command == "keep.column":
            self.columnRequested.emit(facts.column)
        elif command == "edit.field":
            self.changeRequested.emit(line.name)
        else:
            do(self, self.doer, command, facts)

    def term(self) -> str | None:
        """The chosen field as a condition of the filter language; None where it is none."""
        line = self._line(self.currentIndex())
        return line_term(line.name, line.value, self.unit) if line is not None else None

    def _use_term(self, action_name: str, term: str) -> None:
        if action_name == "copy":
            QGuiApplication.clipboard().setText(term)
        else:
            self.termRequested.emit(action_name, term)

    def drawBranches(self, painter: QPainter, rect: QRect, index: Index) -> None:
        """The ground of a chosen row reaches the left edge, below the arrow that folds it."""
        if self.selectionModel().isSelected(index):
            painter.fillRect(rect, C("select"))
            painter.fillRect(QRect(0, rect.top(), 3, rect.height()), C("accent"))
        super().drawBranches(painter, rect, index)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self.viewport().unsetCursor()
        return bool(super().viewportEvent(event))


def value_beside_link(line: Line, text: str, metrics: QFontMetrics, small: QFontMetrics, width: int) -> str:
    """Return ``text``, shortened to ``width`` px less the room of the words of its link, which are short."""
    link_width = 0
    if line.place is not None and line.note:
        link_width = min(small.horizontalAdvance(line.note) + px(11), width // 2)
    return metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, width - link_width)


class _Painter(QStyledItemDelegate):
    """Rows of the tree: group heads in words, fields in mono with a dim remark."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(px(60), px(ROW))

    def paint(self, p: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        view = self.parent()
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        rect: QRect = option.rect
        p.save()
        if chosen and isinstance(view, UnitDetail):
            p.fillRect(rect, C("select"))
        line = index.sibling(index.row(), 0).data(LINE_ROLE)
        text = str(index.data() or "")
        inner = rect.adjusted(px(4), 0, -px(6), 0)
        if isinstance(line, Line):
            self._paint_line(p, inner, line, text, index.column(), chosen)
        else:
            head = index.column() == 0
            p.setFont(ui(13, 600) if head else ui(12))
            p.setPen(C("text" if head else "text2" if chosen else "text3"))
            shown = QFontMetrics(p.font()).elidedText(text, Qt.TextElideMode.ElideRight, inner.width())
            p.drawText(inner, Qt.AlignmentFlag.AlignVCenter, shown)
        p.restore()

    def _paint_line(self, p: QPainter, inner: QRect, line: Line, text: str, column: int, chosen: bool) -> None:
        p.setFont(ui(12) if line.is_sentence else mono(12))
        metrics = QFontMetrics(p.font())
        if line.is_sentence:
            p.setPen(C("text"))
            p.drawText(
                inner,
                Qt.AlignmentFlag.AlignVCenter,
                metrics.elidedText(text, Qt.TextElideMode.ElideRight, inner.width()),
            )
            return
        if column == 0:
            p.setPen(C("text2"))
            p.drawText(
                inner,
                Qt.AlignmentFlag.AlignVCenter,
                metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, inner.width()),
            )
            return
        small = QFontMetrics(ui(12))
        shown = value_beside_link(line, text, metrics, small, inner.width())
        p.setPen(C("accent" if line.place is not None else "text"))
        p.drawText(inner, Qt.AlignmentFlag.AlignVCenter, shown)
        note_left = inner.left() + metrics.horizontalAdvance(shown) + (px(10) if shown else 0)
        room = inner.right() - note_left
        if line.note and room > px(24):
            p.setFont(ui(12))
            p.setPen(C("text2" if line.tone == "text3" and chosen else line.tone))
            note = small.elidedText(line.note, Qt.TextElideMode.ElideRight, room)
            p.drawText(QRect(note_left, inner.top(), room, inner.height()), Qt.AlignmentFlag.AlignVCenter, note)
