"""Two stores side by side, moving together; the first different byte with its unit and field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from walker import Run, Walker

from viewer.compare.differences import DifferencesBox
from viewer.compare.first_difference import sentence
from viewer.pane.exporting import export
from viewer.runtime import places
from viewer.shell.main_window import MainWindow
from viewer.shell.windows import close_all, windows
from viewer.widgets.record_view import RecordView

pytestmark = pytest.mark.journey
LOG = "units.table"


def units_table(window: MainWindow) -> RecordView:
    table = window.findChild(RecordView, LOG)
    assert table is not None
    return table


def top_offset(window: MainWindow) -> int:
    """Return the offset of the first row on the screen."""
    table = units_table(window)
    return table.table.rows[table.verticalScrollBar().value()].offset


@pytest.fixture
def alone(run: Run) -> Iterator[None]:
    """Close every second window, whatever happens."""
    yield
    run(close_all())


def test_two_stores_go_together_and_differ_in_a_named_byte(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path], alone: None
) -> None:
    store = copied(orders)
    log = store / "commitlog" / "00000000000001048576"
    raw = bytearray(log.read_bytes())
    unit = 1_049_472
    position = 1_200_003
    for offset in (position, position + 200_000):
        raw[offset - 1_048_576] ^= 0xFF
    log.write_bytes(raw)

    def near(offset: int) -> bool:
        return unit - 2000 < offset <= unit  # the unit that has this byte

    async def walk() -> None:
        window = walker.window
        await walker.open(orders)
        assert await window.workspace.comparison.find() is None
        assert "Nothing to compare with" in walker.status_text
        other_window = window.workspace.comparison.begin(store)
        assert other_window is not None
        await walker.until(lambda: other_window.session is not None and window.view == "log", "the other stands beside")
        await walker.until(lambda: window.jobs.idle and other_window.jobs.idle, "nothing is under way")
        first = await window.workspace.comparison.find(0)
        assert first is not None
        assert (first.offset, (first.byte_here or 0) ^ (first.byte_there or 0)) == (position, 0xFF)
        assert "First difference" in sentence(first)
        assert f" · {first.entry} · {first.field}" in sentence(first), "the unit and the field are named"
        beside = Walker(other_window)
        await beside.rest()
        await walker.rest()
        shown_offset = walker.value(LOG, "Physical offset")
        assert shown_offset <= position < shown_offset + walker.value(LOG, "Size")
        assert beside.value(LOG, "Physical offset") == shown_offset, "both stand there"
        walker.window.activateWindow()
        for top in (units_table(window), units_table(other_window)):
            assert top.model().rowCount() > 10
        units_table(window).scroll_to(300_003)
        await walker.until(
            lambda: top_offset(window) == top_offset(other_window), "the other log scrolls to the same unit"
        )
        second = await window.workspace.comparison.find()
        assert second is not None
        assert second.offset == position + 200_000
        assert await window.workspace.comparison.find() is None
        other_window.go(places.log(unit))
        await walker.until(lambda: near(beside.value(LOG, "Physical offset")), "the other is there")
        await walker.until(
            lambda: walker.value(LOG, "Physical offset") == beside.value(LOG, "Physical offset"), "either leads"
        )
        await walker.rest()
        await close_all()
        await walker.until(lambda: windows() == (), "the other has closed")
        window.go(places.log(0))
        await walker.rest()

    run(walk())


def test_pattern_16_a_table_of_all_differences_leads_into_either_store(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path], alone: None, tmp_path: Path
) -> None:
    store = copied(orders)
    log = store / "commitlog" / "00000000000001048576"
    raw = bytearray(log.read_bytes())
    for offset in (1_200_003, 1_400_003):
        raw[offset - 1_048_576] ^= 0xFF
    log.write_bytes(raw)
    table = store / "config" / "consumerOffset.json"
    table.write_text(table.read_text().replace('"OrderPaid@billing":{0:260', '"OrderPaid@billing":{0:259'))

    async def walk() -> None:
        window = walker.window
        await walker.open(orders)
        await walker.act("compare.table")
        dialog = walker.find(QFileDialog, "compare.dialog")
        dialog.reject()
        other_window = window.workspace.comparison.begin(store)
        assert other_window is not None
        await walker.until(lambda: other_window.session is not None and window.view == "log", "the other stands beside")
        await walker.until(lambda: window.jobs.idle and other_window.jobs.idle, "nothing is under way")
        await walker.act("compare.table")
        box = walker.find(DifferencesBox, "compare.box")
        await walker.until(lambda: box.model.differences is not None and window.jobs.idle, "both were compared")
        assert box.note.text().startswith("3 differences. ")
        assert box.kinds.itemText(0) == "All differences (3)"
        assert [box.table.kind.as_text(row).split("\t")[0] for row in box.model.differences.rows] == ["differs"] * 3  # type: ignore[union-attr]
        box.kinds.setCurrentIndex(box.kinds.findData("units.differ"))
        await walker.rest()
        assert box.table.total_rows() == 2
        chosen = box.table.current_row()
        assert chosen.offset <= 1_200_003 < chosen.offset + chosen.size
        box.there.click()
        beside = Walker(other_window)
        await beside.rest()
        assert beside.value(LOG, "Physical offset") == chosen.offset
        box.kinds.setCurrentIndex(box.kinds.findData("config"))
        await walker.rest()
        text = box.table.kind.as_text(box.table.current_row())
        assert "consumerOffset.json offsetTable.OrderPaid@billing.0" in text
        assert text.endswith("260\t259")
        box.here.click()
        await walker.rest()
        assert window.view == "config"
        assert window.session is not None
        export(window.session, window.say, box.table, tmp_path / "differences.csv")
        await walker.until((tmp_path / "differences.csv").exists, "the table is exported")
        assert "OrderPaid@billing" in (tmp_path / "differences.csv").read_text()
        box.reject()
        await close_all()
        window.go(places.log(0))
        await walker.rest()

    run(walk())
