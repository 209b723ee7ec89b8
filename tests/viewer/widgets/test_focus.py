"""The focus of what paints none: seen where a key brought it, and only there.

Tab goes through a view as it is read: by its layouts and splitters, whatever was made first.
"""

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

from viewer.widgets.focus import FocusRing, in_reading_order, set_reading_order


@pytest.mark.parametrize(
    ("reason", "seen"), [(Qt.FocusReason.TabFocusReason, True), (Qt.FocusReason.MouseFocusReason, False)]
)
def test_it_comes_with_a_key_and_goes_with_the_focus(shown, reason, seen):
    part = QWidget()
    ring = FocusRing(part)
    shown(part)
    part.resize(300, 200)
    QApplication.sendEvent(part, QFocusEvent(QEvent.Type.FocusIn, reason))
    assert ring.isVisible() is seen
    assert ring.geometry() == part.rect()
    QApplication.sendEvent(part, QFocusEvent(QEvent.Type.FocusOut))
    assert not ring.isVisible()


def test_parts_are_read_line_by_line_whatever_was_made_first(qtbot):
    last, second, first, third = QPushButton("last"), QLineEdit(), QLineEdit(), QPushButton("third")
    root, upper = QWidget(), QWidget()
    line = QHBoxLayout(upper)
    for part in (first, QLabel("no stop"), second):
        line.addWidget(part)
    split = QSplitter()
    area = QScrollArea()
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(last)
    split.addWidget(third)
    split.addWidget(area)
    box = QVBoxLayout(root)
    box.addWidget(upper)
    box.addWidget(split)
    qtbot.addWidget(root)
    assert list(in_reading_order(root)) == [first, second, third, last]
    set_reading_order(root)
    assert first.nextInFocusChain() is not third
    chain, current = [], first
    for _ in range(60):
        if current in (first, second, third, last):
            chain.append(current)
        current = current.nextInFocusChain()
        if current is first:
            break
    assert chain == [first, second, third, last]
