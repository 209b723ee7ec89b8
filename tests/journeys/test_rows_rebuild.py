"""Queues and index are rebuilt from the log in a new place, and compared with those of the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QLineEdit
from walker import Run, Walker

from viewer.compare.rebuild import RebuildBox

pytestmark = pytest.mark.journey
TABLE = "rebuild.table"


def test_queues_and_index_are_rebuilt_elsewhere_and_compared(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path], tmp_path: Path
) -> None:
    store = copied(orders)
    queue = store / "consumequeue" / "SCHEDULE_TOPIC_XXXX"
    queue = queue if queue.is_dir() else sorted((store / "consumequeue").iterdir())[0]
    file = sorted(queue.glob("*/*"))[0]
    raw = bytearray(file.read_bytes())
    raw[19] ^= 1
    file.write_bytes(raw)

    def there() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    async def walk() -> None:
        await walker.open(store)
        await walker.act("dispatch.rebuild")
        box = walker.find(RebuildBox, "rebuild.box")
        reported = walker.find(QLabel, "rebuild.told")
        await walker.until(lambda: "of log" in reported.text(), "the numbers are there")
        assert not box.isModal()
        assert "index files" in reported.text()
        field = walker.find(QLineEdit, "rebuild.target")
        note = walker.find(QLabel, "rebuild.note")
        field.setText(str(store / "inside"))
        box.start.click()
        await walker.until(lambda: "into the store" in note.text(), "the store is refused")
        field.setText(str(tmp_path / "built"))
        box.start.click()
        box.stop.click()
        await walker.until(lambda: "nothing is left" in note.text(), "it was stopped")
        assert there() == ["store"]
        box.start.click()
        await walker.until(lambda: box.comparison is not None, "it is built")
        assert (tmp_path / "built" / "consumequeue").is_dir()
        rows = walker.rows(TABLE)
        assert [row["Compared"] for row in rows] == ["differs"] + ["equal"] * (len(rows) - 1)
        assert (rows[0]["Topic"], rows[0]["Queue"]) == (queue.name, file.parent.name), "the difference stands first"
        assert rows[0]["First difference"] == "0"
        assert "1 of" in note.text()
        box.copy.click()
        assert walker.clipboard.splitlines()[1].startswith(f"{queue.name}\t{file.parent.name}\t")
        await walker.follow(TABLE)
        assert walker.window.view == "queue"
        assert queue.name in walker.place
        assert box.isVisible(), "the table stays beside the window"
        walker.table(TABLE).copy_current("json")
        assert json.loads(walker.clipboard)["firstDifference"] == 0
        assert "dispatch" in walker.window.changes.operations.list[-1].cli
        box.reject()

    run(walk())
