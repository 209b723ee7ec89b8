"""Filters from any cell: apply, exclude, and, or, prepare, copy; filters on buttons; from other views into the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog, QLineEdit, QListWidget, QMenu, QPushButton
from walker import Run, Walker

from viewer.log.filter_line import FilterPills
from viewer.widgets.record_menu import build_menu

pytestmark = pytest.mark.journey
LOG = "units.table"


def text(walker: Walker) -> str:
    return walker.find(QLineEdit, "filter.field").text()


async def ended(walker: Walker) -> None:
    """Return True if the filter has read everything, or if there is none."""
    pane = walker.window.pane("log")
    await walker.until(lambda: not pane.busy() and walker.window.jobs.quick_idle, "the filter ends")  # type: ignore[attr-defined]
    await walker.rest()


def cell(walker: Walker, name: str, head: str) -> None:
    """Put the cursor of a table on a column."""
    table = walker.table(name)
    table.setCurrentIndex(table.model().index(table.currentIndex().row(), walker.heads(name).index(head)))


def test_filter_from_any_cell(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 5)
        topic = walker.row(LOG)["Topic"]
        cell(walker, LOG, "Topic")
        await walker.act("filter.cell")
        await ended(walker)
        assert text(walker) == f'topic = "{topic}"'
        assert {row["Topic"] for row in walker.rows(LOG)} == {topic}
        cell(walker, LOG, "Queue")
        queue = walker.row(LOG)["Queue"]
        await walker.act("filter.and")
        await ended(walker)
        assert text(walker) == f'topic = "{topic}" and queueId = {queue}'
        rows_before = walker.table(LOG).total_rows()
        await walker.act("filter.exclude")
        await ended(walker)
        assert text(walker) == f"not queueId = {queue}"
        assert queue not in {row["Queue"] for row in walker.rows(LOG)}
        await walker.act("filter.prepare")
        assert text(walker).startswith(f"not queueId = {queue} and queueId = ")
        assert walker.window.focusWidget() is walker.find(QLineEdit, "filter.field")
        assert walker.table(LOG).total_rows() != rows_before, "a prepared filter is not applied yet"
        await walker.act("filter.copy")
        assert walker.clipboard.startswith("queueId = ")

    run(walk())


def test_filter_from_a_field_of_the_tree(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 4)
        host = walker.fields()["bornHost"]
        walker.detail.setFocus()
        assert walker.detail.choose_field("bornHost")
        await walker.act("filter.cell")
        await ended(walker)
        assert text(walker) == f'bornHost = "{host}"'
        assert walker.table(LOG).total_rows() > 0
        walker.detail.setFocus()
        assert walker.detail.choose_field("storeTimestamp")
        await walker.act("filter.and")
        await ended(walker)
        assert "storeTimestamp = " in text(walker)
        assert walker.table(LOG).total_rows() >= 1

    run(walk())


def test_a_cell_of_a_queue_filters_the_log(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "queue:OrderPaid/1/3")
        table = walker.table("queue.table")
        await walker.until(lambda: table.current_row() is not None, "the entry is read")
        row = table.current_row()
        menu = build_menu(table, row, walker.heads("queue.table").index("Queue offset"))
        below = next(m for m in menu.findChildren(QMenu) if m.title() == "In the log")
        next(a for a in below.actions() if a.text().startswith("Only ")).trigger()
        menu.deleteLater()
        await ended(walker)
        assert walker.window.view == "log"
        assert text(walker) == 'topic = "OrderPaid" and queueId = 1 and queueOffset = 3'
        assert walker.values(LOG, "Queue offset") == [3]
        await walker.go('filter:tags = "card"')
        await ended(walker)
        assert {row["Tag"] for row in walker.rows(LOG)} == {"card"}

    run(walk())


def test_values_of_the_store_are_offered(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        pane = walker.window.pane("log")
        await walker.until(lambda: list(pane.tools.known_values("tags")), "values were sampled")  # type: ignore[attr-defined]
        await walker.act("filter.focus")
        field, offers = walker.find(QLineEdit, "filter.field"), walker.find(QListWidget, "filter.offers")

        def offered(typed: str) -> str:
            field.setText(typed)
            field.textEdited.emit(typed)
            return " ".join(offers.item(n).text() for n in range(offers.count())) if offers.isVisible() else ""

        assert '"card"' in offered('tags = "ca')
        assert "properties.region" in offered("properties.reg")
        assert '"' in offered("properties.region = ")
        walker.press(field, Qt.Key.Key_Escape)

    run(walk())


def test_a_filter_is_saved_renamed_deleted_and_found_by_name(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 3)
        cell(walker, LOG, "Topic")
        await walker.act("filter.cell")
        await ended(walker)
        expected = text(walker)
        await walker.act("filter.save")
        dialog = walker.find(QInputDialog, "filter.name")
        dialog.setTextValue("My topic")
        dialog.accept()
        pills = walker.find(FilterPills, "filter.saved")
        assert pills.saved[-1] == ("My topic", expected)
        assert walker.window.settings.saved_filters == pills.saved
        await walker.act("filter.clear")
        walker.window.palette_box.open(":my top")
        assert [e.text for e in walker.window.palette_box.list.entries] == [expected]
        walker.press(walker.window.palette_box.field, Qt.Key.Key_Return)
        await ended(walker)
        assert text(walker) == expected
        pills.rename(len(pills.saved) - 1, "Other name")
        button = walker.find(QPushButton, f"filter.saved.{len(pills.saved) - 1}")
        assert button.text() == "Other name"
        pills.delete(len(pills.saved) - 1)
        assert expected not in [saved for _, saved in walker.window.settings.saved_filters or []]
        await walker.act("filter.clear")
        walker.find(QLineEdit, "filter.field").setFocus()
        await walker.key(walker.find(QLineEdit, "filter.field"), Qt.Key.Key_Up)
        assert text(walker) == expected, "filters used before come back with the arrow"

    run(walk())
