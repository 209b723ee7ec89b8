from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from viewer.log.filter_line import FilterLine


@pytest.fixture
def line(qtbot):
    made = FilterLine()
    made.values = lambda field: ("OrderPaid", "OrderCreated") if field == "topic" else ()
    made.pills.show_saved([("CRC bad", 'crc = "bad"')])
    qtbot.addWidget(made)
    made.resize(1300, 60)
    made.show()
    made.heard = []
    made.applied.connect(made.heard.append)
    return made


def test_enter_applies_a_good_filter_and_the_edge_turns_green(line, qtbot):
    qtbot.keyClicks(line.field, "size > 300")
    qtbot.keyClick(line.field, Qt.Key.Key_Return)
    assert line.heard == ["size > 300"]
    assert line.field.property("state") == "ok"


def test_the_fault_stands_under_its_word_and_nothing_is_applied(line, qtbot):
    line.set_text('topic == "OrderPaid" and sise > 300')
    assert not line.apply()
    assert line.heard == []
    assert line.field.property("state") == "error"
    assert "sise" in line.fault
    assert line._fault._at == (25, 4)
    assert line._fault.isVisible()
    line.grab()
    line.set_text("size > 300")
    assert line.check()
    assert not line._fault.isVisible()


def test_completion_offers_fields_then_values_and_tab_takes_one(line, qtbot):
    qtbot.keyClicks(line.field, "top")
    assert line._offers.isVisible()
    assert line.fault == ""
    assert line.field.property("state") != "error"
    qtbot.keyClick(line.field, Qt.Key.Key_Tab)
    assert line.text() == "topic "
    qtbot.keyClicks(line.field, "= ")
    offered = [line._offers.item(n).text().strip() for n in range(line._offers.count())]
    assert '"OrderPaid"' in offered
    qtbot.keyClick(line.field, Qt.Key.Key_Down)
    qtbot.keyClick(line.field, Qt.Key.Key_Down)
    qtbot.keyClick(line.field, Qt.Key.Key_Return)
    assert line.text() == 'topic = "OrderCreated" '
    qtbot.keyClick(line.field, Qt.Key.Key_Escape)
    qtbot.keyClick(line.field, Qt.Key.Key_Return)
    assert line.heard == ['topic = "OrderCreated"']


def test_a_saved_filter_is_one_press_away_and_leaves_a_narrow_line(line, qtbot):
    button = line.pills._buttons[0]
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert line.heard == ['crc = "bad"']
    line.resize(800, 60)
    assert not button.isVisible()


def test_filters_used_before_come_back_with_the_arrows(line, qtbot):
    line.used = lambda: ["size > 1", "size > 2"]
    for key, text in ((Qt.Key.Key_Up, "size > 1"), (Qt.Key.Key_Up, "size > 2"), (Qt.Key.Key_Down, "size > 1")):
        qtbot.keyClick(line.field, key)
        assert line.text() == text
    qtbot.keyClick(line.field, Qt.Key.Key_Down)
    assert line.text() == ""
    assert line.heard == []


def test_a_prepared_filter_waits_for_enter(line, qtbot):
    line.apply("size > 1")
    line.prepare("size > 1 and flag = 2")
    assert line.heard == ["size > 1"]
    assert line.in_force == "size > 1"
    qtbot.keyClick(line.field, Qt.Key.Key_Return)
    assert line.heard[-1] == "size > 1 and flag = 2"


def test_clearing_the_text_takes_the_filter_away(line, qtbot):
    line.apply("size > 1")
    line._clear.trigger()
    assert line.heard == ["size > 1", ""]
    assert line.field.property("state") == ""
