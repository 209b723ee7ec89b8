"""The frequency of each value: bars, a text for absent values, and the first row of a value."""

from __future__ import annotations

import pytest
from controls import FakeControl
from PySide6.QtCore import Qt

from viewer.pane.frequency import FrequencySheet, count_rows, first_row, value_rows
from viewer.widgets.columns import number_column, text_column
from viewer.widgets.row_window import ListSource

ROWS = [{"name": name, "n": 5} for name in ("a", "b", "a", None, "a")]


def test_values_have_their_part_and_a_bar():
    rows = value_rows([("a", 30), (None, 15), (1_234, 1)], 60)
    assert [(row.shown, row.part) for row in rows] == [("a", 0.5), ("(absent)", 0.25), ("1,234", 1 / 60)]
    assert [row.share for row in rows] == [1, 0.5, pytest.approx(rows[2].units / rows[0].units)]
    assert value_rows([], 0) == []
    assert value_rows([(1_700_000_000_000, 1)], 1, times=True)[0].shown.startswith("2023-11-1")


def test_all_rows_of_a_table_are_counted_and_a_value_s_first_is_found():
    source, name = ListSource(ROWS), text_column("name", "Name", 90)
    counts, rows = count_rows(FakeControl(), source, name)
    assert (dict(counts), rows) == ({"a": 3, "b": 1, None: 1}, 5)
    assert first_row(FakeControl(), source, name, "b") == 1
    assert first_row(FakeControl(), source, number_column("n", "N", 90), 7) is None


def test_enter_narrows_the_filter(qtbot):
    sheet = FrequencySheet([("name", "Name"), ("n", "N")], "n")
    qtbot.addWidget(sheet)
    chosen = []
    sheet.chosen.connect(chosen.append)
    sheet.show_rows(value_rows([("a", 3), ("b", 1)], 4), "2 values")
    qtbot.keyClick(sheet.table, Qt.Key.Key_Return)
    assert (chosen, sheet.fields.currentData(), sheet.note.text()) == (["a"], "n", "2 values")
