"""Consumer groups offline: progress, oldest unread, beyond the end, deleted queues, and overtaking by retention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from walker import Run, Walker

pytestmark = pytest.mark.journey
GROUPS = "groups.table"


def test_groups_say_what_is_unread_gone_and_beyond(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    store = copied(orders)
    table = store / "config" / "consumerOffset.json"
    lost = '"OrderPaid@lost":{0:99999,1:3},"Nowhere@lost":{0:5},"InvoiceCreated@billing"'
    table.write_text(table.read_text("utf-8").replace('"InvoiceCreated@billing"', lost), "utf-8")

    async def walk() -> None:
        await walker.open(store, "groups")
        await walker.until(lambda: walker.table(GROUPS).model().rowCount() > 10, "groups are read")
        rows = walker.rows(GROUPS)
        assert (rows[0]["Group"], rows[0]["State"]) == ("lost", "beyond the end")
        text = walker.find(QLabel, "groups.says")
        assert "new messages will be skipped" in text.text()
        states = {row["State"] for row in rows}
        assert {"beyond the end", "behind", "queue is gone", "caught up"} <= states
        row_behind = next(n for n, row in enumerate(rows) if row["State"] == "behind")
        await walker.choose(GROUPS, row_behind)
        assert "messages behind" in text.text()
        assert "oldest unread message is" in text.text()
        assert rows[row_behind]["Unread for"]
        await walker.follow(GROUPS, "Next offset")
        assert walker.window.view == "queue"
        await walker.act("go.back")
        await walker.go("groups:billing")
        await walker.until(lambda: walker.row(GROUPS)["Group"] == "billing", "the group is chosen")

    run(walk())
