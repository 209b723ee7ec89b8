"""Entries byte by byte."""

from __future__ import annotations

from PySide6.QtCore import Qt

from viewer.queues import columns
from viewer.queues.entry_cells import VERDICTS, ByteField, EntryBytes, EntryCells


def test_cells_walk_by_arrow_keys(shown, qtbot) -> None:
    cells = shown(EntryCells())
    base = 1 << 40
    cells.show_entries({base: "ok", base + 1: "missing"}, (base, base + 500), {base + 3: ("group", "posBuild")})
    cells.choose(base)
    cells.grab()
    assert "ok" in cells.accessibleDescription()
    with qtbot.waitSignal(cells.entry_chosen) as blocker:
        qtbot.keyClick(cells, Qt.Key.Key_Down)
    assert blocker.args == [base + 32]
    with qtbot.waitSignal(cells.entry_chosen) as blocker:
        qtbot.mouseClick(cells, Qt.MouseButton.LeftButton, pos=cells._cell(5).center().toPoint())
    assert blocker.args == [base + 5]


def test_an_entry_that_is_cut_off_still_shows_its_fields(shown) -> None:
    widget = shown(EntryBytes(), 360)
    widget.show_entry(
        b"\x00\x01", [ByteField("physicalOffset", 0, 8, "id", "1"), ByteField("x", 8, 20, "frame", "", "note")]
    )
    widget.grab()
    assert "physicalOffset" in widget.accessibleDescription()


def test_every_verdict_has_its_cell() -> None:
    """An entry of another queue was shown as an empty cell between green ones."""
    assert set(VERDICTS) >= set(columns.VERDICTS)
