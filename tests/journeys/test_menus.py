"""Every table of every view has its whole menu, by mouse and by key; a disabled entry says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from menu_actions import actions_in
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from walker import PLACES, Run, Walker

from viewer.runtime.places import text_of
from viewer.shell.help_box import HelpBox
from viewer.widgets.canvas import MarkCanvas
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_commands import PARTS, PARTS_OF, row_commands_of
from viewer.widgets.store_tree_rows import walk as tree_walk

pytestmark = pytest.mark.journey
SHIFT = Qt.KeyboardModifier.ShiftModifier


async def menu_of(walker: Walker, widget: QWidget) -> QMenu:
    """Open the menu by Shift+F10 and return it."""
    walker.press(widget, Qt.Key.Key_F10, SHIFT)
    await walker.until(lambda: isinstance(QApplication.activePopupWidget(), QMenu), "the menu is open")
    active_popup_widget = QApplication.activePopupWidget()
    assert isinstance(active_popup_widget, QMenu)
    return active_popup_widget


async def pick(walker: Walker, widget: QWidget, name: str) -> None:
    """Open the menu by key, and trigger its entry ``name``."""
    menu = await menu_of(walker, widget)
    action = next(item for item in actions_in(menu) if item.objectName() == name)
    assert action.isEnabled(), action.toolTip()
    menu.close()
    action.trigger()
    await walker.rest()


def place(walker: Walker) -> str:
    """Return the current place as text."""
    current = walker.window.history.current
    return text_of(current) if current is not None else ""


def assert_menu_is_complete(menu: QMenu, kind: str) -> None:
    """Assert that the menu has all commands of the kind, in order, and a reason for each that is disabled."""
    named = [action for action in actions_in(menu) if action.objectName()]
    commands = [action.objectName() for action in named if not action.objectName().startswith("filter.")]
    assert commands == [command.id for command in row_commands_of(kind)], kind
    assert [action.text() for action in named if not action.isEnabled() and not action.toolTip().endswith(".")] == []
    separators = sum(action.isSeparator() for action in menu.actions())
    assert separators >= len(PARTS_OF[kind]) - 1
    assert len(menu.actions()) - separators <= 15, kind


def test_every_table_of_every_view_has_its_whole_menu(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        names = set()
        for view in PLACES:
            assert await walker.window.go_to_text(view)
            await walker.rest()
            if view == "space":
                await walker.until(lambda: walker.table("space.table").table.rows, "the space is counted")
            for table in walker.window.panes[walker.window.view].findChildren(RecordView):
                if not table.isVisible() or not table.table.rows:
                    continue
                if not table.currentIndex().isValid():
                    table.setCurrentIndex(table.model().index(0, 0))
                    await walker.rest()
                if not table.currentIndex().isValid():  # rows that are looked at again come without a choice
                    table.setCurrentIndex(table.model().index(0, 0))
                menu = await menu_of(walker, table)
                assert_menu_is_complete(menu, table.kind.name)
                menu.close()
                names.add(table.kind.name)
        assert len(names) >= 9, names
        assert {"unit", "cq", "indexFile", "groupProgress", "space"} <= names
        assert PARTS[0] == "go"

    run(walk())


PICTURES = {
    "log:0": {"units.line": "lineMark"},
    "positions": {"positions.ruler": "rulerMark"},
    "queue:OrderPaid/0/3": {
        "queue.line": "queueMark",
        "queue.cells": "queueMark",
        "queue.bytes": "queueMark",
        "queue.skew": "queueMark",
    },
    "trace:ShipmentEvents/SO-000421": {
        "trace.chain": "traceStep",
        "trace.hash": "indexMark",
        "index.slots": "indexMark",
        "index.histogram": "indexMark",
    },
    "findings": {"recovery.line": "lineMark"},
    "space": {"space.treemap": "area", "space.days": "dayMark"},
}


def test_every_line_of_the_tree_and_every_mark_has_its_whole_menu(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        side = walker.window.side
        heads = set()
        for node in list(tree_walk(side.model.root)):
            side._quiet = True
            side.tree.setCurrentIndex(side.model.index_of(node.name))
            side._quiet = False
            menu = await menu_of(walker, side.tree)
            assert_menu_is_complete(menu, "treeNode")
            menu.close()
            heads.add(node.name.partition("/")[0])
        assert {"log", "topics", "topic", "queue", "index", "groups", "config", "checkpoint"} <= heads
        for view, names in PICTURES.items():
            assert await walker.window.go_to_text(view)
            await walker.rest()
            for name, kind in names.items():
                widget = walker.find(QWidget, name)
                if name == "space.treemap":
                    await walker.until(lambda: walker.table("space.table").table.rows, "the space is counted")
                    walker.press(widget, Qt.Key.Key_Home)
                if isinstance(widget, MarkCanvas):
                    await walker.until(lambda widget=widget: widget.marks(), f"{name} has marks")
                menu = await menu_of(walker, widget)
                assert_menu_is_complete(menu, kind)
                menu.close()

    run(walk())


def test_the_mouse_opens_the_menu_of_what_is_under_it(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        line = walker.find(QWidget, "units.line")
        point = QPoint(line.width() // 3, line.height() // 2)
        QApplication.sendEvent(line, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, line.mapToGlobal(point)))
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        assert_menu_is_complete(menu, "lineMark")
        menu.close()
        tree = walker.window.side.tree
        point = tree.visualRect(walker.window.side.model.index_of("topics")).center()
        view = tree.viewport()
        QApplication.sendEvent(view, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, view.mapToGlobal(point)))
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        assert_menu_is_complete(menu, "treeNode")
        menu.close()

    run(walk())


def test_a_grey_entry_says_its_reason_in_the_status_bar_while_it_is_highlighted(
    run: Run, walker: Walker, orders: Path
) -> None:
    async def walk() -> None:
        await walker.open(orders)
        message_before = walker.window.status.message.text()
        menu = await menu_of(walker, walker.window.side.tree)
        grey = next(action for action in menu.actions() if action.objectName() == "bytes.export")
        assert not grey.isEnabled()
        for _ in menu.actions():
            QTest.keyClick(menu, Qt.Key.Key_Down)
            if menu.activeAction() is grey:
                break
        assert menu.activeAction() is grey, "the keys reach grey entries"
        assert walker.window.status.message.text() == grey.toolTip()
        menu.close()
        assert walker.window.status.message.text() != grey.toolTip() or message_before == grey.toolTip()

    run(walk())


def test_a_queue_row_is_marked_and_its_key_is_followed_in_the_log(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.go("queue:OrderPaid/0/2")
        offset = walker.value("queue.table", "Physical offset")
        await pick(walker, walker.table("queue.table"), "keep.mark")
        assert place(walker).startswith("log:")
        model = walker.window.pane("log").model  # type: ignore[attr-defined]
        await walker.until(lambda: offset in model.markings.marked, "the row is marked in the log")
        assert walker.window.session is not None
        assert walker.window.session.wished is None

    run(walk())


def test_a_row_is_followed_from_its_menu(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.go("queue:OrderPaid/0/3")
        offset = walker.value("queue.table", "Physical offset")
        await pick(walker, walker.table("queue.table"), "go.log")
        assert place(walker) == f"log:{offset}"
        row = walker.row("units.table")
        await pick(walker, walker.table("units.table"), "go.entry")
        assert place(walker) == "queue:OrderPaid/0/3"
        await walker.go(f"log:{offset}")
        await pick(walker, walker.table("units.table"), "follow.trace")
        assert place(walker) == f"trace:OrderPaid/{row['Keys'].split()[0]}"
        await walker.go(f"log:{offset}")
        await pick(walker, walker.table("units.table"), "copy.mqadmin")
        assert walker.clipboard == "mqadmin queryMsgByOffset -n NAMESRV:9876 -b BROKER -t OrderPaid -i 0 -o 3"
        await pick(walker, walker.table("units.table"), "keep.mark")
        assert offset in walker.window.pane("log").model.markings.marked  # type: ignore[attr-defined]

    run(walk())


def test_a_field_becomes_a_column_and_explains_itself(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose("units.table", 4)
        detail = walker.detail
        assert detail.choose_field("bornHost")
        await pick(walker, detail, "keep.column")
        assert "bornHost" in walker.heads("units.table")
        assert walker.row("units.table")["bornHost"] == walker.fields()["bornHost"]
        menu = await menu_of(walker, detail)
        second_action = next(action for action in actions_in(menu) if action.objectName() == "keep.column")
        assert not second_action.isEnabled()
        menu.close()
        assert [item.objectName() for item in (await menu_of(walker, walker.hex)).actions()][-1] == "explain.field"
        QApplication.activePopupWidget().close()
        await pick(walker, detail, "explain.field")
        box = walker.find(QWidget, "explain.box")
        assert "BORNHOST" in walker.texts(box)
        box.close()
        walker.table("units.table").fitting.reset()
        await walker.rest()
        assert "bornHost" not in walker.heads("units.table")

    run(walk())


def test_the_cell_of_an_entry_leads_to_its_unit_and_a_slot_to_its_chain(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.go("queue:OrderPaid/0/3")
        offset = walker.value("queue.table", "Physical offset")
        await pick(walker, walker.find(QWidget, "queue.cells"), "go.log")
        assert place(walker) == f"log:{offset}"
        await walker.go("queue:OrderPaid/0/3")
        strip = walker.find(QWidget, "queue.bytes")
        walker.press(strip, Qt.Key.Key_Right)
        await pick(walker, strip, "copy.cell")
        assert walker.clipboard == str(walker.row("queue.table")["Size"])
        await pick(walker, walker.find(QWidget, "queue.skew"), "go.link")
        assert place(walker).startswith("queue:OrderPaid/0")
        await walker.go("trace:ShipmentEvents/SO-000421")
        slots = walker.find(MarkCanvas, "index.histogram")
        await walker.until(slots.marks, "the slots are counted")
        await pick(walker, walker.find(QWidget, "index.slots"), "go.link")
        assert place(walker).startswith("index:")

    run(walk())


def test_a_finding_s_menu_explains_its_rule_in_the_help(run: Run, walker: Walker, damaged: Path) -> None:
    """It opened a box of three lines; now the rule has a page."""

    async def walk() -> None:
        await walker.open(damaged)
        await walker.until(lambda: walker.window.session.findings_complete, "the check is through")
        await walker.go("findings")
        rule = walker.table("findings.table").current_row().finding.id
        await pick(walker, walker.table("findings.table"), "explain.field")
        box = walker.find(HelpBox, "help.box")
        assert box.page.toPlainText().startswith(f"{rule} · ")
        assert box.list.currentItem().text().startswith(rule)
        box.close()
        await walker.rest()

    run(walk())
