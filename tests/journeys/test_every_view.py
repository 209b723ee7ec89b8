"""Every view: queues with verdicts and groups, the trace with match, collision and loop, positions, findings,
recovery.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget
from walker import Run, Walker

from viewer.shell.views import BY_KIND
from viewer.widgets.record_view import RecordView

pytestmark = pytest.mark.journey
LOG, QUEUE, STEPS, FINDINGS, PLAN = "units.table", "queue.table", "trace.steps", "findings.table", "recovery.plan"


def test_and_23_queue_with_verdicts_and_where_groups_read_next(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "queue:StockReserved/1")
        await walker.rest()
        assert set(walker.values(QUEUE, "Verdict")) <= {"ok", "entry", ""}
        assert {row["Tag"] for row in walker.rows(QUEUE)[:20]} <= {"reserved", "short"}
        await walker.until(lambda: "all agree" in walker.status_text, "every entry has its verdict")
        await walker.act("list.next")
        assert walker.value(QUEUE, "Queue offset") == 1
        await walker.go("StockReserved/1/299")
        assert "warehouse" in walker.row(QUEUE)["Groups"]

    run(walk())


def test_numbers_are_never_shortened(run: Run, walker: Walker, orders: Path) -> None:
    """Every table has room for its numbers, at the usual width and at the smallest one."""

    async def walk() -> None:
        await walker.open(orders)
        shortened: list[str] = []
        for size in ((1600, 1000), (1280, 720)):
            walker.window.resize(*size)
            for place in ("log", "queue:StockReserved/1", "index", "trace:StockReserved/AaAa", "groups", "positions"):
                await walker.go(place)
                await walker.rest()
                for table in walker.window.panes[walker.window.view].findChildren(RecordView):
                    if table.isVisible():
                        shortened += [f"{size} {table.objectName()} {text}" for text in cut(table)]
        assert not shortened, sorted(set(shortened))[:20]

    run(walk())


def cut(table: RecordView) -> list[str]:
    """Return the texts of right-aligned cells that do not fit into their columns."""
    from PySide6.QtGui import QFontMetrics

    from viewer.look.theme import mono

    metrics, texts = QFontMetrics(mono(12)), []
    for slot in table.slots_on_screen():
        if slot.column.right:
            for row in range(min(40, table.model().rowCount())):
                text = str(table.model().index(row, slot.section).data() or "")
                look = table.table.look(row)
                if not (look and look.words) and metrics.horizontalAdvance(text) > slot.width - 12:
                    texts.append(f"{slot.column.key} {text} {slot.width}")
    return texts


async def traced(walker: Walker, topic: str, key: str) -> list[str]:
    """Type topic and key, press Enter, and return the verdicts of the steps."""
    walker.window.show_view("index")
    await walker.rest()
    walker.find(QLineEdit, "trace.topic").setText(topic)
    field = walker.find(QLineEdit, "trace.key")
    field.setText(key)
    walker.press(field, Qt.Key.Key_Return)
    table = walker.table(STEPS)
    await asyncio.sleep(0.03)
    await walker.until(lambda: table.model().rowCount() > 0 and table.strip.state is None, "the trace is there")
    await walker.rest()
    return [row["Verdict"] for row in walker.rows(STEPS)]


def test_and_33_a_trace_walks_the_chains_names_collisions_and_leads_to_units(
    run: Run, walker: Walker, orders: Path
) -> None:
    async def walk() -> None:
        await walker.open(orders)
        verdicts = await traced(walker, "StockReserved", "AaAa")
        assert {"match", "collision"} <= set(verdicts)
        assert "match" in walker.status_text
        step = verdicts.index("match")
        await walker.choose(STEPS, step)
        unit = walker.value(STEPS, "Physical offset")
        await walker.act("find.next")
        assert walker.value(STEPS, "Physical offset") != unit
        await walker.choose(STEPS, step)
        await walker.follow(STEPS)
        assert walker.window.view == "log"
        assert walker.value(LOG, "Physical offset") == unit
        assert "AaAa" in walker.row(LOG)["Keys"].split()
        await walker.act("go.back")
        assert walker.window.view == "index"
        await walker.until(lambda: "match" in walker.values(STEPS, "Verdict"), "the trace stands again")

    run(walk())


def test_files_that_a_window_passes_over_are_named(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "index")
        walker.find(QLineEdit, "trace.begin").setText("2026-11-21 11:39:20Z")
        walker.find(QLineEdit, "trace.end").setText("2026-11-21 11:39:30Z")
        await traced(walker, "OrderPaid", "SO-000300")
        lanes = walker.find(QWidget, "trace.chain")
        words = [lane.why for lane in lanes._lanes if not lane.chosen]
        assert len(words) >= 4
        assert all(words)
        walker.find(QLineEdit, "trace.begin").setText("yesterday")
        walker.press(walker.find(QLineEdit, "trace.begin"), Qt.Key.Key_Return)
        assert walker.find(QLineEdit, "trace.begin").property("state") == "error"
        assert "Expected" in walker.find(QLineEdit, "trace.begin").toolTip()

    run(walk())


def test_a_loop_in_a_chain_is_survived_and_named(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        verdicts = await traced(walker, "ShipmentEvents", "SO-000421")
        assert "loop, stopped" in verdicts
        assert verdicts.count("match") >= 1
        await walker.choose(STEPS, verdicts.index("loop, stopped"))
        assert walker.window.panes["index"].isVisible()

    run(walk())


def test_a_slot_of_an_index_file_shows_its_chain(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "index:20261121113900544/slot/4")
        await walker.until(lambda: walker.table("index.chain").model().rowCount() > 3, "the chain is there")
        assert "loop" in walker.values("index.chain", "Verdict")
        await walker.choose("index.chain", 0)
        unit = walker.value("index.chain", "Physical offset")
        await walker.follow("index.chain")
        assert walker.value(LOG, "Physical offset") == unit

    run(walk())


def test_positions_say_what_is_known_and_what_is_not(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "positions")
        await walker.rest()
        rows = {row["Position"]: row for row in walker.rows("positions.now")}
        assert len(rows) >= 7
        assert any(row["Offset"] == "" for row in rows.values()), "what files cannot tell has no offset"
        assert "bytes written" in walker.status_text
        words = walker.texts(walker.window.panes["positions"])
        assert "Not in the files" in words
        for name in ("positions.ruler", "positions.plot", "positions.gaps"):
            assert walker.find(QWidget, name).isVisible()
        offsets = [n for n, value in enumerate(walker.values("positions.now", "Offset")) if value]
        await walker.choose("positions.now", offsets[0])
        await walker.follow("positions.now", "Offset")
        assert walker.window.view == "log"

    run(walk())


def test_findings_lead_to_their_bytes_and_mark_the_tree(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "findings")
        session = walker.window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        await walker.rest()
        rules = [row["Rule"] for row in walker.rows(FINDINGS)]
        assert len(rules) >= 3
        messages = " ".join(str(value) for value in walker.values(FINDINGS, "Finding"))
        assert "CRC" in messages or "bodyCRC" in messages
        position = next(n for n, finding in enumerate(session.findings) if finding.offset == 1_310_900)
        rule = session.findings[position].id
        await walker.choose(FINDINGS, rules.index(rule))
        detail = walker.texts(walker.window.panes["findings"])
        assert "Safe next steps" in detail
        assert "snapshot" in detail, "the first advice is a copy, never a deed"
        walker.find(QPushButton, "finding.go").click()
        await walker.rest()
        assert walker.window.view == "log"
        assert walker.value(LOG, "Physical offset") == 1_310_900
        assert walker.row(LOG)["CRC"]
        tree = walker.find(QWidget, "store.tree")
        assert tree.isVisible()
        assert walker.window.rail.buttons["findings"] is not None
        counters = walker.find(QWidget, "status.findings")
        assert counters.isVisible()
        assert "error" in counters.accessibleName()

    run(walk())


def test_recovery_says_what_the_next_start_does(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        await walker.act("recovery.preview")
        assert walker.window.view == "findings"
        await walker.until(lambda: walker.table(PLAN).model().rowCount() > 5, "the plan is there")
        await walker.rest()
        words = " ".join(" ".join(row.values()) for row in walker.rows(PLAN))
        assert "1,310,900" in words, "a broker would cut the log at the flipped bit"
        assert walker.table("recovery.files").model().rowCount() > 0

    run(walk())


@pytest.mark.full_form(keep=2)
@pytest.mark.golden
@pytest.mark.parametrize(
    "name", ["crash-flip-5.3.3", "queues-gone-5.3.3", "first-files-deleted-5.3.3", "crash-power-5.3.3", "broker-lmq"]
)
def test_damaged_and_unusual_stores_speak_in_every_view(run: Run, walker: Walker, golden: object, name: str) -> None:
    """Every empty table says why it is empty, and no exception is raised."""

    async def walk() -> None:
        await walker.open(golden(name))  # type: ignore[operator]
        silent: list[str] = []
        for place in BY_KIND:
            walker.window.show_view(place)
            await walker.rest()
            for table in walker.window.panes[walker.window.view].findChildren(RecordView):
                if table.isVisible() and not table.model().rowCount():
                    note = table.note.state or table.strip.state
                    if note is None or not note.text:
                        silent.append(f"{place}: {table.objectName()}")
        await walker.act("go.last")
        assert walker.table(LOG).model().rowCount() > 0
        assert not silent, silent

    run(walk())
