"""The focus of what paints none: seen where a key brought it, and only there."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QApplication, QWidget

from viewer.widgets.focus_ring import FocusRing


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
