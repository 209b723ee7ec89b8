"""The menus of what is drawn and of the tree's lines, by mouse, Menu key and Shift+F10; their commands are the one
table's (:mod:`viewer.widgets.row_commands`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QMenu, QWidget

from viewer.widgets.marks import Mark
from viewer.widgets.record_menu import Doer, add_row_commands, add_terms, do
from viewer.widgets.row_commands import Facts

Found = tuple[Mark, QPointF]
"""A mark, and where its menu opens for the keys."""


class MenuDoor(QObject):
    """Opens the menu of a widget's part: ``make(point)`` gives it and where it opens; ``point`` is None for the part
    that has the focus, and None comes back where nothing is there.
    """

    def __init__(self, widget: QWidget, make: Callable[[QPointF | None], tuple[QMenu, QPointF] | None]) -> None:
        super().__init__(widget)
        self._make = make
        self._widget = widget.viewport() if isinstance(widget, QAbstractItemView) else widget
        for one in {widget, self._widget}:
            one.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """The right button, the Menu key, Shift+F10."""
        if event.type() == QEvent.Type.ContextMenu and isinstance(event, QContextMenuEvent):
            by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
            self._open(QPointF(event.pos()) if by_mouse else None, event.globalPos())
            return True
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            shift = event.modifiers() == Qt.KeyboardModifier.ShiftModifier
            if event.key() == Qt.Key.Key_F10 and shift:
                self._open(None, QPoint())
                return True
        return False

    def _open(self, point: QPointF | None, at: QPoint) -> None:
        found = self._make(point)
        if found is not None:
            menu, below = found
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(at if point is not None else self._widget.mapToGlobal(below.toPoint()))


class MarkMenu(MenuDoor):
    """The menu of what ``find`` gives; ``doer`` is the view's, None without a store."""

    def __init__(self, widget: QWidget, find: Callable[[QPointF | None], Found | None]) -> None:
        super().__init__(widget, self._menu)
        self._find, self._parent = find, widget
        self.doer: Doer | None = None

    def _menu(self, point: QPointF | None) -> tuple[QMenu, QPointF] | None:
        found = self._find(point)
        return (self.menu_of(found[0]), found[1]) if found is not None else None

    def menu_of(self, mark: Mark) -> QMenu:
        """The menu of a mark."""
        menu = QMenu(self._parent)
        menu.setObjectName(f"{self._parent.objectName()}.menu")
        facts = replace(mark.facts, able=self.doer.able() if self.doer is not None else frozenset())
        filters = None if facts.term is None or self.doer is None else lambda menu: self._filters(menu, facts)
        add_row_commands(menu, facts, lambda command, facts: self._do(command, facts, mark), self.doer, filters)
        return menu

    def _filters(self, menu: QMenu, facts: Facts) -> None:
        add_terms(menu, facts.term or "", self._use_term)

    def _use_term(self, how: str, term: str) -> None:
        if how == "copy":
            QGuiApplication.clipboard().setText(term)
        elif self.doer is not None:
            self.doer.filter(how, term)

    def _do(self, command: str, facts: Facts, mark: Mark) -> None:
        texts = {
            "copy.cell": mark.value,
            "copy.row": mark.words,
            "copy.json": json.dumps(mark.record, ensure_ascii=False),
        }
        if command in texts:
            QGuiApplication.clipboard().setText(texts[command])
        else:
            do(self._parent, self.doer, command, facts)
