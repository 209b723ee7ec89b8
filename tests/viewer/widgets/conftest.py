"""A table in a frame."""

from __future__ import annotations

import pytest
from many_entries import KIND
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.widgets.record_view import RecordView


@pytest.fixture
def view(qtbot):
    record_view = RecordView("queue.table", KIND)
    frame = QWidget()
    box = QVBoxLayout(frame)
    box.setContentsMargins(0, 0, 0, 0)
    box.addWidget(record_view)
    box.addWidget(record_view.strip)
    qtbot.addWidget(frame)
    frame.resize(700, 506)
    frame.show()
    record_view.tester = QAbstractItemModelTester(
        record_view.model(), QAbstractItemModelTester.FailureReportingMode.Warning
    )
    record_view.frame = frame
    return record_view
