"""The same table of differences for two windows (here, there) and for one page (A, B)."""

from __future__ import annotations

from engine.inspection.difference_rows import Row
from viewer.compare.difference_tables import KIND, TOTAL, named_sides


def test_on_one_page_the_stores_are_named_a_and_b() -> None:
    row = Row("unit", "here", "Orders/0/1")
    named = named_sides(KIND)
    assert [column.title for column in named.columns][-2:] == ["In A", "In B"]
    assert named.columns[0].text(row) == "only in A"
    assert named.columns[0].chip(row).word == "only in A"
    assert KIND.columns[0].text(row) == "only here"
    assert [column.title for column in named_sides(TOTAL).columns][2:4] == ["Only in A", "Only in B"]
