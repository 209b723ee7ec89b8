"""Marks, ignored rows, the time that counts as zero, next of the same, colouring rules: on the log's rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog, QLineEdit, QPushButton
from walker import Run, Walker

pytestmark = pytest.mark.journey
LOG = "units.table"


async def ended(walker: Walker) -> None:
    pane = walker.window.pane("log")
    await walker.until(lambda: not pane.busy() and walker.window.jobs.quick_idle, "it ends")
    await walker.rest()


def test_row_61_rows_are_coloured_by_rules(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        walker.table(LOG).termRequested.emit("colour", 'topic = "OrderPaid"')
        walker.find(QLineEdit, "colour.name").setText("Paid orders")
        walker.find(QLineEdit, "colour.name").textEdited.emit("Paid orders")
        walker.find(QPushButton, "colour.apply").click()
        await walker.rest()
        for row in walker.rows(LOG):
            assert row["Rule"] == ("Paid orders" if row["Topic"] == "OrderPaid" else ""), row
        assert walker.window.settings.colour_rules[0]["name"] == "Paid orders"
        await walker.act("colour.rules")
        walker.find(QPushButton, "colour.delete").click()
        walker.find(QPushButton, "colour.apply").click()
        await walker.rest()
        assert "Rule" not in walker.heads(LOG)
        assert walker.window.findChild(QDialog, "colour.rules.box") is None or not walker.window.settings.colour_rules

    run(walk())


def test_row_64_next_of_the_same_key_and_queue(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 4)
        before = walker.row(LOG)
        await walker.act("same.queue.next")
        await ended(walker)
        after = walker.row(LOG)
        assert (after["Topic"], after["Queue"]) == (before["Topic"], before["Queue"])
        assert int(after["Queue offset"].replace(",", "")) == int(before["Queue offset"].replace(",", "")) + 1
        await walker.act("same.queue.previous")
        await ended(walker)
        assert walker.row(LOG) == before
        await walker.act("same.key.next")
        await ended(walker)
        assert set(walker.row(LOG)["Keys"].split()) & set(before["Keys"].split()) or "Nothing else" in walker.said
        await walker.act("same.key.all")
        await ended(walker)
        assert all(set(row["Keys"].split()) & set(before["Keys"].split()) for row in walker.rows(LOG))

    run(walk())


def test_marks_ignored_rows_and_the_time_reference(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        offsets = []
        for row in (3, 7):
            await walker.choose(LOG, row)
            offsets.append(walker.value(LOG, "Physical offset"))
            await walker.act("mark.toggle")
        await walker.choose(LOG, 0)
        await walker.act("mark.next")
        assert walker.value(LOG, "Physical offset") == offsets[0]
        await walker.act("mark.only")
        await ended(walker)
        assert walker.values(LOG, "Physical offset") == offsets
        await walker.act("filter.clear")
        await walker.choose(LOG, 3)
        await walker.act("time.reference")
        assert walker.row(LOG)["Since reference"] == "+0.000"
        await walker.act("time.reference")
        assert "Stored" in walker.heads(LOG)
        await walker.act("ignore.toggle")
        assert "Ignored rows: 1" in walker.said
        await walker.act("mark.clear")
        await walker.act("mark.next")
        assert "No row is marked" in walker.said

    run(walk())
