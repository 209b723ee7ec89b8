"""Find in any table: the next row, wrapping at the end, and the number of the hit."""

from __future__ import annotations

import pytest
from controls import FakeControl

from viewer.pane.table_find import RowHit, find_row
from viewer.widgets.columns import RecordKind, text_column
from viewer.widgets.row_window import ListSource
from viewer.widgets.search_term import SearchTerm

KIND = RecordKind("row", (text_column("name", "Name", 90),))
ROWS = [{"name": name} for name in ("alpha", "needle 1", "beta", "needle 2", "gamma")]


def find(start, *, text="needle", forward=True, span=None):
    source = ListSource(ROWS)
    return find_row(FakeControl(), source, KIND, SearchTerm("text", text, False, False), start, forward, span)


@pytest.mark.parametrize(
    ("start", "forward", "position", "wrapped", "number"),
    [
        (0, True, 1, False, 1),
        (2, True, 3, False, 2),
        (4, True, 1, True, 1),
        (3, False, 1, False, 1),
        (1, False, 3, True, 2),
    ],
)
def test_the_next_and_the_previous_hit(start, forward, position, wrapped, number):
    assert find(start, forward=forward) == RowHit(position, 5, wrapped, number, 2)


def test_only_the_chosen_rows_are_searched():
    assert find(0, span=(2, 4)) == RowHit(3, 3, False, 1, 1)
    assert find(0, span=(4, 4)).position is None


def test_a_missing_text_is_not_found():
    assert find(0, text="nowhere") == RowHit(None, 5, True)
