"""Enter on a button that has the focus presses that one."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout

from viewer.widgets.basics import Button


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_presses_the_button_that_has_the_focus_and_no_other(qtbot, key):
    """In a dialog that asks, Cancel is the default: it was pressed where the deed had the focus."""
    box = QDialog()
    qtbot.addWidget(box)
    cancel, deed = Button("Cancel"), Button("Cut the power", "danger")
    cancel.setDefault(True)
    line = QVBoxLayout(box)
    pressed = []
    for button in (cancel, deed):
        line.addWidget(button)
        button.clicked.connect(lambda _on=False, button=button: pressed.append(button))
    box.open()
    deed.setFocus()
    qtbot.keyClick(deed, key)
    assert pressed == [deed]
    deed.setEnabled(False)
    qtbot.keyClick(cancel, key)
    assert pressed == [deed, cancel]
