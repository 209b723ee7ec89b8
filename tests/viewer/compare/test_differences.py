"""Rows of differences of two stores: their links, and their copied text."""

from __future__ import annotations

from engine.inspection.difference_rows import Row, UnitRange
from viewer.compare.differences import KIND, TOTAL, OtherWindowLink
from viewer.compare.differences_model import QueueTotal
from viewer.runtime import places


def test_a_row_leads_into_either_window():
    row = Row("unit", "differs", "T/0/5", offset=640)
    jumps = {column.key: column.jump for column in KIND.columns}
    assert jumps["here"](row) == places.log(640)
    assert jumps["there"](row) == OtherWindowLink(places.log(640))
    assert KIND.record(row)["physicalOffset"] == 640


def test_a_total_leads_to_its_first_entry_in_either_window():
    total = QueueTotal("T", 1, {"here": UnitRange(3, 5, 9), "there": UnitRange(1, 2, 2)})
    jumps = {column.key: column.jump(total) for column in TOTAL.columns if column.jump is not None}
    assert jumps == {
        "here": places.queue("T", 1, 5),
        "there": OtherWindowLink(places.queue("T", 1, 2)),
        "differs": None,
    }
    assert TOTAL.as_text(total).split("\t") == ["T", "1", "3", "1", "", "2 … 9"]
