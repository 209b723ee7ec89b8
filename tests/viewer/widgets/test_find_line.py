from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from viewer.widgets.find_line import FindLine


@pytest.fixture
def line(qtbot):
    find_line = FindLine(used=lambda: ["older", "oldest"])
    find_line.heard = []
    find_line.hitRequested.connect(find_line.heard.append)
    find_line.closed.connect(lambda: find_line.heard.append("closed"))
    qtbot.addWidget(find_line)
    find_line.resize(1200, 40)
    find_line.show()
    return find_line


def test_enter_finds_on_and_shift_enter_back(line, qtbot):
    qtbot.keyClicks(line.field, "abc")
    qtbot.keyClick(line.field, Qt.Key.Key_Return)
    qtbot.keyClick(line.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(line.field, Qt.Key.Key_Escape)
    assert line.heard == [1, -1, "closed"]
    assert line.sought().text == "abc"


def test_an_invalid_search_is_reported_at_once(line, qtbot):
    line.kinds.choose("hex")
    qtbot.keyClicks(line.field, "DA A")
    assert line.sought() is None
    assert "hex" in line.result.text()
    assert line.field.property("state") == "error"
    qtbot.keyClicks(line.field, "3")
    assert line.sought() is not None
    assert line.field.property("state") == ""


def test_arrow_keys_bring_earlier_searches_back(line, qtbot):
    for key, text in ((Qt.Key.Key_Up, "older"), (Qt.Key.Key_Up, "oldest"), (Qt.Key.Key_Down, "older")):
        qtbot.keyClick(line.field, key)
        assert line.field.text() == text


def test_a_long_result_keeps_its_end_and_is_whole_in_its_tool_tip(line):
    line.resize(700, 40)
    line.say(
        "4 of 295 · in the rows of the filter · Found at 1,049,270 · continued from the other end · properties.TAGS"
    )
    line.result.grab()
    assert line.result.toolTip() == line.result.text()
    assert line.result.fontMetrics().elidedText(line.result.text(), line.result._mode, 200).endswith("TAGS")
