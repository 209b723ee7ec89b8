"""The go-to box takes every place: offset, topic/queue/offset, time, offset id, unique key, key. So does ``--at``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLineEdit
from walker import Run, Walker

pytestmark = pytest.mark.journey
LOG, QUEUE = "units.table", "queue.table"


@pytest.mark.full_form(keep=3)
@pytest.mark.parametrize("text", ["1050", "1,050", "0x41A", "1_050", "log:1050", " 1050 "])
def test_an_offset_in_any_writing(run: Run, walker: Walker, orders: Path, text: str) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.go(text)
        assert walker.value(LOG, "Physical offset") == 1050
        assert walker.fields()["physicalOffset"] == "1,050"
        assert walker.find(QLineEdit, "goto.field").text() == ""

    run(walk())


def test_after_a_jump_the_keys_belong_to_the_rows(run: Run, walker: Walker, orders: Path) -> None:
    """The box kept the focus: the arrow keys moved no row until one was clicked."""

    async def walk() -> None:
        await walker.open(orders)
        for place, table in (("1050", LOG), ("OrderPaid/2/5", QUEUE)):
            await walker.go(place)
            assert walker.window.focusWidget() is walker.table(table), place
        await walker.go("no-such-key")
        assert walker.window.focusWidget() is walker.find(QLineEdit, "goto.field")

    run(walk())


def test_an_offset_within_a_unit_shows_that_unit(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.go("1060")
        assert walker.value(LOG, "Physical offset") == 1050

    run(walk())


def test_topic_queue_and_offset(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.go("OrderPaid/2/5")
        assert walker.window.view == "queue"
        assert walker.value(QUEUE, "Queue offset") == 5
        assert walker.place.endswith("OrderPaid › Queue 2 › 5")
        await walker.go("%DLQ%shipping-notifier/0/3")
        assert walker.value(QUEUE, "Queue offset") == 3

    run(walk())


def test_time_ids_and_keys_find_the_same_unit(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 9)
        offset, fields = walker.value(LOG, "Physical offset"), walker.fields()
        key = walker.row(LOG)["Keys"].split()[0]
        for text in (fields["offsetMsgId"], fields["UNIQ_KEY"]):
            await walker.go("0")
            await walker.go(text)
            assert walker.value(LOG, "Physical offset") == offset, text
        await walker.go("0")
        await walker.go(key)
        assert key in walker.row(LOG)["Keys"].split()
        stored = walker.value(LOG, "Stored")
        await walker.go("2026-11-21 11:39:30+00:00")
        assert walker.value(LOG, "Stored") >= 1795261170000
        await walker.act("go.back")
        assert walker.value(LOG, "Stored") == stored or key in walker.row(LOG)["Keys"]

    run(walk())


def test_a_place_that_does_not_exist_is_an_error_and_nothing_moves(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.go("1050")
        for text in ("no-such-key", "trace:oops", "7F0000010000277A0000000000ABCDEF"):
            await walker.go(text)
            assert walker.find(QLineEdit, "goto.field").property("state") == "error", text
            assert walker.status_text, text
            assert walker.value(LOG, "Physical offset") == 1050
        for text, output in (("99999999999", "it has 0 to "), ("OrderPaid/2/99999", "OrderPaid/2 has no queue offset")):
            await walker.go(text)
            assert output in walker.find(QLineEdit, "goto.field").accessibleDescription() + walker.texts(), text
            assert walker.value(LOG, "Physical offset") == 1050

    run(walk())


@pytest.mark.full_form(keep=5)
@pytest.mark.parametrize(
    ("place", "is_shown"),
    [
        ("log:1050", lambda w: w.value(LOG, "Physical offset") == 1050),
        ("queue:OrderPaid/0/42", lambda w: w.value(QUEUE, "Queue offset") == 42),
        ("queue:OrderPaid", lambda w: w.window.view == "queue" and "OrderPaid" in w.place),
        ("trace:OrderPaid/SO-000001", lambda w: "match" in w.values("trace.steps", "Verdict")),
        ("index", lambda w: w.table("index.files").model().rowCount() == 6),
        ("index:20261121113900544", lambda w: w.row("index.files")["File"] == "20261121113900544"),
        ("index:20261121113900544/slot/4", lambda w: w.table("index.chain").model().rowCount() > 0),
        ("positions", lambda w: w.table("positions.now").model().rowCount() > 5),
        ("checkpoint", lambda w: w.window.view == "positions"),
        ("findings", lambda w: w.window.view == "findings"),
        ("abort", lambda w: w.window.view == "findings"),
        ("groups", lambda w: w.table("groups.table").model().rowCount() > 3),
        ("config", lambda w: w.window.view == "config"),
        ("config:topics", lambda w: w.window.view == "config"),
        ("OrderPaid/1/3", lambda w: w.value(QUEUE, "Queue offset") == 3),
        ("SO-000017", lambda w: "SO-000017" in w.row(LOG)["Keys"]),
    ],
)
def test_a_store_opens_at_any_place(
    run: Run, walker: Walker, orders: Path, place: str, is_shown: Callable[[Any], bool]
) -> None:
    async def walk() -> None:
        await walker.open(orders, place)
        await walker.rest()
        await walker.until(lambda: is_true_without_error(walker, is_shown), f"{place} is shown", 60)

    run(walk())


def is_true_without_error(walker: Walker, is_shown: Callable[[Any], bool]) -> bool:
    try:
        return is_shown(walker)
    except (IndexError, AssertionError):
        return False
