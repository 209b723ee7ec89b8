from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog

from viewer.log.filter_line import FilterLine, FilterPills


@pytest.fixture
def line(qtbot):
    filter_line = FilterLine(
        values=lambda field: ("OrderPaid", "OrderCreated") if field == "topic" else (),
        used=lambda: ["size > 1", "size > 2"],
    )
    filter_line.pills.show_saved([("CRC bad", 'crc = "bad"')])
    qtbot.addWidget(filter_line)
    filter_line.resize(1300, 60)
    filter_line.show()
    filter_line.heard = []
    filter_line.applied.connect(filter_line.heard.append)
    return filter_line


def test_enter_applies_a_good_filter_and_the_edge_turns_green(line, qtbot):
    qtbot.keyClicks(line.field, "size > 300")
    qtbot.keyClick(line.field, Qt.Key.Key_Return)
    assert line.heard == ["size > 300"]
    assert line.field.property("state") == "ok"


def test_an_error_is_shown_below_its_word_and_nothing_is_applied(line, qtbot):
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


def test_clearing_the_text_removes_the_filter(line, qtbot):
    line.apply("size > 1")
    line._clear.trigger()
    assert line.heard == ["size > 1", ""]
    assert line.field.property("state") == ""


@pytest.fixture
def pills(qtbot):
    filter_pills = FilterPills(lambda: "flag = 1")
    filter_pills.show_saved([("CRC bad", 'crc = "bad"'), ("Large", "size > 1000")])
    filter_pills.heard, filter_pills.kept = [], []
    filter_pills.chosen.connect(filter_pills.heard.append)
    filter_pills.changed.connect(lambda saved: filter_pills.kept.append(list(saved)))
    qtbot.addWidget(filter_pills)
    filter_pills.set_room(900)
    filter_pills.show()
    return filter_pills


def test_a_click_chooses_its_filter(pills, qtbot):
    qtbot.mouseClick(pills._buttons[1], Qt.MouseButton.LeftButton)
    assert pills.heard == ["size > 1000"]
    assert pills._buttons[1].toolTip() == "size > 1000"


def test_changes_of_the_list_are_signalled(pills):
    pills.save("Mine")
    pills.rename(0, "Broken")
    pills.replace(1)
    pills.delete(2)
    assert pills.kept[-1] == [("Broken", 'crc = "bad"'), ("Large", "flag = 1")]
    pills.save("Large")
    assert pills.kept[-1] == [("Broken", 'crc = "bad"'), ("Large", "flag = 1")]


def test_saving_needs_a_name(pills):
    dialog = pills.ask_name()
    assert isinstance(dialog, QInputDialog)
    dialog.setTextValue("Flagged")
    dialog.accept()
    assert ("Flagged", "flag = 1") in pills.saved


def test_without_a_filter_no_name_is_requested(qtbot):
    pills = FilterPills(lambda: " ")
    qtbot.addWidget(pills)
    assert pills.ask_name() is None


def test_filters_that_do_not_fit_are_in_the_menu(pills):
    pills.set_room(10)
    assert not any(button.isVisible() for button in pills._buttons)
    texts = [action.text() for action in pills.menu().actions()]
    assert texts[:2] == ["CRC bad", "Large"]
    assert "Change Large" in texts
    pills.set_room(0)
    assert not pills.isVisible()
