"""Row, decoded fields and bytes are one selection; every offset leads somewhere, and history leads back."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QWidget
from walker import ALT, Run, Walker

from viewer.widgets.hex_view import HexView

pytestmark = pytest.mark.journey
LOG = "units.table"


def point_of(view: HexView, offset: int) -> QPointF:
    """Return a point over the byte at ``offset``."""
    height, width = view.viewport().height(), view.viewport().width()
    for y in range(1, height, 3):
        for x in range(1, width, 3):
            if view.offset_at(QPointF(x, y)) == offset:
                return QPointF(x, y)
    raise AssertionError(f"byte {offset} is not on the screen")


def test_a_row_brings_its_fields_and_its_bytes(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        assert walker.table(LOG).currentIndex().row() == 0
        for number in (0, 4, 17):
            await walker.choose(LOG, number)
            row, fields = walker.row(LOG), walker.fields()
            assert fields["physicalOffset"] == row["Physical offset"]
            assert fields["totalSize"] == row["Size"]
            assert fields["queueOffset"] == row["Queue offset"]
            assert walker.hex.origin == walker.value(LOG, "Physical offset")
            assert walker.place.endswith(row["Physical offset"])
        await walker.key(walker.table(LOG), Qt.Key.Key_Down)
        assert walker.fields()["physicalOffset"] == walker.row(LOG)["Physical offset"]
        await walker.key(walker.table(LOG), Qt.Key.Key_PageDown)
        assert walker.fields()["physicalOffset"] == walker.row(LOG)["Physical offset"]
        assert walker.hex.origin == walker.value(LOG, "Physical offset")

    run(walk())


def test_a_field_and_its_bytes_are_chosen_together(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        start = walker.value(LOG, "Physical offset")
        for name, position, size in (("bodyCRC", 8, 4), ("storeTimestamp", 56, 8), ("queueOffset", 20, 8)):
            walker.detail.setCurrentIndex(walker.detail_index(name))
            assert walker.hex.chosen_field == name
            assert walker.hex.selection() == (start + position, start + position + size)
            assert name in walker.hex.spoken()
        walker.click(walker.hex.viewport(), point_of(walker.hex, start + 9).toPoint())
        assert walker.detail.chosen_field == "bodyCRC"
        assert walker.hex.cursor_offset == start + 9
        assert "byte 2 of bodyCRC" in walker.hex.accessibleDescription()
        walker.press(walker.hex, Qt.Key.Key_Right)
        walker.press(walker.hex, Qt.Key.Key_Right)
        walker.press(walker.hex, Qt.Key.Key_Right)
        assert walker.detail.chosen_field == "queueId"
        await walker.choose(LOG, 3)
        assert walker.detail.chosen_field == "queueId", "the field stays with the next row"
        assert walker.hex.chosen_field == "queueId"

    run(walk())


def test_bytes_are_copied_in_three_forms(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        walker.detail.setCurrentIndex(walker.detail_index("magicCode"))
        forms = {"hex": "DA A3 20 A7", "python": "\\xda\\xa3 \\xa7"}
        for form, text in forms.items():
            walker.hex.copy(form)
            await walker.rest()
            assert text.lower() in walker.clipboard.lower()
        walker.detail.setCurrentIndex(walker.detail_index("topic"))
        walker.hex.copy("text")
        await walker.rest()
        assert walker.clipboard == "OrderPaid"

    run(walk())


def test_queue_entry_unit_and_back_and_forward(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "queue:OrderPaid/1/7")
        assert walker.value("queue.table", "Queue offset") == 7
        unit = walker.value("queue.table", "Physical offset")
        await walker.follow("queue.table")
        assert walker.window.view == "log"
        assert walker.value(LOG, "Physical offset") == unit
        assert walker.fields()["queueOffset"] == "7"
        await walker.follow(LOG, "Queue offset")
        assert walker.window.view == "queue"
        assert walker.value("queue.table", "Physical offset") == unit
        for view in ("log", "queue"):
            walker.press(walker.window, Qt.Key.Key_Left, ALT)
            await walker.rest()
            assert walker.window.view == view
        assert not walker.action("go.back").isEnabled()
        walker.press(walker.window, Qt.Key.Key_Right, ALT)
        await walker.rest()
        assert walker.window.view == "log"
        assert walker.value(LOG, "Physical offset") == unit

    run(walk())


def test_unit_leads_to_its_queue_entry_and_its_index_entries(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 6)
        unit, row = walker.value(LOG, "Physical offset"), walker.row(LOG)
        assert len(row["Keys"].split()) == 2
        walker.detail.setCurrentIndex(walker.detail_index("queueOffset"))
        await walker.key(walker.detail, Qt.Key.Key_Return)
        assert walker.window.view == "queue"
        assert walker.value("queue.table", "Physical offset") == unit
        await walker.act("go.back")
        assert walker.value(LOG, "Physical offset") == unit
        walker.detail.setCurrentIndex(walker.detail_index("key", row["Keys"].split()[0]))
        await walker.key(walker.detail, Qt.Key.Key_Return)
        await walker.until(lambda: walker.table("trace.steps").model().rowCount() > 0, "the trace is there")
        await walker.rest()
        assert walker.window.view == "index"
        assert walker.find(QWidget, "trace.topic").text() == row["Topic"]  # type: ignore[attr-defined]
        assert unit in walker.values("trace.steps", "Physical offset")
        position = walker.values("trace.steps", "Physical offset").index(unit)
        await walker.choose("trace.steps", position)
        await walker.follow("trace.steps")
        assert walker.window.view == "log"
        assert walker.value(LOG, "Physical offset") == unit

    run(walk())


def test_after_many_jumps_what_is_shown_belongs_to_the_chosen_row(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        for n in range(12):
            walker.action("go.last" if n % 3 else "go.first").trigger()
            walker.press(walker.table(LOG), Qt.Key.Key_End if n % 2 else Qt.Key.Key_Up)
        await walker.rest()
        row = walker.value(LOG, "Physical offset")
        assert walker.hex.origin == row
        assert walker.fields().get("physicalOffset", walker.fields().get("offset")) == f"{row:,}"
        walker.action("go.last").trigger()
        await walker.rest()
        await walker.rest()
        last = walker.value(LOG, "Physical offset")
        assert last > 1_880_000
        assert walker.hex.origin == last
        assert walker.place.endswith(f"{last:,}")

    run(walk())


def test_rows_have_numbers_once_they_are_counted_behind(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        table = walker.table(LOG)
        await walker.until(lambda: table.total_rows() > 5_000, "units are counted")
        assert table.go_to_row(3_000)
        await walker.rest()
        middle = walker.value(LOG, "Physical offset")
        assert table.go_to_row(3_001)
        await walker.rest()
        assert walker.value(LOG, "Physical offset") > middle
        assert walker.hex.origin == walker.value(LOG, "Physical offset")
        assert not table.go_to_row(table.total_rows() + 5)

    run(walk())
