"""Columns and marks of the log's rows."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from viewer.log.columns import look
from viewer.log.rows import EdgeRow


def test_a_row_that_cannot_be_read_is_no_damage(dressed: QApplication) -> None:
    found = look(EdgeRow("error", 0, 100, 100, "Permission denied"))
    assert found is not None
    assert (found.mark, found.fill, found.tone) == ("unread", "sunken", "text2")
