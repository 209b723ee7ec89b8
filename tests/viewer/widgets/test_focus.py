"""Frame around the focus, drawn where a key brought it; Tab goes through a view in reading order."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from viewer.widgets.choices import ChoiceList
from viewer.widgets.focus import FocusRing, in_reading_order, set_reading_order


@pytest.mark.parametrize(
    ("reason", "is_shown"), [(Qt.FocusReason.TabFocusReason, True), (Qt.FocusReason.MouseFocusReason, False)]
)
def test_the_focus_frame_comes_with_a_key_and_goes_with_the_focus(shown, reason, is_shown):
    part = QWidget()
    ring = FocusRing(part)
    shown(part)
    part.resize(300, 200)
    QApplication.sendEvent(part, QFocusEvent(QEvent.Type.FocusIn, reason))
    assert ring.isVisible() is is_shown
    assert ring.geometry() == part.rect()
    QApplication.sendEvent(part, QFocusEvent(QEvent.Type.FocusOut))
    assert not ring.isVisible()


def test_parts_are_read_line_by_line_whatever_was_made_first(qtbot):
    last_button, second_field, first_field, third_button = (
        QPushButton("last"),
        QLineEdit(),
        QLineEdit(),
        QPushButton("third"),
    )
    root, upper = QWidget(), QWidget()
    line = QHBoxLayout(upper)
    for part in (first_field, QLabel("no stop"), second_field):
        line.addWidget(part)
    split = QSplitter()
    area = QScrollArea()
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(last_button)
    split.addWidget(third_button)
    split.addWidget(area)
    box = QVBoxLayout(root)
    box.addWidget(upper)
    box.addWidget(split)
    qtbot.addWidget(root)
    assert list(in_reading_order(root)) == [first_field, second_field, third_button, last_button]
    set_reading_order(root)
    assert first_field.nextInFocusChain() is not third_button
    chain, current = [], first_field
    for _ in range(60):
        if current in (first_field, second_field, third_button, last_button):
            chain.append(current)
        current = current.nextInFocusChain()
        if current is first_field:
            break
    assert chain == [first_field, second_field, third_button, last_button]


def test_an_empty_list_shows_the_focus(qtbot):
    """Tab stopped at the empty list of colouring rules, and nothing showed it."""
    names = ChoiceList()
    qtbot.addWidget(names)
    names.show()
    without_focus = names.grab().toImage()
    names.setFocus(Qt.FocusReason.TabFocusReason)
    QApplication.sendEvent(names, QFocusEvent(QEvent.Type.FocusIn, Qt.FocusReason.TabFocusReason))
    assert names.grab().toImage() != without_focus
