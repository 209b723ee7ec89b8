"""Columns and marks of the log's rows."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from engine.inspection import open_store
from viewer.log.columns import look, unit_kind, verdict
from viewer.log.rows import EdgeRow, LogSource, UnitRow


def test_a_row_that_cannot_be_read_is_no_damage(dressed: QApplication) -> None:
    found = look(EdgeRow("error", 0, 100, 100, "Permission denied"))
    assert found is not None
    assert (found.mark, found.fill, found.tone) == ("unread", "sunken", "text2")


KIND = unit_kind(lambda topic, queue_id, offset: (topic, queue_id, offset))


@pytest.fixture
def flipped(golden):
    with open_store(golden("crash-flip-5.3.3")) as store:
        yield store


def everything(source):
    return source.read(source.start, 0, 1 << 20).rows


def test_a_wrong_crc_is_marked_and_said_first(flipped):
    bad = [row for row in everything(LogSource(flipped.log)) if isinstance(row, UnitRow) and row.crc == "bad"]
    assert len(bad) == 1
    assert look(bad[0]).mark == "error"
    assert KIND.speak(bad[0]).startswith("body CRC bad. ")


def test_edges_speak_in_words(flipped):
    rows = [row for row in everything(LogSource(flipped.log)) if isinstance(row, EdgeRow)]
    assert {row.kind for row in rows} >= {"blank", "zero"}
    blank = next(row for row in rows if row.kind == "blank")
    assert blank.next_file in look(blank).words
    assert look(EdgeRow("damage", 5, 1874, 1879, "length field says 1,936,422,189")).fill == "errorFill"
    assert verdict(EdgeRow("damage", 5, 9, 14)) == "damage"
