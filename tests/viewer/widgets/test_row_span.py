"""Several rows chosen at once: Shift widens, another move ends it, held ones stay."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from viewer.widgets.columns import RecordKind, number_column
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_span import RowSpan

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
    made = RecordView("numbers", RecordKind("numbers", (number_column("n", "Number", 120),)))
    qtbot.addWidget(made)
    made.resize(300, 400)
    made.show()
    made.set_rows([Row(n) for n in range(200)])
    made.go_to_row(10)
    return made


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
    at = QPoint(20, (14 - top) * view.row_height() + 5)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, SHIFT, at)
    assert view.chosen_span() == (10, 14)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert view.chosen_span() is None


def test_sorting_and_other_rows_end_it(view: RecordView) -> None:
    QTest.keyClick(view, Qt.Key.Key_Down, SHIFT)
    view._head_clicked(0)
    assert view.chosen_span() is None
    QTest.keyClick(view, Qt.Key.Key_Down, SHIFT)
    view.set_rows([Row(1)])
    assert view.chosen_span() is None
