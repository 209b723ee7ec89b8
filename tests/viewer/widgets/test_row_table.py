"""Rows in one pass: links under the pointer and by key, the menu of a cell, and rows that fit."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from viewer.widgets.columns import RecordKind, RowLook, number_column, text_column
from viewer.widgets.record_view import RecordView

KIND = RecordKind(
    "row",
    (text_column("name", "Name", 200), number_column("offset", "Offset", 120, jump=lambda row: ("log", row["offset"]))),
    look=lambda row: RowLook("error", words="all over") if row["name"] == "odd" else None,
)


@pytest.fixture
def table(qtbot):
    view = RecordView("some.table", KIND)
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show()
    more = [{"name": "b", "offset": number} for number in range(40)]
    view.set_rows([{"name": "a", "offset": 640}, {"name": "odd", "offset": 7}, *more])
    view.grab()
    return view


def test_a_cell_leads_somewhere_unless_the_row_is_words(table):
    offset = KIND.columns[1]
    assert table.place_at(0, offset) == ("log", 640)
    assert table.place_at(1, offset) is None
    assert table.place_at(0, KIND.columns[0]) is None


def test_the_link_lies_under_its_text_only(table):
    slot = next(one for one in table.slots_on_screen() if one.column.key == "offset")
    left, width = table.painter.text_span(table.table, 0, slot)
    middle = table.row_height() // 2
    assert table.link_at(QPoint(left + width // 2, middle)) == (0, slot.section)
    assert table.link_at(QPoint(slot.x + 1, middle)) == (-1, -1)
    assert table.link_at(QPoint(left + width // 2, -3)) == (-1, -1)


def test_a_click_on_a_link_follows_it_and_shift_f10_opens_the_menu(table, qtbot):
    asked, menus = [], []
    table.placeRequested.connect(asked.append)
    table.menuRequested.connect(lambda row, column, _at: menus.append((row["name"], column)))
    slot = next(one for one in table.slots_on_screen() if one.column.key == "offset")
    left, width = table.painter.text_span(table.table, 0, slot)
    at = QPoint(left + width // 2, table.row_height() // 2)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert asked == [("log", 640)]
    qtbot.keyClick(table, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    assert menus == [("a", slot.section)]


def test_rows_that_fit_are_whole_ones_and_two_lines_take_more_room(table):
    before = table.row_height()
    assert table.visible_rows() == table.viewport().height() // before
    table.set_lines(2)
    assert table.row_height() > before


def test_more_rows_are_chosen_with_shift(table, qtbot):
    table.setFocus()
    table.first_row()
    for _ in range(3):
        qtbot.keyClick(table, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert table.chosen_span() == (0, 3)
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert table.chosen_span() is None
