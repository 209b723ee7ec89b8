"""Rows of differences of two stores: their links, and their copied text."""

from __future__ import annotations

from engine.inspection.difference_rows import Row
from viewer.compare.differences import KIND, OtherWindowLink
from viewer.runtime import places


def test_a_row_leads_into_either_window():
    row = Row("unit", "differs", "T/0/5", offset=640)
    jumps = {column.key: column.jump for column in KIND.columns}
    assert jumps["here"](row) == places.log(640)
    assert jumps["there"](row) == OtherWindowLink(places.log(640))
    assert KIND.record(row)["physicalOffset"] == 640
