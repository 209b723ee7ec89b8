from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from viewer.shell.palette_box import MAX_LINES, Entry, PaletteBox


@pytest.fixture
def box(qtbot):
    window = QWidget()
    window.resize(1000, 800)
    qtbot.addWidget(window)
    window.heard = []
    entries = [
        Entry("Commands", "", f"Command {n}", f"id.{n}", "", lambda n=n: window.heard.append(n)) for n in range(30)
    ]
    palette_box = PaletteBox(window, lambda text: [e for e in entries if text.casefold() in e.text.casefold()])
    window.show()
    palette_box.open()
    yield palette_box
    window.close()


def test_every_line_can_be_reached_with_the_arrows(box, qtbot):
    assert box.count.text() == f"{MAX_LINES} of 30"
    for _ in range(20):
        qtbot.keyClick(box.field, Qt.Key.Key_Down)
    assert (box.list.current, box.list.top) == (20, 20 - MAX_LINES + 1)
    assert box.list.accessibleName().startswith("Command 20")
    qtbot.keyClick(box.field, Qt.Key.Key_Return)
    assert box.parentWidget().heard == [20]


def test_up_from_the_first_goes_to_the_last(box, qtbot):
    qtbot.keyClick(box.field, Qt.Key.Key_Up)
    assert (box.list.current, box.list.top) == (29, 30 - MAX_LINES)
    box.field.setText("command 7")
    assert (box.list.current, box.list.top) == (0, 0)
    assert len(box.list._boxes()) == 2
