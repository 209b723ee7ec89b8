"""Reading a store: nothing written, the tree, damage as rows, tags, abort, the layout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QAbstractItemView, QLabel
from walker import Run, Walker

from viewer.reports.report_dialog import save_report
from viewer.shell.views import BY_KIND

pytestmark = pytest.mark.journey
LOG = "units.table"


def state_of(store: Path) -> dict[str, tuple[str, int]]:
    """Return every file with its hash and time, and every folder with its time."""
    results = {}
    for file in sorted(store.rglob("*")):
        data = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        results[str(file.relative_to(store))] = (data, file.stat().st_mtime_ns)
    return results


def test_a_tour_of_every_view_changes_no_byte_and_no_time(
    run: Run, walker: Walker, damaged: Path, copied: Callable[[Path], Path], tmp_path: Path
) -> None:
    store = copied(damaged)
    state_before = state_of(store)

    async def walk() -> None:
        window = walker.window
        await walker.open(store)
        for view in BY_KIND:
            window.show_view(view)
            await walker.rest()
        assert await window.go_to_text("where:SO-000749")
        session = window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        assert await save_report(session, tmp_path / "report.html", window.say)
        await walker.act("store.close")

    run(walk())
    assert state_of(store) == state_before


def test_the_tree_counts_and_row_40_abort_and_checkpoint_are_explained(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "abort")
        tree = walker.window.side.findChild(QAbstractItemView, "store.tree")
        assert tree is not None
        model = tree.model()
        assert model is not None
        top = [str(model.index(n, 0).data(11) or model.index(n, 0).data()) for n in range(model.rowCount())]
        text = " | ".join(top)
        for part in ("Commit log", "Topics", "Index files", "Consumer groups", "checkpoint", "abort"):
            assert part in text, text
        assert walker.window.view == "findings"
        session = walker.window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        await walker.rest()
        words = walker.texts(walker.window.panes["findings"])
        assert "the store was not closed" in words.lower()
        await walker.go("checkpoint")
        assert walker.window.view == "positions"
        rows = " ".join(" ".join(row.values()) for row in walker.rows("positions.now"))
        assert "checkpoint" in rows

    run(walk())


def test_damage_is_a_row_and_row_21_what_lies_behind_it_is_listed(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    store = copied(orders)
    file = store / "commitlog" / "00000000000000000000"
    raw = bytearray(file.read_bytes())
    raw[5_335 : 5_335 + 2_000] = b"\xee" * 2_000
    file.write_bytes(raw)

    async def walk() -> None:
        await walker.open(store, "log:5335")
        rows = walker.table(LOG).table.rows
        position = next(n for n, row in enumerate(rows) if row.offset == 5_335)
        spoken = walker.table(LOG).kind.speak(rows[position])
        assert "Damaged · was StockReserved/2/1 and 5 more" in spoken, spoken
        offsets_behind = [row.offset for row in rows[position + 1 :]]
        assert offsets_behind
        assert 7_013 < offsets_behind[0] < 8_200, "the next whole unit is found again"

    run(walk())


def test_crcs_are_checked_row_16_flags_in_words_row_24_tags_come_back(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged, "log:1310900")
        assert walker.value(LOG, "CRC") == "bad"
        fields = walker.fields()
        assert "0x" in fields["bodyCRC"]
        assert {"sysFlag", "bornHost", "storeHost", "queueOffset", "preparedTransactionOffset"} <= set(fields)
        await walker.go("queue:OrderPaid/2/100")
        await walker.rest()
        assert walker.row("queue.table")["Tag"] in {"card", "paypal", "invoice"}

    run(walk())


def test_the_layout_comes_back_and_can_be_reset(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(orders)
        window.split.setSizes([500, 900])
        wide = window.split.sizes()[0]
        states = window.layouts.states()
        await walker.act("layout.reset")
        assert window.split.sizes()[0] < wide
        window.layouts.take(states)
        assert abs(window.split.sizes()[0] - wide) < 8
        await walker.act("layout.reset")
        assert window.size() == QSize(1600, 1000)
        assert window.findChild(QLabel, "status.message") is not None

    run(walk())
