"""A table at the end of a growing source follows it until the user scrolls up; new rows glow."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from viewer.widgets.columns import RecordKind, number_column
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import Page
from viewer.widgets.table_tail import TableTail, at_end_of


class Row:
    """A row that is its number."""

    def __init__(self, number: int) -> None:
        self.offset = number


class GrowingRows:
    """Rows whose number ``end`` can grow."""

    start, total = 0, None

    def __init__(self, end: int) -> None:
        self.end = end

    def read(self, position, before, after):
        first, last = max(0, position - before), min(self.end, position + after)
        return Page([Row(n) for n in range(first, last)], position - first, first == 0, last == self.end)

    def position(self, row):
        return row.offset

    def behind(self, row):
        return row.offset + 1

    def number(self, row):
        return row.offset

    def position_of(self, number):
        return number


@pytest.fixture
def view(qtbot):
    record_view = RecordView("units.table", RecordKind("unit", (number_column("offset", "Offset", 120),)))
    qtbot.addWidget(record_view)
    record_view.resize(400, 260)
    record_view.show()
    record_view.set_source(GrowingRows(1000))
    return record_view


class FakeTailSettings:
    """Fake settings of a user."""

    def __init__(self) -> None:
        self.following, self.left = True, 0

    def leave(self) -> None:
        self.following, self.left = False, self.left + 1


def followed(view) -> tuple[TableTail, FakeTailSettings]:
    hand = FakeTailSettings()
    return TableTail(view, lambda: hand.following, hand.leave), hand


def grow(view, tail, by):
    view.source.end += by
    tail.take()


def test_the_end_stays_in_view_and_few_new_rows_glow(view) -> None:
    tail, _ = followed(view)
    tail.take()
    assert at_end_of(view)
    for _ in range(3):
        grow(view, tail, 2)
        assert at_end_of(view)
        assert view.table.rows[-1].offset == view.source.end - 1
        assert view.glow.of(view.source.end - 1, 1)
        assert not view.glow.of(view.source.end - 9, 1)


def test_where_everything_is_new_nothing_glows(view) -> None:
    tail, _ = followed(view)
    tail.take()
    grow(view, tail, 5000)
    assert view.table.rows[-1].offset == 5999
    assert not view.glow


@pytest.mark.parametrize("how", ["wheel", "page", "key"])
def test_the_hand_that_goes_up_ends_it(view, qtbot, how: str) -> None:
    tail, hand = followed(view)
    tail.take()
    if how == "wheel":
        position = QPointF(view.viewport().rect().center())
        event = QWheelEvent(
            position,
            QPointF(view.viewport().mapToGlobal(position.toPoint())),
            QPoint(0, 0),
            QPoint(0, 240),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(view.viewport(), event)
    elif how == "page":
        view.bar.stepped.emit("page", -1)
    else:
        view.last_row()
        qtbot.keyClick(view, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: hand.left == 1, timeout=60_000)
    top = view.table.rows[view.verticalScrollBar().value()].offset
    grow(view, tail, 4)
    assert view.table.rows[view.verticalScrollBar().value()].offset == top


def test_a_row_that_is_taken_ends_it_and_stays(view, qtbot) -> None:
    tail, hand = followed(view)
    tail.take()
    view.go_to(995)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(view.currentIndex()).center())
    assert hand.left == 1
    grow(view, tail, 500)
    assert view.current_row().offset == 995


def test_a_chosen_row_that_the_table_does_not_hold_is_let_go(view) -> None:
    """Detail and bytes showed the unit at 1,245,565 below a table that began at 1,288,685. The end had moved on, and
    nothing said that the unit chosen before stood in no row any more.
    """
    chosen = []
    tail, _ = followed(view)
    view.go_to(10)
    view.rowChosen.connect(chosen.append)
    tail.take()
    assert chosen == [None]
    assert view.current_row() is None
    assert not view.selectionModel().selectedRows()


def test_the_end_that_is_reached_again_is_told(view, qtbot) -> None:
    hand, reached = FakeTailSettings(), []
    hand.following = False
    tail = TableTail(view, lambda: hand.following, hand.leave, lambda: reached.append(True))
    tail.take()
    assert not reached
    view.bar.stepped.emit("page", 1)
    qtbot.wait(1)
    assert not reached
    qtbot.keyClick(view, Qt.Key.Key_End)
    view.last_row()
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: bool(reached), timeout=60_000)
