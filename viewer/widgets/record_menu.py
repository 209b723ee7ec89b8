"""The context menus of tables, of drawn marks and of the tree's lines.

All their commands come from the table in :mod:`viewer.widgets.row_commands`. A menu opens by mouse, Menu key or
Shift+F10.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QAction, QContextMenuEvent, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QDialog,
    QMenu,
    QProxyStyle,
    QStyle,
    QStyleHintReturn,
    QStyleOption,
    QVBoxLayout,
    QWidget,
)

from viewer.look.assets import tr, words
from viewer.look.field_words import explained
from viewer.look.help_pages import reference_title
from viewer.look.theme import px
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row
from viewer.widgets.cell_filter import CONDITION_KINDS
from viewer.widgets.columns import Record, RecordKind, elsewhere
from viewer.widgets.drawn_marks import DrawnMark
from viewer.widgets.row_commands import (
    BYTES,
    COPY,
    FILTER,
    FOLLOW,
    KEEP,
    NEEDS_STORE,
    NO_STORE,
    NO_TERM,
    Facts,
    facts_of,
    mqadmin,
    name_of,
    parts_of,
    row_commands_of,
)
from viewer.widgets.row_table import RowTable


class MenuTable(RowTable):
    """A table whose cells have a menu, with the settings of its owner. ``termRequested(action_name, term)`` asks to
    filter the rows by a condition of a cell.
    """

    termRequested = Signal(str, str)

    def __init__(self, name: str, kind: RecordKind, parent: QWidget | None = None) -> None:
        super().__init__(name, kind, parent)
        self.copier: Callable[[str, Record], str | None] | None = None
        self.filters = False
        """A filter line filters these rows. Without one a cell's condition leads to ``filter_place``."""
        self.filter_place: Callable[[str, str], object] | None = None
        self.doer: RowActions | None = None
        """The view of a store that runs the menu's commands; None in a dialog."""
        self.menuRequested.connect(lambda row, section, position: open_menu(self, row, section, position))


def text_of(view: MenuTable, form: str, row: Record, section: int) -> str | None:
    """The text that a copy as ``cell``, ``row``, ``json`` or ``cli`` gives; None if there is none, or if the pane
    fetches it.
    """
    kind = view.kind
    if view.copier is not None and form in ("json", "cli"):
        text = view.copier(form, row)
        if text is not None or form == "cli":
            return text
    if form == "cell":
        return kind.columns[section].text(row) if 0 <= section < len(kind.columns) else None
    if form == "row":
        return kind.as_text(row)
    if form == "json":
        return json.dumps(kind.as_record(row), ensure_ascii=False, default=_plain)
    if form == "cli" and kind.command is not None:
        return shlex.join(kind.command(row))
    return None


def copy_text(view: MenuTable, form: str, row: Record, section: int) -> str | None:
    """Copy the text of :func:`text_of` to the clipboard."""
    text = text_of(view, form, row, section)
    if text is not None:
        QGuiApplication.clipboard().setText(text)
    return text


def open_menu(view: MenuTable, row: Record, section: int, position: QPoint) -> None:
    """Show the menu of a cell at ``position`` (global). It deletes itself when it closes."""
    menu = build_menu(view, row, section)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.popup(position)


class RowActions(Protocol):
    """The actions that the view of a store offers to its tables. It is asked only when a menu opens."""

    def able(self) -> frozenset[str]: ...
    def do(self, command: str, facts: Facts) -> None: ...
    def filter(self, action_name: str, term: str) -> None: ...
    def say(self, words: str) -> None: ...


Run = Callable[[str, Facts], object]


def build_menu(view: MenuTable, row: Record, section: int) -> QMenu:
    """Build the menu of a cell."""
    column = view.kind.columns[section] if 0 <= section < len(view.kind.columns) else None
    able = view.doer.able() if view.doer is not None else frozenset()
    facts = facts_of(view.kind, row, column, able, text_of(view, "cli", row, section))
    menu = QMenu(view)
    menu.setObjectName(f"{view.objectName()}.menu")

    def run(command: str, facts: Facts) -> None:
        if command in COPIES:
            copy_text(view, COPIES[command], row, section)
        elif command == "go.link":
            view.placeRequested.emit(facts.link)
        elif command == "go.own" and facts.link is not None:
            view.placeRequested.emit(elsewhere(facts.link))
        elif command == "keep.colour" and view.filters:
            view.termRequested.emit("colour", facts.term)
        else:
            do(view, view.doer, command, facts)

    filters = view.filters or view.filter_place is not None
    add_row_commands(menu, facts, run, view.doer, lambda menu: _add_filters(view, menu, facts) if filters else None)
    return menu


COPIES = {"copy.cell": "cell", "copy.row": "row", "copy.json": "json", "copy.cli": "cli"}


