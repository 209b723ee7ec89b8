"""The box that exports a table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from viewer.pane.table_export_box import TableExportBox
from viewer.shell.main_window import MainWindow

Run = Callable[[Any], Any]


Golden = Callable[..., Path]


async def opened(window: MainWindow, path: Path) -> None:
    assert await window.open(path)
    assert await window.settled(30)


def test_a_table_is_exported_by_the_box_of_exports(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path
) -> None:
    """From Bookmarks a bare dialog of files came up, without the forms."""

    async def export() -> None:
        await opened(window, golden("broker-orders"))
        window.show_view("groups")
        await window.settled(10)
        window.actions_by_id["export.table"].trigger()
        box = window.findChild(TableExportBox, "export.box")
        assert box is not None
        go = box.findChild(QPushButton, "export.go")
        assert go is not None
        assert go.isDefault()
        box.form.setCurrentIndex(1)
        assert box.path.text().endswith(".csv")
        box.path.setText(str(tmp_path / "rows.csv"))
        QTest.keyClick(box.path, Qt.Key.Key_Return)
        for _ in range(500):
            await asyncio.sleep(0.01)
            if (tmp_path / "rows.csv").exists():
                break
        assert (tmp_path / "rows.csv").read_text("utf-8").startswith("group,topic,queueId,")

    run(export())
