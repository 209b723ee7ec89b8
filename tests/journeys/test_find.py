"""Find beside filter: the next match from the cursor on, framed in the bytes, with the number of bytes scanned."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit, QRadioButton
from walker import SHIFT, Run, Walker

from viewer.widgets.word_tabs import WordTabs

pytestmark = pytest.mark.journey
LOG = "units.table"


async def find(walker: Walker, text: str, kind: str = "text") -> None:
    await walker.act("find.open")
    field = walker.find(QLineEdit, "find.field")
    walker.find(WordTabs, "find.kind").choose(kind)
    field.setText(text)
    walker.press(field, Qt.Key.Key_Return)
    await ended(walker)


async def ended(walker: Walker) -> None:
    pane = walker.window.pane("log")
    await walker.until(lambda: not pane.busy() and walker.window.jobs.quick_idle, "the search ends")
    await walker.rest()


def result_text(walker: Walker) -> str:
    return walker.find(QLabel, "find.result").text()


def test_find_text_goes_from_hit_to_hit(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 2)
        rows = walker.table(LOG).model().rowCount()
        await find(walker, "shipmentevents")
        first = walker.value(LOG, "Physical offset")
        assert walker.row(LOG)["Topic"] == "ShipmentEvents"
        assert "Found at" in result_text(walker)
        assert "scanned" in result_text(walker)
        begin, end = walker.hex.selection()
        assert end - begin == len("ShipmentEvents")
        assert walker.table(LOG).model().rowCount() >= rows, "find leaves the rows as they are"
        await walker.act("find.next")
        await ended(walker)
        second = walker.value(LOG, "Physical offset")
        assert second > first
        walker.press(walker.find(QLineEdit, "find.field"), Qt.Key.Key_Return, SHIFT)
        await ended(walker)
        assert walker.value(LOG, "Physical offset") == first
        walker.press(walker.find(QLineEdit, "find.field"), Qt.Key.Key_Escape)
        assert walker.window.focusWidget() is walker.table(LOG)

    run(walk())


def test_find_bytes_regex_and_numbers(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await find(walker, "DA A3 ?? A7", "hex")
        begin, end = walker.hex.selection()
        assert (begin - walker.value(LOG, "Physical offset"), end - begin) == (4, 4)
        await find(walker, "SO-0000[12][0-9]", "regex")
        assert "SO-0000" in walker.row(LOG)["Keys"] + walker.row(LOG)["Body"]
        await find(walker, "700..1000000", "number")
        assert "Found at" in result_text(walker)
        await find(walker, "1..", "number")
        assert "range" in result_text(walker)

    run(walk())


def test_find_says_what_was_scanned_and_that_it_went_round(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await find(walker, "nobody wrote this")
        assert result_text(walker).startswith("Not found")
        assert "scanned 1.80 MiB of 1.80 MiB" in result_text(walker)
        await walker.act("go.last")
        await find(walker, "SO-000001")
        assert "continued from the other end" in result_text(walker)

    run(walk())


def test_find_stays_in_the_rows_of_the_filter(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, 'filter:topic = "UserClicks"')
        await ended(walker)
        await find(walker, "e")
        for _ in range(3):
            await walker.act("find.next")
            await ended(walker)
            assert walker.row(LOG)["Topic"] == "UserClicks"
        assert "in the rows of the filter" in result_text(walker)
        await find(walker, "OrderPaid", "text")
        assert result_text(walker).startswith("Not found")

    run(walk())


def test_find_in_the_chosen_rows_says_which_hit_of_how_many(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        table, field = walker.table(LOG), walker.find(QLineEdit, "find.field")
        inside = walker.find(QCheckBox, "find.inside")
        await walker.act("find.open")
        assert not inside.isVisible()
        walker.press(field, Qt.Key.Key_Escape)
        await walker.choose(LOG, 4)
        first = walker.value(LOG, "Physical offset")
        for _ in range(30):
            walker.press(table, Qt.Key.Key_Down, SHIFT)
        await walker.rest()
        last = walker.value(LOG, "Physical offset")
        assert table.chosen_span() == (first, last)
        rows = table.table.rows[4:35]
        expected = [row.offset for row in rows if getattr(row, "topic", "") == "ShipmentEvents"]
        assert len(expected) > 2
        await find(walker, "ShipmentEvents")
        assert inside.isVisible()
        assert inside.isChecked()
        hits = []
        for _ in range(len(expected) + 1):
            hits.append((walker.value(LOG, "Physical offset"), result_text(walker).split(" · ")[0]))
            walker.press(field, Qt.Key.Key_Return)
            await ended(walker)
        assert {offset for offset, _ in hits} == set(expected)
        numbers = {offset: f"{n} of {len(expected)}" for n, offset in enumerate(expected, 1)}
        assert all(words == numbers[offset] for offset, words in hits)
        current_offset = walker.value(LOG, "Physical offset")
        walker.press(field, Qt.Key.Key_Return, SHIFT)
        await ended(walker)
        position = (expected.index(current_offset) - 1) % len(expected)
        assert walker.value(LOG, "Physical offset") == expected[position]
        assert "in the selection" in result_text(walker)
        assert table.chosen_span() == (first, last), "hits do not end it"
        inside.click()
        await find(walker, "ShipmentEvents")
        assert "scanned" in result_text(walker), "without the tick the whole log is looked at"
        walker.press(field, Qt.Key.Key_Escape)
        assert table.chosen_span() is None

    run(walk())


def test_find_counts_in_tables_and_in_their_chosen_rows(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "queue:OrderPaid/1")
        table = walker.table("queue.table")
        await walker.choose("queue.table", 2)
        first_offset = walker.value("queue.table", "Queue offset")
        for _ in range(5):
            walker.press(table, Qt.Key.Key_Down, SHIFT)
        await walker.rest()
        await walker.act("find.open")
        field, result = walker.find(QLineEdit, "queue.table.find.field"), walker.find(QLabel, "queue.table.find.result")
        field.setText("0")
        walker.press(field, Qt.Key.Key_Return)
        await walker.until(lambda: "of 6" in result.text(), "all six rows have a nought")
        assert "in the selection · 6 rows looked at" in result.text()
        await walker.rest()
        for _ in range(7):
            walker.press(field, Qt.Key.Key_Return)
            await asyncio.sleep(0.05)
            await walker.rest()
            assert first_offset <= walker.value("queue.table", "Queue offset") <= first_offset + 5
        walker.press(field, Qt.Key.Key_Escape)

    run(walk())


def test_the_chosen_rows_are_exported(run: Run, walker: Walker, orders: Path, tmp_path: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        table = walker.table(LOG)
        await walker.choose(LOG, 3)
        for _ in range(4):
            walker.press(table, Qt.Key.Key_Down, SHIFT)
        await walker.rest()
        span = table.chosen_span()
        assert span is not None
        expected = [row.offset for row in table.table.rows if span[0] <= row.offset <= span[1]]
        exports = walker.window.pane("log").exports
        box = exports.ask()
        scope = walker.find(QRadioButton, "export.scope.span")
        assert scope.isChecked()
        assert f"{span[0]:,}" in scope.text()
        target = tmp_path / "rows.jsonl"
        choice = box.choice
        box.reject()
        exports.begin(replace(choice, target=target, form="jsonl"))
        await walker.until(target.exists, "it is written")
        await walker.rest()
        written = [json.loads(line) for line in target.read_text().splitlines()]
        assert written.pop()["type"] == "end"
        assert [line["physicalOffset"] for line in written] == expected
        assert len(written) == 5

    run(walk())


def test_find_in_other_tables(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "queue:OrderPaid/1")
        await walker.act("find.open")
        field = walker.find(QLineEdit, "queue.table.find.field")
        assert field.isVisible()
        offset = walker.values("queue.table", "Queue offset")[7]
        field.setText(f"{walker.values('queue.table', 'Physical offset')[7]:,}")
        walker.press(field, Qt.Key.Key_Return)
        await walker.until(lambda: "looked at" in walker.find(QLabel, "queue.table.find.result").text(), "it is found")
        await walker.rest()
        assert walker.value("queue.table", "Queue offset") == offset
        field.setText("no such thing")
        walker.press(field, Qt.Key.Key_Return)
        await walker.until(lambda: "Not found" in walker.find(QLabel, "queue.table.find.result").text(), "all was read")

    run(walk())