def do(parent: QWidget, doer: RowActions | None, command: str, facts: Facts) -> None:
    """Run a command that needs no table: copy, or explain a field. All others, also the page of a finding, go to the
    view.
    """
    if command == "copy.mqadmin":
        QGuiApplication.clipboard().setText(mqadmin(facts))
    elif command == "copy.step":
        QGuiApplication.clipboard().setText(facts.finding.command)
    elif command == "explain.field" and (facts.finding is None or doer is None):
        ExplainBox(facts, parent).open()
    elif doer is not None:
        doer.do(command, facts)


SUBMENUS = {
    FOLLOW: words("Follow"),
    KEEP: words("Keep and colour"),
    COPY: words("Copy as"),
    BYTES: words("Bytes and changes"),
}
"""Submenus with the further commands of a part: nobody finds a command in a menu of more than fifteen lines."""
FIRST_LINES = {FOLLOW: 1, KEEP: 1, COPY: 1, BYTES: 0}
"""Commands of these parts that stand in the menu itself."""


def add_row_commands(
    menu: QMenu, facts: Facts, run: Run, doer: RowActions | None, filters: Callable[[QMenu], object] | None
) -> None:
    """Add every command of this kind of row in the order of the parts. A command that is not available is grey. Its
    reason is in the tool tip and, while it is highlighted, in the status bar.

    ``doer`` is None without a store to act on; ``filters`` adds the conditions of the cell.
    """
    menu.setToolTipsVisible(True)
    _tell_reasons(menu, doer)
    commands, parts = row_commands_of(facts.kind), parts_of(facts.kind)
    for part in parts:
        if not menu.isEmpty():
            menu.addSeparator()
        if part == FILTER:
            if facts.term is not None and filters is not None:
                filters(menu)
            else:
                _add(menu, "filter.only", tr("Only this value"), NO_TERM if facts.term is None else NO_STORE)
        part_menu, part_commands = menu, [command for command in commands if command.part == part]
        first_lines = FIRST_LINES.get(part, len(part_commands))
        for number, command in enumerate(part_commands):
            if number == first_lines < len(part_commands) - 1:
                part_menu = menu.addMenu(tr(SUBMENUS[part]))
                part_menu.setToolTipsVisible(True)
                _tell_reasons(part_menu, doer)
            reason = command.without(facts) or (NO_STORE if command.id in NEEDS_STORE and doer is None else "")
            action = _add(part_menu, command.id, tr(name_of(command, facts.kind)), reason)
            action.triggered.connect(partial(run, command.id, facts))


def _add(menu: QMenu, name: str, text: str, reason: str) -> QAction:
    action = menu.addAction(text)
    action.setObjectName(name)
    action.setEnabled(not reason)
    if reason:
        action.setToolTip(tr(reason))
    return action


class MenuStyle(QProxyStyle):
    """A style in which grey entries can be highlighted, so that their reason can be shown."""

    def styleHint(
        self,
        hint: QStyle.StyleHint,
        option: QStyleOption | None = None,
        widget: QWidget | None = None,
        returnData: QStyleHintReturn | None = None,
    ) -> int:
        if hint == QStyle.StyleHint.SH_Menu_AllowActiveAndDisabled:
            return 1
        return super().styleHint(hint, option, widget, returnData)


def _menu_style() -> MenuStyle:
    """Return the style that all menus share. It lives as long as the application."""
    app = QApplication.instance()
    style = app.findChild(MenuStyle) if app is not None else None
    if not isinstance(style, MenuStyle):
        style = MenuStyle("Fusion")
        style.setParent(app)
    return style


def _tell_reasons(menu: QMenu, doer: RowActions | None) -> None:
    """Show the reason of a grey entry in the status bar while it is highlighted, then restore the status bar's
    sentence.
    """
    menu.setStyle(_menu_style())
    if doer is None:
        return
    reason_shown = [False]

    def say(action: QAction | None) -> None:
        reason = action.toolTip() if action is not None and not action.isEnabled() else ""
        if reason or reason_shown[0]:
            reason_shown[0] = bool(reason)
            doer.say(reason)

    menu.hovered.connect(say)
    menu.aboutToHide.connect(lambda: say(None))


def _add_filters(view: MenuTable, menu: QMenu, facts: Facts) -> None:
    """Add the filter actions for a cell's condition: on this table if it is filtered, else on the log."""
    log_menu = None if view.filters else menu.addMenu(tr("In the log"))
    add_terms(menu, facts.term or "", lambda action_name, term: use_term(view, action_name, term), log_menu)


