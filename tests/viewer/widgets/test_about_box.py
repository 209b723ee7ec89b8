"""Versions of the program and its parts, ready to copy."""

from __future__ import annotations

import platform

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from engine import __version__
from viewer.widgets import about_box
from viewer.widgets.about_box import AboutBox, facts


def test_versions_of_the_program_and_its_parts(monkeypatch, qapp):
    monkeypatch.setattr(about_box, "PACKAGES", ("numpy", "no-such-package"))
    lines = facts().splitlines()
    assert lines[0] == f"Storescope {__version__}"
    assert lines[1].startswith(f"Python {platform.python_version()} · Qt ")
    assert lines[-2].startswith("numpy ")
    assert lines[-1] == "no-such-package: not installed"


def test_they_are_copied(qtbot):
    from PySide6.QtWidgets import QWidget

    parent = QWidget()
    qtbot.addWidget(parent)
    box = AboutBox(parent)
    next(button for button in box.findChildren(QPushButton) if button.text() == "Copy").click()
    assert QGuiApplication.clipboard().text() == facts()
