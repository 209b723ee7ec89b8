"""Promises to tests of others: names of widgets, ids of commands, tables as Qt models, a name for every control."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QLineEdit,
    QMenuBar,
    QPlainTextEdit,
    QWidget,
)
from walker import Run, Walker

from viewer.shell.commands import BY_ID
from viewer.shell.views import BY_KIND
from viewer.widgets.record_table import ValueRole
from viewer.widgets.record_view import RecordView

pytestmark = pytest.mark.journey
WIDGETS = (
    "store.tree",
    "units.table",
    "unit.detail",
    "unit.hex",
    "queue.table",
    "index.files",
    "index.slots",
    "index.chain",
    "trace.topic",
    "trace.key",
    "trace.steps",
    "positions.ruler",
    "positions.plot",
    "positions.gaps",
    "findings.table",
    "recovery.plan",
    "filter.field",
    "goto.field",
    "status.message",
    "jobs.list",
    "lab.put",
    "lab.flush",
    "lab.load",
)
TABLES = ("units.table", "queue.table", "index.files", "index.chain", "trace.steps", "findings.table", "recovery.plan")
ACTIONS = (
    "store.open",
    "store.close",
    "view.units",
    "view.queues",
    "view.index",
    "view.positions",
    "view.findings",
    "go.back",
    "go.forward",
    "go.to",
    "filter.apply",
    "find.next",
    "export.table",
    "copy.json",
    "copy.cli",
    "recovery.preview",
    "palette.open",
    "layout.reset",
    "help.keys",
    "lab.create",
    "lab.start",
    "lab.stop",
)
LEAVES = {
    "store.close",
    "window.close",
    "app.quit",
    "help.logs",
    "language.zh_CN",
    "language.en",
    "layout.reset",
    "pipeline.run",
}
"""Commands that take the store, the window or the words away, or start another program."""
PARTS = 6
CONTROLS = (QLineEdit, QAbstractButton, QAbstractItemView, QComboBox, QPlainTextEdit)


def test_widgets_are_found_and_have_names_to_speak(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        assert walker.window.objectName() == "mainWindow"
        for name in WIDGETS:
            assert walker.find(QWidget, name).accessibleName(), name
        for name in TABLES:
            model = walker.table(name).model()
            assert model.columnCount() > 0, name
            assert any(walker.heads(name)), name
            assert walker.table(name).total_rows() >= model.rowCount() or name == "units.table"
        for name in ACTIONS:
            assert walker.action(name).text(), name

    run(walk())


def test_cells_have_words_and_raw_values(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        model, heads = walker.table("units.table").model(), walker.heads("units.table")
        index = model.index(1, heads.index("Physical offset"))
        assert (index.data(), index.data(ValueRole)) == ("414", 414)
        assert model.index(1, heads.index("Topic")).data(Qt.ItemDataRole.DisplayRole) == "StockReserved"
        assert model.index(1, heads.index("Keys")).data(ValueRole) == ["SO-000001", "AaAa"]
        assert model.index(1, heads.index("Stored")).data(ValueRole) > 1_600_000_000_000

    run(walk())


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_command_can_be_triggered_in_every_view(
    run: Run, walker: Walker, orders: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """Each part has all commands and all views; all parts together have each command in each view."""
    monkeypatch.setattr(QFileDialog, "open", lambda _self: None)

    async def walk() -> None:
        await walker.open(orders)
        todo = [action for action in walker.window.findChildren(QAction) if action.objectName() in BY_ID]
        assert len(todo) == len(BY_ID)
        for number, view in enumerate(BY_KIND):
            commands = [BY_ID[action.objectName()] for action in todo]
            of_view = [
                action
                for action, command in zip(todo, commands, strict=True)
                if command.id not in LEAVES and (command.does is None or view == "log")
            ]
            for action in of_view[(part + number) % PARTS :: PARTS]:
                if walker.window.view != view:
                    walker.window.show_view(view)
                action.trigger()
                if action.isCheckable():
                    action.trigger()
                for dialog in walker.window.findChildren(QDialog):
                    dialog.close()
                while (menu := QApplication.activePopupWidget()) is not None:
                    menu.close()
                walker.window.palette_box.hide()
            await asyncio.sleep(0.05)
        await walker.rest()
        assert walker.window.session is not None

    run(walk())


def test_window_without_a_store_greys_what_needs_one(run: Run, walker: Walker) -> None:
    async def walk() -> None:
        walker.window.show_welcome()
        await walker.rest()
        for name in ("view.queues", "copy.json", "go.to", "filter.apply", "recovery.preview", "store.close"):
            assert not walker.action(name).isEnabled(), name
        for name in ("store.open", "palette.open", "help.keys", "layout.reset"):
            assert walker.action(name).isEnabled(), name

    run(walk())


def test_every_control_that_is_seen_has_a_name_to_speak(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        for view in BY_KIND:
            walker.window.show_view(view)
            await walker.rest()
            silent = silent_controls(walker)
            assert not silent, (view, silent)

    run(walk())


def silent_controls(walker: Walker) -> list[str]:
    """Return the visible controls without words."""
    return [
        f"{type(part).__name__} {part.objectName()!r} {part.toolTip()!r}"
        for part in walker.window.findChildren(QWidget)
        if isinstance(part, CONTROLS)
        and not isinstance(part, (QMenuBar, QAbstractSlider))
        and part.isVisible()
        and not (part.accessibleName() or (isinstance(part, QAbstractButton) and part.text()))
        and not _inner(part)
    ]


def _inner(part: QWidget) -> bool:
    """Return True for heads, corners and edges of a table, which speaks for them."""
    above = part.parentWidget()
    while above is not None:
        if isinstance(above, (RecordView, QAbstractItemView, QComboBox, QLineEdit)):
            return True
        above = above.parentWidget()
    return False


def test_no_view_opens_a_window_of_its_own(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        for view in BY_KIND:
            walker.window.show_view(view)
            await walker.rest()
            other_windows = [
                part for part in QApplication.topLevelWidgets() if part.isVisible() and part is not walker.window
            ]
            assert not other_windows, (view, other_windows)

    run(walk())
