"""A person at the window: opens stores, types, presses keys, follows links, and reads the texts.

Everything goes through the interface for outside tests: objectNames, actions, the Qt models' DisplayRole and ValueRole.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QGuiApplication, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QWidget

from engine.config import MessageStoreConfig
from viewer.log.unit_detail import UnitDetail
from viewer.shell.main_window import MainWindow
from viewer.shell.views import BY_KIND
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_table import ValueRole
from viewer.widgets.record_view import RecordView

W = TypeVar("W", bound=QWidget)
NO, CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)
RowCommand = Callable[[], object]
Run = Callable[[Coroutine[Any, Any, Any]], Any]
_IN_ORDERS = {
    "log": ("log:0",),
    "queue": ("queue:OrderPaid/2/100",),
    "where": ("where:SO-000749",),
    "index": ("index", "trace:ShipmentEvents/SO-000421"),
}
PLACES = tuple(place for view in BY_KIND for place in _IN_ORDERS.get(view, (view,)))
"""A place and more for every view there is, in the store ``orders``: with rows where the view has any."""


class Walker:
    """Actions of a person at the window, and the visible results."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window

    # ---- deeds -------------------------------------------------------------------------------------------------------

    async def open(self, path: Path, at: str | None = None, config: MessageStoreConfig | None = None) -> None:
        """Open a store, with a broker's ``config``, and wait for its first rows."""
        assert await self.window.open(path, at, config)
        assert await self.window.settled(60)

    async def rest(self, seconds: float = 60) -> None:
        """Wait until the current rows and all short reads are there."""
        assert await self.window.settled(seconds)
        await self.until(lambda: self.window.jobs.quick_idle, "short reads end", seconds)
        assert await self.window.settled(seconds)

    async def until(self, true: RowCommand, what: str = "it comes true", seconds: float = 150) -> None:
        """Wait for an event that happens by itself: the worker has low priority, so it is slow on a busy machine."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, f"timed out waiting until {what}; status bar: {self.status_text!r}"
            await asyncio.sleep(0.01)

    async def act(self, name: str) -> None:
        """Trigger a command by its id."""
        self.action(name).trigger()
        await self.rest()

    async def go(self, text: str) -> None:
        """Type into the go-to box and press Enter."""
        box = self.find(QLineEdit, "goto.field")
        await self.act("go.to")
        box.setText(text)
        self.press(box, Qt.Key.Key_Return)
        await self.until(lambda: not self.window.jobs.list or self.window.jobs.quick_idle)
        await asyncio.sleep(0.02)
        await self.rest()

    async def key(self, widget: QWidget, key: Qt.Key, modifier: Qt.KeyboardModifier = NO) -> None:
        """Press a key while ``widget`` has the focus, and wait for the effects."""
        self.press(widget, key, modifier)
        await self.rest()

    def press(self, widget: QWidget, key: Qt.Key, modifier: Qt.KeyboardModifier = NO) -> None:
        """Press a key."""
        QTest.keyClick(widget, key, modifier)

    def click(self, widget: QWidget, point: QPoint) -> None:
        """Click once with the left button."""
        for kind, buttons in (
            (QEvent.Type.MouseButtonPress, Qt.MouseButton.LeftButton),
            (QEvent.Type.MouseButtonRelease, Qt.MouseButton.NoButton),
        ):
            global_point = widget.mapToGlobal(point)
            event = QMouseEvent(kind, QPointF(point), QPointF(global_point), Qt.MouseButton.LeftButton, buttons, NO)
            QApplication.sendEvent(widget, event)

    async def choose(self, name: str, row: int) -> None:
        """Choose a row of a table by its number in the model."""
        table = self.table(name)
        await self.until(lambda: 0 <= row < table.model().rowCount(), f"{name} has a row {row}")
        table.setCurrentIndex(table.model().index(row, max(0, table.currentIndex().column())))
        await self.rest()

    async def follow(self, name: str, head: str = "") -> None:
        """Press Enter on the chosen row, on the cell under ``head`` if one is named."""
        table = self.table(name)
        if head:
            table.setCurrentIndex(table.model().index(table.currentIndex().row(), self.heads(name).index(head)))
        await self.key(table, Qt.Key.Key_Return)

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def find(self, kind: type[W], name: str) -> W:
        """Return a widget by its name."""
        actual_kind = self.window.findChild(kind, name)
        assert actual_kind is not None, name
        return actual_kind

    def action(self, name: str) -> QAction:
        """Return a command by its id."""
        action = self.window.findChild(QAction, name)
        assert action is not None, name
        return action

    def table(self, name: str) -> RecordView:
        """Return a table."""
        return self.find(RecordView, name)

    @property
    def detail(self) -> UnitDetail:
        """The decoded unit."""
        return self.find(UnitDetail, "unit.detail")

    @property
    def hex(self) -> HexView:
        """The bytes."""
        return self.find(HexView, "unit.hex")

    @property
    def status_text(self) -> str:
        """The sentence in the status bar."""
        return self.find(QLabel, "status.message").text()

    @property
    def clipboard(self) -> str:
        """The copied text."""
        return QGuiApplication.clipboard().text()

    @property
    def place(self) -> str:
        """The place that the window shows."""
        return self.window.top.crumbs.accessibleName()

    def heads(self, name: str) -> list[str]:
        """Return the heads of a table's columns."""
        model = self.table(name).model()
        return [model.head(n) for n in range(model.columnCount())]

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return all rows in the model, each head → text."""
        model, heads = self.table(name).model(), self.heads(name)
        return [{head: model.index(row, n).data() for n, head in enumerate(heads)} for row in range(model.rowCount())]

    def row(self, name: str) -> dict[str, str]:
        """Return the chosen row, head → text."""
        return self.rows(name)[self.table(name).currentIndex().row()]

    def values(self, name: str, head: str) -> list[Any]:
        """Return the raw values of a column."""
        model, n = self.table(name).model(), self.heads(name).index(head)
        return [model.index(row, n).data(ValueRole) for row in range(model.rowCount())]

    def value(self, name: str, head: str) -> Any:
        """Return the raw value in the chosen row."""
        return self.values(name, head)[self.table(name).currentIndex().row()]

    def fields(self) -> dict[str, str]:
        """Return the decoded unit: name of the field → text."""
        results: dict[str, str] = {}
        model = self.detail.model()

        def look(parent: QModelIndex) -> None:
            for row in range(model.rowCount(parent)):
                index = model.index(row, 0, parent)
                results.setdefault(str(index.data()), str(index.siblingAtColumn(1).data() or ""))
                look(index)

        look(QModelIndex())
        return results

    def detail_index(self, name: str, value: str = "") -> QModelIndex:
        """Return the line of the decoded unit that shows ``name``, and ``value`` if one is named."""
        model = self.detail.model()
        stack = [model.index(row, 0) for row in range(model.rowCount())]
        while stack:
            index = stack.pop()
            if index.data() == name and value in {"", index.siblingAtColumn(1).data()}:
                return index
            stack += [model.index(row, 0, index) for row in range(model.rowCount(index))]
        raise AssertionError(f"no field {name}; there are {sorted(self.fields())}")

    def texts(self, within: QWidget | None = None) -> str:
        """Return all words on visible labels."""
        part = within or self.window
        return "\n".join(label.text() for label in part.findChildren(QLabel) if label.isVisible())

    def copied(self) -> dict[str, Any]:
        """Return the clipboard as a JSON record."""
        record = json.loads(self.clipboard)
        assert isinstance(record, dict)
        return record
