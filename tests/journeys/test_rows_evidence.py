"""From the welcome page to the root cause, and a report that a colleague opens without store and program."""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import planted_in_index
import planted_in_log
import planted_in_queues
import pytest
from planted_faults import SpoiledStore
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QWidget
from walker import Run, Walker

from engine.rules.catalogue import RULES
from engine.rules.masking import Masking
from viewer.findings.pane import FindingsPane
from viewer.reports.report_dialog import ReportBox, save_report
from viewer.runtime.bookmarks import Bookmark, bookmarks_of

pytestmark = pytest.mark.journey
KINDS = {**planted_in_log.KINDS, **planted_in_queues.KINDS, **planted_in_index.KINDS}
UNSEEN = ("body_byte_flipped", "entry_offset_changed", "checkpoint_ahead", "table_with_a_tail")


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("kind", UNSEEN)
def test_the_root_cause_in_three_actions(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path], kind: str
) -> None:
    """Open the store (one), click the counters in the status bar (two): the window shows cause, evidence and next
    step.
    """
    store = copied(orders)
    expected = KINDS[kind](random.Random(7), SpoiledStore(store))

    async def walk() -> None:
        window = walker.window
        window.show_welcome()
        await walker.open(store)
        session = window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends by itself")
        await walker.rest()
        counters = walker.find(QWidget, "status.findings")
        walker.click(counters, QPoint(counters.width() // 2, counters.height() // 2))
        await walker.rest()
        assert window.view == "findings"
        chosen = walker.table("findings.table").current_row().finding
        assert chosen.id in expected.ids, (chosen.id, expected)
        texts = walker.texts(window.panes["findings"])
        assert RULES[chosen.id].title in texts
        assert RULES[chosen.id].explanation in texts
        assert "Safe next steps" in texts

    run(walk())


def test_findings_colour_the_tree_and_lead_to_the_bytes(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "findings")
        session = walker.window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        await walker.rest()
        tree = walker.find(QWidget, "store.tree")
        model = tree.model()  # type: ignore[attr-defined]
        spoken = [str(model.index(n, 0).data(role)) for n in range(model.rowCount()) for role in (0, 11)]
        assert any("error" in words for words in spoken), spoken
        pane = walker.window.panes["findings"]
        assert isinstance(pane, FindingsPane)
        first = walker.table("findings.table").current_row()
        await walker.act("problem.next")
        assert walker.table("findings.table").current_row() is not first
        await walker.act("problem.previous")
        walker.find(QPushButton, "finding.go").click()
        await walker.rest()
        assert walker.hex.origin == 1_310_900

    run(walk())


def test_proposal_15_a_report_that_opens_anywhere(run: Run, walker: Walker, damaged: Path, tmp_path: Path) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(damaged, "findings")
        session = window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        await walker.until(lambda: walker.table("recovery.plan").model().rowCount() > 5, "the plan is there")
        bookmarks_of(session).put(Bookmark("log:1310900", "the flipped one", "error", "asked Lin"))

        async def save(name: str, mask: Masking | None = None) -> bool:
            return await save_report(session, tmp_path / name, window.say, mask, window.workspace.grab_window)

        assert not await save_report(session, damaged / "no.html", window.say)
        assert await save("open.html")
        assert await save("masked.html", Masking(bodies=True, keys=True, hosts=True))
        assert await save("nameless.html", Masking(groups=True, lmq=True, properties=True))
        bookmarks_of(session).remove("log:1310900")
        await walker.act("report.save")
        box = walker.find(ReportBox, "report.box")
        assert "5 findings" in "".join(label.text() for label in box.findChildren(QLabel))
        for part in ("groups", "lmq", "properties"):
            walker.find(QCheckBox, f"report.{part}").click()
            assert box.masking.parts[-1] == part
        assert not box.pictures.isEnabled()
        box.reject()
        await walker.rest()

    run(walk())
    opened, masked = (words(tmp_path / name) for name in ("open.html", "masked.html"))
    for rule in ("CL03", "CL06", "IX03", "IX04", "AB01"):
        assert rule in opened
        assert rule in masked
    for actual_text in ("the flipped one", "asked Lin", "1,310,900  00 00 01 9D DA A3 20 A7"):
        assert actual_text in opened
    for secret in ("the flipped one", "asked Lin", "SO-000749", "127.0.0.1", str(damaged), "7F 00 00 01"):
        assert secret not in masked, secret
    nameless = words(tmp_path / "nameless.html")
    assert "shipping-notifier" in opened
    assert "shipping-notifier" not in (tmp_path / "nameless.html").read_text("utf-8")
    assert "%RETRY%group-" in nameless
    assert "Masked: groups, light queues, users' properties. Notes and pictures are left out." in nameless
    assert "7F 00 00 01" in opened, "the store's host stands in the bytes that are not masked"
    assert "1,310,900  00 00 01 9D DA A3 20 A7 •• •• •• ••" in masked, "what is harmless of the bytes is there"
    for name in ("open.html", "masked.html"):
        text = (tmp_path / name).read_text("utf-8")
        assert text.count("<svg") == 3, "topics, findings and positions are drawn, masked or not"
        assert text.count("data:image/png") == (name == "open.html")
    data = json.loads(re.search(r'report">(.*?)</script>', (tmp_path / "open.html").read_text("utf-8"), re.DOTALL)[1])  # type: ignore[index]
    assert {record["id"] for record in data["findings"]} == {"CL03", "CL06", "IX03", "IX04", "AB01"}


def words(file: Path) -> str:
    """Return the readable text of an HTML file."""
    text = re.sub(r"<(style|script)[^>]*>.*?</\1>", " ", file.read_text("utf-8"), flags=re.DOTALL)
    assert "http://" not in text
    return html.unescape(re.sub(r"<[^>]+>", " ", text))
