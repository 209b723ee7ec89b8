"""The dialog of the colouring rules: its contents, its result, and the order of the rules."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from viewer.log.colour_box import ColourBox
from viewer.log.colour_rules import Rule


@pytest.fixture
def box(qtbot):
    colour_box = ColourBox([Rule("Paid", 'tags = "paid"', "green"), Rule("Big", "size > 900", "amber")])
    colour_box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    colour_box.heard = []
    colour_box.changed.connect(colour_box.heard.append)
    qtbot.addWidget(colour_box)
    colour_box.show()
    return colour_box


def test_rules_are_edited_ordered_and_applied(box):
    box.add("flag = 1")
    assert box.rules[0].text == "flag = 1"
    box.name.setText("Flagged")
    box.name.textEdited.emit("Flagged")
    box.tint.setCurrentIndex(box.tint.findData("red"))
    box.tint.activated.emit(box.tint.currentIndex())
    box._down()
    box.list.setCurrentRow(0)
    box.delete()
    box.apply()
    assert box.heard == [[Rule("Flagged", "flag = 1", "red"), Rule("Big", "size > 900", "amber")]]


def test_an_invalid_filter_has_a_message(box):
    box.text.setText("sise > 3")
    box.text.textEdited.emit("sise > 3")
    assert "sise" in box.fault.text()
    box.text.setText("size > 3")
    box.text.textEdited.emit("size > 3")
    assert box.fault.text() == ""


def test_every_tint_is_drawn(box):
    assert box.grab().width() > 0
    assert box.list.count() == 2
