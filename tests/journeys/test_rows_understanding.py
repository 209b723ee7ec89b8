"""Frequency sheet, data inspector, copies of bytes, operation log, palette and crumbs."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QLineEdit, QPushButton
from walker import Run, Walker

from viewer.shell.commands import COMMANDS
from viewer.shell.crumbs import SiblingList

pytestmark = pytest.mark.journey
LOG = "units.table"


async def ended(walker: Walker) -> None:
    pane = walker.window.pane("log")
    await walker.until(lambda: not pane.busy() and walker.window.jobs.quick_idle, "it ends")
    await walker.rest()


def cell(walker: Walker, name: str, head: str) -> None:
    table = walker.table(name)
    table.setCurrentIndex(table.model().index(table.currentIndex().row(), walker.heads(name).index(head)))


def test_frequency_sheet_counts_the_rows_of_the_filter_and_drills_in(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, 'filter:topic = "OrderPaid"')
        await ended(walker)
        rows = walker.table(LOG).total_rows()
        cell(walker, LOG, "Tag")
        await walker.act("frequency.open")
        note = walker.find(QLabel, "frequency.note")
        await walker.until(lambda: "complete" in note.text(), "all was counted")
        values = walker.rows("frequency.table")
        assert sum(int(row["Rows"].replace(",", "")) for row in values) == rows
        assert "in the rows of the filter" in note.text()
        first = values[0]
        walker.press(walker.table("frequency.table"), Qt.Key.Key_Return)
        await ended(walker)
        assert walker.find(QLineEdit, "filter.field").text() == f'topic = "OrderPaid" and tags = "{first["Value"]}"'
        assert walker.table(LOG).total_rows() == int(first["Rows"].replace(",", ""))

    run(walk())


def test_data_inspector_and_row_75_copies(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 3)
        await walker.act("view.inspector")
        stored = walker.value(LOG, "Stored")
        walker.detail.setCurrentIndex(walker.detail_index("storeTimestamp"))
        await walker.rest()
        record = {row["Type"]: row["Value"] for row in walker.rows("inspector.table")}
        assert record["int64 BE"] == f"{stored:,}"
        assert walker.row(LOG)["Stored"] in record["time, ms BE"]
        await walker.act("copy.base64")
        assert base64.b64decode(walker.clipboard) == stored.to_bytes(8, "big")
        await walker.act("copy.c")
        assert walker.clipboard.startswith("const unsigned char data[8]")
        await walker.act("view.inspector")
        assert not walker.window.settings.inspector_shown

    run(walk())


def test_operations_are_logged_with_their_command_lines(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        walker.window.changes.operations.clear()
        await walker.open(orders)
        await walker.go("filter:size > 900")
        await ended(walker)
        await walker.act("view.queues")
        await walker.act("view.operations")
        rows = walker.rows("operations.table")
        assert any(row["Parameters"] == "filter=size > 900" for row in rows)
        walker.find(QPushButton, "operations.all").click()
        assert "storescope units" in walker.clipboard
        assert "--where 'size > 900'" in walker.clipboard
        assert f"storescope view {shlex.quote(str(walker.window.session.path))} --at queue" in walker.clipboard
        walker.find(QDialog, "operations.box").reject()

    run(walk())


def test_the_palette_has_every_action_with_its_keys(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        box = walker.window.palette_box
        from viewer.shell.palette_source import entries

        listed = list(entries(walker.window, ">"))
        assert len(listed) == len(COMMANDS) - 1  # without the one that opens the palette
        named = {entry.note: entry for entry in listed if entry.enabled}  # a grey one notes what it needs
        assert set(named) < {command.id for command in COMMANDS}
        assert named["frequency.open"].keys == "Shift F"
        box.open("@OrderPaid/1/3")
        walker.press(box.field, Qt.Key.Key_Return)
        await walker.rest()
        assert walker.value("queue.table", "Queue offset") == 3
        box.open(":size > 900")
        walker.press(box.field, Qt.Key.Key_Return)
        await ended(walker)
        assert walker.find(QLineEdit, "filter.field").text() == "size > 900"

    run(walk())


def test_crumbs_drop_down_what_lies_beside(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "queue:OrderPaid/1/3")
        drop = walker.window.top.crumbs.drop(1)
        assert isinstance(drop, SiblingList)
        drop.field.setText("ship")
        walker.press(drop.field, Qt.Key.Key_Return)
        await walker.rest()
        assert "ShipmentEvents" in walker.place
        await walker.act("go.beside")
        drop = walker.find(SiblingList, "crumb.drop")
        assert drop.list.count() >= 1
        walker.press(drop.field, Qt.Key.Key_Escape)

    run(walk())
