"""Rows of the log: marks, ignored rows, the time reference, next of the same, colouring rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QPushButton
from walker import Run, Walker

pytestmark = pytest.mark.journey
LOG = "units.table"


async def ended(walker: Walker) -> None:
    pane = walker.window.pane("log")
    await walker.until(lambda: not pane.busy() and walker.window.jobs.quick_idle, "it ends")
    await walker.rest()


def test_rows_are_coloured_by_rules(run: Run, walker: Walker, orders: Path) -> None:
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
        assert not walker.window.settings.colour_rules

    run(walk())


def test_next_of_the_same_key_and_queue(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 4)
        row_before = walker.row(LOG)
        await walker.act("same.queue.next")
        await ended(walker)
        row_after = walker.row(LOG)
        assert (row_after["Topic"], row_after["Queue"]) == (row_before["Topic"], row_before["Queue"])
        assert int(row_after["Queue offset"].replace(",", "")) == int(row_before["Queue offset"].replace(",", "")) + 1
        await walker.act("same.queue.previous")
        await ended(walker)
        assert walker.row(LOG) == row_before
        await walker.act("same.key.next")
        await ended(walker)
        assert (
            set(walker.row(LOG)["Keys"].split()) & set(row_before["Keys"].split())
            or "Nothing else" in walker.status_text
        )
        await walker.act("same.key.all")
        await ended(walker)
        assert all(set(row["Keys"].split()) & set(row_before["Keys"].split()) for row in walker.rows(LOG))

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
        assert "Ignored rows: 1" in walker.status_text
        await walker.act("mark.clear")
        await walker.act("mark.next")
        assert "No row is marked" in walker.status_text

    run(walk())


def test_what_was_edited_is_undone_and_redone_by_name(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        undo, redo, marked = (
            walker.action("edit.undo"),
            walker.action("edit.redo"),
            walker.window.pane("log").model.markings,
        )
        assert not undo.isEnabled()
        await walker.choose(LOG, 3)
        first = walker.value(LOG, "Physical offset")
        await walker.act("mark.toggle")
        await walker.act("time.reference")
        await walker.act("ignore.toggle")
        walker.table(LOG).termRequested.emit("colour", 'topic = "OrderPaid"')
        walker.find(QPushButton, "colour.apply").click()
        await walker.rest()
        pills = walker.window.pane("log").filter.pills
        pills.delete(0)
        names = [name for name, _ in pills.saved]
        assert undo.text() == "Undo: saved filters"
        await walker.act("edit.undo")
        assert len(pills.saved) == len(names) + 1
        assert walker.status_text == "Undone: saved filters"
        assert walker.window.settings.saved_filters is not None
        assert len(walker.window.settings.saved_filters) == len(names) + 1
        await walker.act("edit.undo")
        assert "Rule" not in walker.heads(LOG)
        await walker.act("edit.undo")
        assert (marked.ignored, marked.reference is None) == (set(), False)
        await walker.act("edit.undo")
        assert "Stored" in walker.heads(LOG)
        assert undo.text() == "Undo: marks of rows"
        await walker.act("edit.undo")
        assert marked.marked == set()
        assert not undo.isEnabled()
        await walker.act("edit.redo")
        assert marked.marked == {first}
        await walker.act("language.zh_CN")
        markings = walker.window.pane("log").model.markings
        await walker.until(lambda: markings.marked == {first}, "the marks stand in the new view")
        assert not undo.isEnabled()
        await walker.act("mark.clear")
        assert undo.text() == "撤销：行的标记"
        await walker.act("edit.undo")
        assert markings.marked == {first}
        assert redo.text() == "重做：行的标记"
        await walker.act("edit.redo")

    run(walk())


def test_notes_are_undone_as_one(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "bookmarks")
        notes = walker.find(QPlainTextEdit, "bookmarks.notes")
        notes.setFocus()
        QTest.keyClicks(notes, "seen on the replica")
        await walker.rest()
        walker.table("bookmarks.table").setFocus()
        await walker.act("edit.undo")
        assert notes.toPlainText() == ""
        await walker.act("edit.redo")
        assert notes.toPlainText() == "seen on the replica"
        await walker.act("edit.undo")

    run(walk())


def test_pattern_11_marks_and_the_time_reference_survive_closing_the_store(
    run: Run, walker: Walker, orders: Path, damaged: Path
) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 5)
        offset = walker.value(LOG, "Physical offset")
        await walker.act("mark.toggle")
        await walker.act("time.reference")
        await walker.choose(LOG, 6)
        await walker.act("ignore.toggle")
        await walker.open(damaged)
        await walker.rest()
        assert walker.window.pane("log").model.markings.marked == set()
        await walker.open(orders)
        markings = walker.window.pane("log").model.markings
        await walker.until(lambda: markings.marked == {offset}, "the marks are there again")
        assert markings.reference is not None
        assert markings.reference[0] == offset
        assert len(markings.ignored) == 1
        assert "Since reference" in walker.heads(LOG)
        await walker.act("mark.next")
        assert walker.value(LOG, "Physical offset") == offset
        await walker.act("mark.clear")
        await walker.open(orders)
        await walker.rest()
        assert walker.window.pane("log").model.markings.marked == set()

    run(walk())
