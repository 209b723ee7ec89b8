from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from panes import wait_until
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from engine.inspection import open_store
from viewer.log.columns import unit_kind
from viewer.log.rows import LogSource
from viewer.pane.exporting import TableExportBox, write_rows
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.shell.main_window import MainWindow
from viewer.widgets.row_window import ListSource

KIND = unit_kind(places.queue)


@pytest.fixture
def control():
    return Control(lambda *reported: None)


def test_every_row_of_a_log_becomes_a_line(golden, tmp_path, control):
    with open_store(golden("clean-5.3.3")) as store:
        source = LogSource(store.log)
        rows = source.read(0, 0, 1 << 20).rows
        count = write_rows(control, source, KIND, tmp_path / "units.jsonl")
    written = [json.loads(line) for line in (tmp_path / "units.jsonl").read_text("utf-8").splitlines()]
    assert count == len(written) == len(rows)
    assert [record["physicalOffset"] for record in written] == [row.offset for row in rows]


def test_csv_has_rocketmqs_names_as_its_head(golden, tmp_path, control):
    with open_store(golden("ipv6-and-unicode-5.3.3")) as store:
        write_rows(control, LogSource(store.log), KIND, tmp_path / "units.csv")
    with (tmp_path / "units.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {"physicalOffset", "topic", "storeTimestamp", "crc"} <= set(lines[0])
    assert lines[0]["physicalOffset"] == "0"


def test_an_export_that_is_stopped_leaves_no_file(tmp_path, control):
    control.stop = threading.Event()
    control.stop.set()
    with pytest.raises(Cancelled):
        write_rows(control, ListSource([{"a": 1}]), KIND, tmp_path / "x.jsonl")
    assert list(tmp_path.iterdir()) == []


Run = Callable[[Any], Any]


Golden = Callable[..., Path]


async def opened(window: MainWindow, path: Path) -> None:
    assert await window.open(path)
    assert await window.settled(60)


def test_a_table_is_exported_by_the_box_of_exports(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path
) -> None:
    """Bookmarks opened a plain file dialog without the export forms."""

    async def export() -> None:
        await opened(window, golden("broker-orders"))
        window.show_view("groups")
        await window.settled(60)
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
        await wait_until((tmp_path / "rows.csv").exists, "the export is there")
        assert (tmp_path / "rows.csv").read_text("utf-8").startswith("group,topic,queueId,")

    run(export())