def add_terms(menu: QMenu, term: str, use: Callable[[str, str], object], submenu: QMenu | None = None) -> None:
    """Add every way to use a condition as an action that calls ``use(action_name, term)``: the first to ``menu`` and
    the others to a submenu, or all to ``submenu``.
    """
    shown = (term if len(term) <= 60 else term[:59] + "…").replace("&", "&&")
    for number, (action_name, text) in enumerate(CONDITION_KINDS):
        if number == 1 and submenu is None:
            submenu = menu.addMenu(tr("Filter by this value"))
        action = (submenu or menu).addAction(tr(text, term=shown), partial(use, action_name, term))
        action.setObjectName(f"filter.{action_name}")


def use_term(view: MenuTable, action_name: str, term: str) -> None:
    """Filter by ``term``: in the table itself, or through a place in the log."""
    if action_name == "copy":
        QGuiApplication.clipboard().setText(term)
    elif view.filters:
        view.termRequested.emit(action_name, term)
    elif view.filter_place is not None:
        view.placeRequested.emit(view.filter_place(action_name, term))


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, (bytes, bytearray)) else str(value)


class ExplainBox(QDialog):
    """A dialog with a field's name, its meaning, and where the help says more."""

    def __init__(self, facts: Facts, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("explain.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        title, text, source = words_of(facts)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(f"{text} {source}")
        self.setMinimumWidth(px(420))
        close = Button(tr("Close"), "primary")
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(14))
        layout.setSpacing(px(8))
        layout.addWidget(Label(title, 15, "text", 600, select=True))
        layout.addWidget(Label(text, 13, "text", wrap=True, select=True))
        layout.addWidget(Label(source, 12, "text3", wrap=True, select=True))
        layout.addWidget(row(None, close))
        close.setFocus()


def words_of(facts: Facts) -> tuple[str, str, str]:
    """Return title, text, and where the help says more."""
    explanation = explained(facts.kind, facts.field)
    if explanation is None:
        return facts.field, "", ""
    return facts.field, tr(explanation[0]), tr("More in the help: {page}", page=reference_title(explanation[1]))


Found = tuple[DrawnMark, QPointF]
"""A mark, and the place where its menu opens by key."""


class MenuOpener(QObject):
    """Opens the menu of a part of a widget. ``make(point)`` returns the menu and where it opens, or None if nothing
    is there. ``point`` is None for the part that has the focus.
    """

    def __init__(self, widget: QWidget, make: Callable[[QPointF | None], tuple[QMenu, QPointF] | None]) -> None:
        super().__init__(widget)
        self._make = make
        self._widget = widget.viewport() if isinstance(widget, QAbstractItemView) else widget
        for target in {widget, self._widget}:
            target.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Open the menu on the right button, the Menu key and Shift+F10."""
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

    def _open(self, point: QPointF | None, position: QPoint) -> None:
        menu_and_place = self._make(point)
        if menu_and_place is not None:
            menu, below = menu_and_place
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(position if point is not None else self._widget.mapToGlobal(below.toPoint()))


class MarkMenu(MenuOpener):
    """The menu of the mark that ``find`` returns. ``doer`` is the view's, None without a store."""

    def __init__(self, widget: QWidget, find: Callable[[QPointF | None], Found | None]) -> None:
        super().__init__(widget, self._menu)
        self._find, self._parent = find, widget
        self.doer: RowActions | None = None

    def _menu(self, point: QPointF | None) -> tuple[QMenu, QPointF] | None:
        mark_and_place = self._find(point)
        return (self.menu_of(mark_and_place[0]), mark_and_place[1]) if mark_and_place is not None else None

    def menu_of(self, mark: DrawnMark) -> QMenu:
        """Build the menu of a mark."""
        menu = QMenu(self._parent)
        menu.setObjectName(f"{self._parent.objectName()}.menu")
        facts = replace(mark.facts, able=self.doer.able() if self.doer is not None else frozenset())
        filters = None if facts.term is None or self.doer is None else lambda menu: self._filters(menu, facts)
        add_row_commands(menu, facts, lambda command, facts: self._do(command, facts, mark), self.doer, filters)
        return menu

    def _filters(self, menu: QMenu, facts: Facts) -> None:
        add_terms(menu, facts.term or "", self._use_term)

    def _use_term(self, action_name: str, term: str) -> None:
        if action_name == "copy":
            QGuiApplication.clipboard().setText(term)
        elif self.doer is not None:
            self.doer.filter(action_name, term)

    def _do(self, command: str, facts: Facts, mark: DrawnMark) -> None:
        texts = {
            "copy.cell": mark.value,
            "copy.row": mark.words,
            "copy.json": json.dumps(mark.record, ensure_ascii=False),
        }
        if command in texts:
            QGuiApplication.clipboard().setText(texts[command])
        else:
            do(self._parent, self.doer, command, facts)
