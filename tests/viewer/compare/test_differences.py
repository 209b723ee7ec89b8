"""Rows of differences of two stores: their links, and their copied text."""

from __future__ import annotations

from viewer.compare.differences import KIND, OtherWindowLink
from viewer.compare.work import Row
from viewer.runtime import places


def test_a_row_leads_into_either_window():
    row = Row("unit", "differs", "T/0/5", place_here=places.log(640), place_there=places.log(700))
    jumps = {column.key: column.jump for column in KIND.columns}
    assert jumps["here"](row) == places.log(640)
    assert jumps["there"](row) == OtherWindowLink(places.log(700))
    assert KIND.record(row)["physicalOffset"] == 640
