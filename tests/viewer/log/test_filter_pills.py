from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog

from viewer.log.filter_pills import FilterPills


@pytest.fixture
def pills(qtbot):
    made = FilterPills()
    made.show_saved([("CRC bad", 'crc = "bad"'), ("Large", "size > 1000")])
    made.current = lambda: "flag = 1"
    made.heard, made.kept = [], []
    made.chosen.connect(made.heard.append)
    made.changed.connect(lambda saved: made.kept.append(list(saved)))
    qtbot.addWidget(made)
    made.set_room(900)
    made.show()
    return made


def test_a_click_chooses_its_filter(pills, qtbot):
    qtbot.mouseClick(pills._buttons[1], Qt.MouseButton.LeftButton)
    assert pills.heard == ["size > 1000"]
    assert pills._buttons[1].toolTip() == "size > 1000"


def test_the_list_is_edited_and_told(pills):
    pills.save("Mine")
    pills.rename(0, "Broken")
    pills.replace(1)
    pills.delete(2)
    assert pills.kept[-1] == [("Broken", 'crc = "bad"'), ("Large", "flag = 1")]
    pills.save("Large")
    assert pills.kept[-1] == [("Broken", 'crc = "bad"'), ("Large", "flag = 1")]


def test_a_name_is_asked_for(pills):
    dialog = pills.ask_name()
    assert isinstance(dialog, QInputDialog)
    dialog.setTextValue("Flagged")
    dialog.accept()
    assert ("Flagged", "flag = 1") in pills.saved
    pills.current = lambda: " "
    assert pills.ask_name() is None


def test_what_does_not_fit_stands_in_the_menu(pills):
    pills.set_room(10)
    assert not any(button.isVisible() for button in pills._buttons)
    texts = [action.text() for action in pills.menu().actions()]
    assert texts[:2] == ["CRC bad", "Large"]
    assert "Change Large" in texts
    pills.set_room(0)
    assert not pills.isVisible()
