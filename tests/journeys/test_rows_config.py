"""Tables below config/: the file that a broker takes, its reason, and differences between a table and its .bak."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from walker import Run, Walker

from viewer.widgets.word_tabs import WordTabs

pytestmark = pytest.mark.journey
TABLES, VALUES, CHANGES = "config.tables", "config.values", "config.changes"


def test_tables_are_compared_with_their_bak(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    store = copied(orders)
    folder = store / "config"
    offsets = (folder / "consumerOffset.json").read_text("utf-8")
    (folder / "consumerOffset.json.bak").write_text(
        offsets.replace('"OrderPaid@billing":{0:260', '"OrderPaid@billing":{0:250'), "utf-8"
    )
    (folder / "subscriptionGroup.json.bak").unlink()
    topics = (folder / "topics.json").read_text("utf-8")
    (folder / "topics.json.bak").write_text(topics, "utf-8")
    (folder / "topics.json").write_text(topics[: len(topics) // 2], "utf-8")

    async def walk() -> None:
        await walker.open(store, "config:consumerOffset.json")
        await walker.until(lambda: walker.table(TABLES).model().rowCount() > 2, "the tables are read")
        reported = {row["Table"]: row for row in walker.rows(TABLES)}
        assert reported["consumerOffset.json"]["A broker"] == "loads"
        assert reported["consumerOffset.json"]["Against its .bak"] == "1 value"
        assert reported["topics.json"]["A broker"] == "the .bak is used"
        assert "so a broker uses topics.json.bak" in reported["topics.json"]["Why"]
        assert walker.row(TABLES)["Table"] == "consumerOffset.json"
        walker.find(WordTabs, "config.tabs").choose("changes")
        await walker.rest()
        assert walker.rows(CHANGES) == [
            {
                "": "",
                "Change": "changed",
                "Name": "offsetTable.OrderPaid@billing.0",
                "In the .bak": "250",
                "In the .json": "260",
            }
        ]
        names = [row["Table"] for row in walker.rows(TABLES)]
        await walker.choose(TABLES, names.index("topics.json"))
        state = walker.table(CHANGES).note.state
        assert state is not None
        assert "topics.json cannot be read" in state.text
        walker.find(WordTabs, "config.tabs").choose("values")
        await walker.rest()
        assert walker.rows(VALUES), "what the .bak says is what counts"
        state = walker.table(VALUES).strip.state
        assert state is not None
        assert "so a broker uses topics.json.bak" in state.text
        await walker.choose(TABLES, names.index("subscriptionGroup.json"))
        assert walker.row(TABLES)["Against its .bak"] == ""
        state = walker.table(CHANGES).note.state
        assert state is not None
        assert state.text == "There is no subscriptionGroup.json.bak."

    run(walk())
