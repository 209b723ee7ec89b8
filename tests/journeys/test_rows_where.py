"""Search for a message: one field, a verdict, the chain of evidence with every place a link."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit
from walker import Run, Walker

from viewer.where.history_line import HistoryLine
from viewer.widgets.basics import Link

pytestmark = pytest.mark.journey
RESULTS, EVIDENCE = "where.results", "where.evidence"


async def verdicts_of(walker: Walker, text: str, group: str = "") -> list[str]:
    """Type into the field, press Enter, and return the verdicts."""
    field = walker.find(QLineEdit, "where.field")
    field.setText(text)
    walker.find(QLineEdit, "where.group").setText(group)
    walker.press(field, Qt.Key.Key_Return)
    pane = walker.window.panes["where"]
    await walker.until(lambda: not pane.busy(), "the question is answered")
    await walker.rest()
    return [getattr(row, "verdict", row) for row in walker.table(RESULTS).table.rows]


def test_where_is_my_message_with_every_place_a_link(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        await walker.act("view.where")
        assert walker.window.view == "where"
        assert await verdicts_of(walker, "SO-000749") == ["truncated", "truncated", "damaged"]
        await walker.choose(RESULTS, 2)
        assert walker.find(QLabel, "where.verdict").text() == "Damaged"
        assert "snapshot" in walker.find(QLabel, "where.next").text()
        contents = [row["Contents"] for row in walker.rows(EVIDENCE)]
        assert any("is stored, the body has" in item for item in contents)
        whats = [row["Looked at"] for row in walker.rows(EVIDENCE)]
        assert whats[0] == "Unit"
        assert "Damaged" in walker.status_text
        await walker.choose(EVIDENCE, 0)
        await walker.follow(EVIDENCE)
        assert walker.window.view == "log"
        assert walker.value("units.table", "Physical offset") == 1_310_900
        await walker.act("go.back")
        assert walker.window.view == "where"
        assert walker.values(RESULTS, "Verdict") == ["truncated", "truncated", "damaged"], "the answer still stands"

    run(walk())


def test_a_group_and_what_was_never_there(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "where:OrderPaid/1/3")
        pane = walker.window.panes["where"]
        await walker.until(lambda: not pane.busy(), "the place asked by itself")
        assert walker.values(RESULTS, "Verdict") == ["found"]
        assert await verdicts_of(walker, "OrderPaid/1/3", "billing") == ["consumed"]
        looked_at = [row["Looked at"] for row in walker.rows(EVIDENCE)]
        await walker.choose(EVIDENCE, looked_at.index("Consumer group"))
        await walker.follow(EVIDENCE)
        assert walker.window.view == "groups"
        await walker.act("go.back")
        life = walker.find(HistoryLine, "where.life")
        links = [link for link in life.findChildren(Link) if link.isVisible()]
        assert "in its queue" in [link.text() for link in links]
        assert links[-1].text() in {"billing", "shipping", "pricing"}
        stored = next(link for link in links if link.text().startswith("stored "))
        await walker.key(stored, Qt.Key.Key_Return)
        assert walker.window.view == "log"
        await walker.act("go.back")
        await walker.act("copy.out")
        assert walker.clipboard.startswith(
            f"storescope copy {shlex.quote(str(orders))} NEW --where 'physicalOffset == "
        )
        assert await verdicts_of(walker, "no-such-key") == ["neverSeen"]
        assert life.isHidden()
        await walker.act("copy.out")
        assert walker.status_text == "Nothing of this message can be copied out."
        assert "other brokers" in walker.find(QLabel, "where.next").text()
        await walker.act("copy.cli")
        assert walker.clipboard.startswith("storescope where ")
        assert walker.clipboard.endswith("--json -- no-such-key")

    run(walk())


def test_the_verdict_speaks_chinese(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        await walker.act("language.zh_CN")
        walker.window.show_view("where")
        await verdicts_of(walker, "SO-000749")
        text = [row["内容"] for row in walker.rows(EVIDENCE)]
        assert all(any("\u4e00" <= letter <= "\u9fff" for letter in item) for item in text), text

    run(walk())
