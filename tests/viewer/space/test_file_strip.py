"""Strip of one file of the log."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from engine.inspection.file_map import FileMap, MapCell
from viewer.space.file_strip import FileStrip

LEFT = Qt.MouseButton.LeftButton


CELL_COUNT = tuple(
    MapCell(
        n * 100,
        (n + 1) * 100,
        (("Orders", 60), ("Paid", 20)) if n < 8 else (),
        int(n == 3),
        20 if n == 5 else 0,
        10 if n == 7 else 0,
        0 if n < 8 else 100,
        100 if n < 8 else 0,
    )
    for n in range(10)
)


@pytest.fixture
def strip(qtbot):
    file_strip = FileStrip()
    qtbot.addWidget(file_strip)
    file_strip.resize(800, 52)
    file_strip.show()
    file_strip.show_map(FileMap("0", 0, 1000, CELL_COUNT, 20, (333,), ((520, 20),), True))
    file_strip.grab()
    return file_strip


def test_a_click_goes_to_the_damage_or_the_first_byte(strip, qtbot):
    for cell, offset in ((1, 100), (3, 333), (5, 520)):
        with qtbot.waitSignal(strip.offsetChosen) as placed:
            qtbot.mouseClick(strip, LEFT, pos=QPoint(round(strip._cell_left(cell)) + 6, 25))
        assert placed.args[0] == offset


def test_the_strip_describes_topics_crcs_and_holes(strip, qtbot):
    assert "Orders 60%" in strip.words_of(0)
    assert "1 wrong CRC" in strip.words_of(3)
    assert "damaged 20 B" in strip.words_of(5)
    assert "a hole" in strip.words_of(9)
    strip.setFocus()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left):
        qtbot.keyClick(strip, key)
    assert strip.accessibleDescription().startswith("100 – 200")
    with qtbot.waitSignal(strip.offsetChosen):
        qtbot.keyClick(strip, Qt.Key.Key_Return)


def test_a_strip_without_a_map_says_why(strip, qtbot):
    strip.show_map(None, "stopped")
    strip.grab()
    qtbot.keyClick(strip, Qt.Key.Key_Right)
    assert strip.accessibleDescription() == "stopped"
