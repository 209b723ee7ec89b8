"""The context menu of a table: copy the cell, the row, its record, the equal command; filter by the cell; follow its
link.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from viewer.assets import tr
from viewer.models.cell_filter import HOWS, cell_term
from viewer.models.columns import Record
from viewer.models.elsewhere import elsewhere

if TYPE_CHECKING:
    from viewer.widgets.record_view import RecordView


def text_of(view: RecordView, what: str, row: Record, section: int) -> str | None:
    """What a copy of ``cell``, ``row``, ``json`` or ``cli`` gives; None where there is none, or the pane fetches it."""
    kind = view.kind
    if view.copier is not None and what in ("json", "cli"):
        text = view.copier(what, row)
        if text is not None or what == "cli":
            return text
    if what == "cell":
        return kind.columns[section].text(row) if 0 <= section < len(kind.columns) else None
    if what == "row":
        return kind.as_text(row)
    if what == "json":
        return json.dumps(kind.as_record(row), ensure_ascii=False, default=_plain)
    if what == "cli" and kind.command is not None:
        return shlex.join(kind.command(row))
    return None


def copy_text(view: RecordView, what: str, row: Record, section: int) -> str | None:
    """Put what :func:`text_of` gives on the clipboard."""
    text = text_of(view, what, row, section)
    if text is not None:
        QGuiApplication.clipboard().setText(text)
    return text


def open_menu(view: RecordView, row: Record, section: int, at: QPoint) -> None:
    """Show the menu of a cell at ``at`` (global); it deletes itself when it closes."""
    menu = build_menu(view, row, section)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.popup(at)


def build_menu(view: RecordView, row: Record, section: int) -> QMenu:
    """The menu of a cell."""
    menu = QMenu(view)
    column = view.kind.columns[section] if 0 <= section < len(view.kind.columns) else None
    place = column.jump(row) if column is not None and column.jump is not None else None
    if place is not None:
        menu.addAction(tr("Follow the link"), lambda: view.placeRequested.emit(place))
        menu.addAction(tr("Open in a window of its own"), lambda: view.placeRequested.emit(elsewhere(place)))
        menu.addSeparator()
    if column is not None and column.key:
        menu.addAction(tr("Copy cell"), lambda: copy_text(view, "cell", row, section))
    menu.addAction(tr("Copy row"), lambda: copy_text(view, "row", row, section))
    menu.addAction(tr("Copy as JSON"), lambda: copy_text(view, "json", row, section))
    if view.copier is not None or view.kind.command is not None:
        menu.addAction(tr("Copy the equal command"), lambda: copy_text(view, "cli", row, section))
    look = view.kind.look(row)
    if column is not None and not (look is not None and look.words):
        add_filters(view, menu, cell_term(view.kind.name, column, row))
    return menu


def add_filters(view: RecordView, menu: QMenu, term: str | None) -> None:
    """What can be done with the condition that a cell makes: here where the rows are filtered, else in the log."""
    if term is None or not (view.filters or view.filter_place):
        return
    if not view.filters:
        menu.addSeparator()
        menu = menu.addMenu(tr("In the log"))
    add_terms(menu, term, lambda how, term: use_term(view, how, term))


def add_terms(menu: QMenu, term: str, use: Callable[[str, str], object]) -> None:
    """Every way to use a condition as an action; ``use(how, term)`` does it."""
    menu.addSeparator()
    shown = (term if len(term) <= 60 else term[:59] + "…").replace("&", "&&")
    more = None
    for how, text in HOWS:
        if how in {"and", "prepare"}:
            more = menu.addMenu(tr("Add to the filter")) if how == "and" else None
        action = (more or menu).addAction(tr(text, term=shown), partial(use, how, term))
        action.setObjectName(f"filter.{how}")


def use_term(view: RecordView, how: str, term: str) -> None:
    """Filter by ``term``: in the table itself, or through a place of the log."""
    if how == "copy":
        QGuiApplication.clipboard().setText(term)
    elif view.filters:
        view.termRequested.emit(how, term)
    elif view.filter_place is not None:
        view.placeRequested.emit(view.filter_place(how, term))


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, (bytes, bytearray)) else str(value)
