"""A table in a frame."""

from __future__ import annotations

import pytest
from many_entries import KIND
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.widgets.record_view import RecordView


@pytest.fixture
def view(qtbot):
    made = RecordView("queue.table", KIND)
    frame = QWidget()
    box = QVBoxLayout(frame)
    box.setContentsMargins(0, 0, 0, 0)
    box.addWidget(made)
    box.addWidget(made.strip)
    qtbot.addWidget(frame)
    frame.resize(700, 506)
    frame.show()
    made.tester = QAbstractItemModelTester(made.model(), QAbstractItemModelTester.FailureReportingMode.Warning)
    made.frame = frame
    return made
