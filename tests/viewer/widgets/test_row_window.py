from __future__ import annotations

from dataclasses import dataclass

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from viewer.widgets.columns import RecordKind, number_column
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import ListSource, Page, RowSpan, Window

FAR = 1 << 41


@dataclass(frozen=True)
class NumberedRows:
    """A hundred thousand million rows that are never held; row n stands at ``base`` + n."""

    base: int = FAR
    count: int = 100_000_000_000

    @property
    def start(self):
        return self.base

    @property
    def end(self):
        return self.base + self.count

    @property
    def total(self):
        return self.count

    def read(self, position, before, after):
        first, last = max(self.base, position - before), min(self.end, position + after)
        return Page(list(range(first, last)), position - first, first == self.base, last == self.end)

    def position(self, row):
        return row

    def behind(self, row):
        return row + 1

    def number(self, row):
        return row - self.base

    def position_of(self, number):
        return self.base + number


def filled(position=FAR, visible=20):
    source = NumberedRows()
    window = Window(source)
    want = window.jump(position, visible)
    top = window.apply(want, source.read(want.position, want.rows_before, want.rows_after), 0, visible)
    return window, top


def read_on(window, top, visible=20):
    want = window.wanted(top, visible)
    if want is None:
        return top
    return window.apply(want, window.source.read(want.position, want.rows_before, want.rows_after), top, visible)


def test_a_jump_brings_the_position_with_room_on_both_sides():
    window, top = filled(FAR + 5_000_000_000)
    assert window.rows[top] == FAR + 5_000_000_000
    assert top >= 20
    assert len(window.rows) - top >= 40


def test_the_start_and_the_end_are_known_as_such():
    window, top = filled(0)
    assert (top, window.first, window.last) == (0, True, False)
    window, top = filled(1 << 62)
    assert window.last
    assert window.rows[-1] == NumberedRows().end - 1


@pytest.mark.parametrize("step", [7, 20, 50])
def test_scrolling_down_and_up_never_shows_another_row_than_the_next(step):
    window, top = filled(FAR + 10_000_000)
    for direction in (step, -step):
        for _ in range(60):
            row_before = window.rows[top]
            top = read_on(window, top + direction)
            assert window.rows[top] == row_before + direction
            assert len(window.rows) <= window.capacity + 2 * window.chunk + 200


def test_a_window_stays_small_however_far_it_moves():
    window, top = filled()
    for _ in range(400):
        top = read_on(window, min(top + 40, len(window.rows) - 20))
    assert len(window.rows) < 1400
    assert window.rows[top] > FAR + 10_000


def test_rows_are_found_by_position_and_only_where_they_are_held():
    window, top = filled(FAR + 1000)
    assert window.find(FAR + 1000) == top
    assert window.find(FAR + 10**9) is None
    assert window.covers(FAR + 1000)
    assert not window.covers(FAR + 10**9)


def test_a_list_is_held_completely_and_sorts_with_absent_values_last():
    rows = [{"n": 3}, {"n": None}, {"n": 1}, {"n": 2}]
    source = ListSource(rows)
    window = Window(source, whole=100)
    want = window.jump(0, 5)
    window.apply(want, source.read(want.position, want.rows_before, want.rows_after), 0, 5)
    assert window.complete
    source.sort(lambda row: row["n"], descending=True)
    assert [row["n"] for row in source.rows] == [3, 2, 1, None]
    assert [source.position(row) for row in source.rows] == [0, 1, 2, 3]


def test_a_list_grows_at_its_end():
    source = ListSource(["a"])
    source.append(["b", "c"])
    page = source.read(1, 1, 5)
    assert (page.rows, page.rows_before, page.is_first, page.is_last) == (["a", "b", "c"], 1, True, True)


SHIFT = Qt.KeyboardModifier.ShiftModifier


def test_one_row_is_no_span() -> None:
    span = RowSpan()
    assert span.bounds(5) is None
    span.press(5, shift=True)
    assert span.bounds(5) is None


def test_shift_widens_to_both_sides_and_a_plain_move_ends_it() -> None:
    span = RowSpan()
    span.press(5, shift=True)
    span.moved()
    assert span.bounds(8) == (5, 8)
    span.press(8, shift=True)
    span.moved()
    assert span.bounds(2) == (2, 5)
    span.press(2, shift=False)
    assert span.bounds(2) is None


def test_a_jump_from_elsewhere_ends_it() -> None:
    span = RowSpan()
    span.press(5, shift=True)
    span.moved()
    span.moved()
    assert span.bounds(900) is None


def test_a_held_span_stays_until_it_is_let_go_or_other_rows_come() -> None:
    span = RowSpan()
    span.hold((3, 9))
    span.moved()
    assert span.bounds(700) == (3, 9)
    span.hold(None)
    assert span.bounds(700) is None
    span.hold((3, 9))
    span.end()
    assert span.bounds(4) is None


class Row:
    """A number."""

    def __init__(self, n: int) -> None:
        self.n = n


@pytest.fixture
def view(qtbot) -> RecordView:
    record_view = RecordView("numbers", RecordKind("numbers", (number_column("n", "Number", 120),)))
    qtbot.addWidget(record_view)
    record_view.resize(300, 400)
    record_view.show()
    record_view.set_rows([Row(n) for n in range(200)])
    record_view.go_to_row(10)
    return record_view


def test_keys_with_shift_choose_several_rows(view: RecordView) -> None:
    for _ in range(3):
        QTest.keyClick(view, Qt.Key.Key_Down, SHIFT)
    assert view.chosen_span() == (10, 13)
    QTest.keyClick(view, Qt.Key.Key_End, SHIFT)
    assert view.chosen_span() == (10, 199)
    QTest.keyClick(view, Qt.Key.Key_Home, SHIFT)
    assert view.chosen_span() == (0, 10)
    QTest.keyClick(view, Qt.Key.Key_Down)
    assert view.chosen_span() is None
    assert view.current_row().n == 1


def test_a_click_with_shift_does_too_and_a_plain_one_ends_it(view: RecordView) -> None:
    top = view.verticalScrollBar().value()
    point = QPoint(20, (14 - top) * view.row_height() + 5)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, SHIFT, point)
    assert view.chosen_span() == (10, 14)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert view.chosen_span() is None


def test_sorting_and_other_rows_end_it(view: RecordView) -> None:
    QTest.keyClick(view, Qt.Key.Key_Down, SHIFT)
    view._head_clicked(0)
    assert view.chosen_span() is None
    QTest.keyClick(view, Qt.Key.Key_Down, SHIFT)
    view.set_rows([Row(1)])
    assert view.chosen_span() is None
