"""Rows in one pass: links by pointer and key, the menu of a cell, rows that fit, and a glow that fades."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget

from viewer.look.theme import theme
from viewer.positions.pane import renew_rows
from viewer.widgets.columns import RecordKind, RowAppearance, number_column, text_column
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_table import WHOLE_ROW, CellGlow

KIND = RecordKind(
    "row",
    (text_column("name", "Name", 200), number_column("offset", "Offset", 120, jump=lambda row: ("log", row["offset"]))),
    look=lambda row: RowAppearance("error", words="all over") if row["name"] == "odd" else None,
)


@pytest.fixture
def table(qtbot):
    view = RecordView("some.table", KIND)
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show()
    extra = [{"name": "b", "offset": number} for number in range(40)]
    view.set_rows([{"name": "a", "offset": 640}, {"name": "odd", "offset": 7}, *extra])
    view.grab()
    return view


def test_a_cell_leads_somewhere_unless_the_row_is_words(table):
    offset = KIND.columns[1]
    assert table.place_at(0, offset) == ("log", 640)
    assert table.place_at(1, offset) is None
    assert table.place_at(0, KIND.columns[0]) is None


def test_the_link_lies_under_its_text_only(table):
    slot = next(item for item in table.slots_on_screen() if item.column.key == "offset")
    remaining, width = table.painter.text_span(table.table, 0, slot)
    middle = table.row_height() // 2
    assert table.link_at(QPoint(remaining + width // 2, middle)) == (0, slot.section)
    assert table.link_at(QPoint(slot.x + 1, middle)) == (-1, -1)
    assert table.link_at(QPoint(remaining + width // 2, -3)) == (-1, -1)


def test_a_click_on_a_link_follows_it_and_shift_f10_opens_the_menu(table, qtbot):
    emitted, menus = [], []
    table.placeRequested.connect(emitted.append)
    table.menuRequested.connect(lambda row, column, _at: menus.append((row["name"], column)))
    slot = next(item for item in table.slots_on_screen() if item.column.key == "offset")
    left_edge, width = table.painter.text_span(table.table, 0, slot)
    point = QPoint(left_edge + width // 2, table.row_height() // 2)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert emitted == [("log", 640)]
    qtbot.keyClick(table, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    assert menus == [("a", slot.section)]


def test_rows_that_fit_are_whole_ones_and_two_lines_take_more_room(table):
    height_before = table.row_height()
    assert table.visible_rows() == table.viewport().height() // height_before
    table.set_lines(2)
    assert table.row_height() > height_before


def test_more_rows_are_chosen_with_shift(table, qtbot):
    table.setFocus()
    table.first_row()
    for _ in range(3):
        qtbot.keyClick(table, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert table.chosen_span() == (0, 3)
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert table.chosen_span() is None


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def lit(qtbot):
    widget, clock = QWidget(), Clock()
    qtbot.addWidget(widget)
    return CellGlow(widget, clock), clock


def test_a_changed_cell_glows_and_then_fades(lit) -> None:
    glow, clock = lit
    glow.add("row", (2,))
    assert glow.of("row", 4) == ((2, 1.0),)
    clock.now += 0.3
    assert glow.of("row", 4) == ((2, 1.0),)
    clock.now += 0.5
    assert 0.4 < glow.of("row", 4)[0][1] < 0.6
    clock.now += 0.5
    assert glow.of("row", 4) == ()
    glow._tick()
    assert not glow


def test_with_less_motion_it_does_not_fade(lit, monkeypatch) -> None:
    glow, clock = lit
    monkeypatch.setattr(theme, "motion", False)
    glow.add("row")
    clock.now += 0.9
    assert glow.of("row", 1) == ((WHOLE_ROW, 1.0),)
    clock.now += 0.2
    assert glow.of("row", 1) == ()


def test_only_so_many_glow(lit) -> None:
    glow, _ = lit
    for number in range(2000):
        glow.add(number)
    assert len(glow._begun) <= 512
    glow.clear()
    assert not glow


class Row:
    """A named number."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and (self.name, self.size) == (other.name, other.size)

    def __hash__(self) -> int:
        return hash(self.name)


def test_rows_take_new_values_in_place_and_what_changed_glows(qtbot) -> None:
    kind = RecordKind("unit", (text_column("name", "Name", 100), number_column("size", "Size", 80)))
    view = RecordView("positions.now", kind)
    qtbot.addWidget(view)
    view.resize(300, 200)
    view.show()
    view.set_rows([Row("a", 1), Row("b", 2)])
    view.go_to(1)
    chosen = []
    view.rowChosen.connect(chosen.append)
    assert renew_rows(view, [Row("a", 1), Row("b", 3)], lambda row: row.name, ("size",))
    assert view.table.texts(1)[1] == "3"
    assert view.current_row() == Row("b", 3)
    assert not chosen
    assert view.glow.of(1, 2) == ((1, 1.0),)
    assert not view.glow.of(0, 2)
    view.grab()
    assert not renew_rows(view, [Row("a", 1)], lambda row: row.name, ("size",))
    assert not renew_rows(view, [Row("a", 1), Row("c", 1)], lambda row: row.name, ("size",))
