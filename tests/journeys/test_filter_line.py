"""The filter line: matches at once, the error under its word, completion, stop and go on, clear."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QListWidget, QPushButton, QWidget
from walker import Run, Walker

from viewer.log import filter as log_filter

pytestmark = pytest.mark.journey
LOG = "units.table"


async def apply(walker: Walker, text: str) -> None:
    """Type a filter and press Enter, then wait for its end."""
    field = walker.find(QLineEdit, "filter.field")
    field.setFocus()
    field.setText(text)
    walker.press(field, Qt.Key.Key_Return)
    await walker.until(lambda: state(walker) != "loading" and walker.window.jobs.quick_idle, "the filter ends")
    await walker.rest()


def state(walker: Walker) -> str:
    """Return the kind of the state that the table shows below or over its rows, or ""."""
    table = walker.table(LOG)
    shown_state = table.strip.state or table.note.state
    return shown_state.kind if shown_state is not None else ""


def test_a_filter_shows_its_units_and_says_how_much_was_read(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await apply(walker, 'topic = "OrderPaid" and tags = "card"')
        table = walker.table(LOG)
        assert 0 < table.total_rows() < 1_065
        assert {row["Topic"] for row in walker.rows(LOG)} == {"OrderPaid"}
        assert {row["Tag"] for row in walker.rows(LOG)} == {"card"}
        assert f"{table.total_rows():,} units match" in walker.status_text
        assert "scanned 1.80 of 1.80 MiB" in walker.status_text
        assert "complete" in walker.status_text
        assert walker.fields()["topic"] == "OrderPaid"
        await walker.choose(LOG, 3)
        chosen = walker.value(LOG, "Physical offset")
        assert walker.hex.origin == chosen
        await walker.act("filter.clear")
        assert walker.find(QLineEdit, "filter.field").text() == ""
        assert walker.value(LOG, "Physical offset") == chosen, "the chosen unit stays among its neighbours"
        assert len({row["Topic"] for row in walker.rows(LOG)}) > 2

    run(walk())


@pytest.mark.full_form(keep=3)
@pytest.mark.parametrize(
    ("text", "at_least"),
    [
        ("size > 1000", 40),
        ('body contains "SO-000017"', 1),
        ("keys matches /SO-00001[0-3]/", 4),
        ('not (queueId = 0) and (tags in ("card", "paypal") or flag = 0)', 10),
        ("retry or reconsumeTimes > 0", 1),
        ("properties.region is not null", 100),
    ],
)
def test_the_language_is_understood(run: Run, walker: Walker, orders: Path, text: str, at_least: int) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await apply(walker, text)
        assert walker.find(QWidget, "filter.fault").isHidden(), walker.find(QWidget, "filter.fault").accessibleName()
        assert walker.table(LOG).total_rows() >= at_least

    run(walk())


def test_a_wrong_word_is_named_and_the_last_rows_stay(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await apply(walker, 'topic = "OrderPaid"')
        rows_before = walker.table(LOG).total_rows()
        await apply(walker, "sise > 100")
        fault = walker.find(QWidget, "filter.fault")
        assert fault.isVisible()
        assert "sise" in fault.accessibleName()
        assert "size" in fault.accessibleName(), "what may have been meant is said"
        assert walker.find(QLineEdit, "filter.field").property("state") == "error"
        assert walker.table(LOG).total_rows() == rows_before
        await apply(walker, "size > 100")
        assert not fault.isVisible()

    run(walk())


def test_a_filter_without_a_match_says_so(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await apply(walker, 'keys = "nobody"')
        assert walker.table(LOG).total_rows() == 0
        assert state(walker) == "empty"
        assert "No unit" in walker.table(LOG).note.state.text  # type: ignore[union-attr]
        assert not walker.fields()

    run(walk())


def test_words_are_completed(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.act("filter.focus")
        field, offers = walker.find(QLineEdit, "filter.field"), walker.find(QListWidget, "filter.offers")
        for letter in (Qt.Key.Key_T, Qt.Key.Key_O, Qt.Key.Key_P):
            walker.press(field, letter)
        assert offers.isVisible()
        assert offers.item(0).text().startswith("topic")
        walker.press(field, Qt.Key.Key_Tab)
        assert field.text() == "topic "
        field.setText("")
        for letter in 'topic = "Ship':
            field.insert(letter)
            field.textEdited.emit(field.text())
        assert any("ShipmentEvents" in offers.item(n).text() for n in range(offers.count()))
        walker.press(field, Qt.Key.Key_Escape)
        assert not offers.isVisible()

    run(walk())


def test_a_long_answer_has_its_first_rows_stops_and_goes_on(
    run: Run, walker: Walker, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_filter, "FIRST_BYTES", 1 << 16)
    monkeypatch.setattr(log_filter, "MATCHES_PER_ROUND", 500)

    async def walk() -> None:
        await walker.open(orders)
        await apply(walker, "size > 0")
        table = walker.table(LOG)
        assert state(walker) == "cut"
        assert 500 <= table.total_rows() < 5_171
        assert "were looked at" in table.strip.state.text  # type: ignore[union-attr]
        for _ in range(12):
            total_rows = table.total_rows()
            go_on = [b for b in table.strip.findChildren(QPushButton) if b.text() == "Go on" and b.isVisible()]
            if not go_on:
                break
            go_on[-1].click()
            await walker.until(lambda: state(walker) != "loading", "more was looked at")
            assert table.total_rows() > total_rows
        await walker.rest()
        assert state(walker) == ""
        assert table.total_rows() == 5_171
        assert "complete" in walker.status_text

    run(walk())


def test_saved_filters_and_filters_from_a_cell(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        walker.find(QPushButton, "filter.saved.0").click()
        await walker.until(lambda: state(walker) != "loading", "the filter ends")
        await walker.rest()
        assert walker.find(QLineEdit, "filter.field").text() == 'crc = "bad"'
        assert walker.values(LOG, "Physical offset") == [1_310_900]
        assert "flip" in " ".join(walker.fields().values()) + " ".join(walker.fields())
        await walker.act("filter.clear")
        walker.table(LOG).termRequested.emit("and", 'topic = "UserClicks"')
        await walker.until(lambda: walker.table(LOG).total_rows() > 100 and state(walker) != "loading")
        await walker.rest()
        assert {row["Topic"] for row in walker.rows(LOG)} == {"UserClicks"}

    run(walk())


def test_filter_is_left_where_a_place_outside_of_it_is_asked_for(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await apply(walker, 'topic = "OrderPaid"')
        await walker.go("414")
        assert walker.value(LOG, "Physical offset") == 414
        assert walker.find(QLineEdit, "filter.field").text() == ""

    run(walk())
