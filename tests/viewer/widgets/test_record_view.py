from __future__ import annotations

import pytest
from many_entries import FAR, KIND, MANY, Entries, Entry
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication

from viewer.widgets.record_table import ValueRole
from viewer.widgets.record_view import RecordView, RowFinder


@pytest.fixture
def entries(view):
    view.set_source(Entries())
    return view


def shown(view, row, key="queueOffset"):
    column = next(n for n, c in enumerate(view.kind.columns) if c.key == key)
    return view.model().data(view.model().index(row, column), ValueRole)


def test_a_table_larger_than_qt_can_count_answers_on_its_window(entries):
    assert entries.total_rows() == MANY
    assert entries.model().rowCount() < 2000
    assert entries.model().headerData(1, Qt.Orientation.Horizontal) == "Queue offset"
    assert shown(entries, 0) == FAR


@pytest.mark.parametrize("number", [0, 1, 99_999_999, 50_000_000, 12_345_678])
def test_any_row_is_reached_and_chosen(entries, number):
    assert entries.go_to_row(number)
    assert entries.current_row().queue_offset == FAR + number
    index = entries.currentIndex()
    assert entries.model().data(index.siblingAtColumn(2), ValueRole) == (FAR + number) * 300
    assert entries.visualRect(index).intersects(entries.viewport().rect())


def test_home_end_and_the_arrow_keys_walk_the_whole_of_it(entries, qtbot):
    qtbot.keyClick(entries, Qt.Key.Key_End)
    assert entries.current_row().queue_offset == FAR + MANY - 1
    qtbot.keyClick(entries, Qt.Key.Key_PageUp)
    assert entries.current_row().queue_offset == FAR + MANY - entries.visible_rows()
    for _ in range(300):
        qtbot.keyClick(entries, Qt.Key.Key_Up)
    assert entries.current_row().queue_offset == FAR + MANY - entries.visible_rows() - 300
    qtbot.keyClick(entries, Qt.Key.Key_Home)
    assert entries.current_row().queue_offset == FAR
    for _ in range(400):
        qtbot.keyClick(entries, Qt.Key.Key_Down)
    assert entries.current_row().queue_offset == FAR + 400
    assert len(entries.table.rows) < 2000


def test_the_long_bar_reaches_every_part_and_tells_the_positions(entries, qtbot):
    observed = []
    entries.moved.connect(lambda first, last: observed.append((first, last)))
    entries.bar.positionChosen.emit(FAR + MANY // 2)
    assert observed[-1][0] == FAR + MANY // 2
    assert observed[-1][1] - observed[-1][0] == entries.visible_rows()
    assert abs(entries.bar.value() / entries.bar.maximum() - 0.5) < 0.001
    entries.bar.positionChosen.emit(FAR + MANY)
    assert observed[-1][1] == FAR + MANY
    assert entries.bar.value() == entries.bar.maximum()


def test_the_choice_stays_while_the_window_moves_away_and_comes_back(entries, qtbot):
    entries.go_to_row(1000)
    chosen = []
    entries.rowChosen.connect(chosen.append)
    entries.bar.positionChosen.emit(FAR + 90_000_000)
    assert entries.current_row() is None
    assert chosen == []
    entries.choose_next(1)
    assert entries.current_row().queue_offset == FAR + 1000


def test_enter_and_a_click_follow_a_link(entries, qtbot):
    entries.go_to_row(5)
    places = []
    entries.placeRequested.connect(places.append)
    qtbot.keyClick(entries, Qt.Key.Key_Return)
    assert places == [("log", (FAR + 5) * 300)]
    slot = next(s for s in entries.slots_on_screen() if s.column.key == "physicalOffset")
    remaining, width = entries.painter.text_span(entries.table, 3, slot)
    y = (3 - entries.verticalScrollBar().value()) * entries.row_height() + 10
    entries.viewport().repaint()
    qtbot.mouseClick(entries.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(remaining + width // 2, y))
    assert places[-1] == ("log", (FAR + 3) * 300)
    qtbot.mouseClick(entries.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(slot.x + 2, y + entries.row_height()))
    assert len(places) == 2
    assert entries.current_row().queue_offset == FAR + 4


def test_cell_row_record_and_command_are_copied(entries):
    entries.go_to_row(7)
    entries.setCurrentIndex(entries.currentIndex().siblingAtColumn(1))
    assert entries.copy_current("cell") == f"{FAR + 7:,}"
    assert QGuiApplication.clipboard().text() == f"{FAR + 7:,}"
    assert entries.copy_current("row").startswith(f"{FAR + 7:,}\t")
    assert f'"queueOffset": {FAR + 7}' in entries.copy_current("json")
    assert entries.copy_current("cli") == f"storescope queue 'a b' {FAR + 7}"


def test_a_late_answer_for_other_rows_is_dropped(qtbot):
    waiting = []
    view = RecordView("units.table", KIND, runner=lambda work, done, failed: waiting.append((work, done)))
    qtbot.addWidget(view)
    view.set_source(Entries())
    view.set_rows([])
    [(old, old_done)] = waiting
    old_done(old())
    assert view.model().rowCount() == 0


def test_while_a_read_is_under_way_only_the_newest_jump_waits(qtbot):
    waiting = []
    view = RecordView("units.table", KIND, runner=lambda work, done, failed: waiting.append((work, done)))
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    source = Entries()
    view.set_source(source)
    for number in range(0, 50_000_000, 1_000_000):
        view.go_to_row(number)
    assert len(waiting) == 2
    while waiting:
        work, done = waiting.pop(0)
        done(work())
    assert view.current_row().queue_offset == FAR + 49_000_000
    assert source.reads <= 4


def test_a_read_that_fails_is_told(qtbot):
    view = RecordView("units.table", KIND)
    qtbot.addWidget(view)

    class BrokenEntries(Entries):
        def read(self, position, before, after):
            raise OSError("gone")

    with qtbot.waitSignal(view.failed) as blocker:
        view.set_source(BrokenEntries())
    assert str(blocker.args[0]) == "gone"


def test_lists_in_memory_are_held_whole_and_sort_by_their_heads(view, qtbot):
    view.set_rows([Entry(n, -n) for n in range(300)])
    assert view.model().rowCount() == view.total_rows() == 300
    view.go_to_row(10)
    view._head_clicked(2)
    assert shown(view, 0, "physicalOffset") == -299
    assert view.current_row().queue_offset == 10
    view._head_clicked(2)
    assert shown(view, 0, "physicalOffset") == 0


def test_slim_columns_leave_a_narrow_table_and_numbers_stay_whole(view):
    view.set_rows([Entry(FAR * 1000, FAR * 1000)])
    view.frame.resize(420, 300)
    view.grab()
    slot = next(s for s in view.slots_on_screen() if s.column.key == "queueOffset")
    assert slot.width >= 140


def test_every_row_paints_in_both_schemes(entries, qtbot):
    from viewer.look.theme import theme

    for scheme in ("dark", "light"):
        theme.set_scheme(scheme)
        entries.refresh_look()
        picture = entries.grab().toImage()
        assert len({picture.pixel(x, 60) for x in range(0, 650, 2)}) > 5


def test_of_several_requested_rows_only_the_last_is_shown() -> None:
    requests: list[int] = []
    answers: list = []
    calls: list[int] = []
    finder = RowFinder(
        lambda n, done, failed: (requests.append(n), answers.append((done, failed))), calls.append, print
    )
    for number in (5, 6, 7):
        finder.ask(number)
    assert requests == [5]
    answers[0][0](500)
    assert (requests, calls) == ([5, 7], [])
    answers[1][0](700)
    assert calls == [700]
    finder.ask(8)
    finder.forget()
    answers[2][0](800)
    assert calls == [700]
    errors: list[Exception] = []
    failing_finder = RowFinder(lambda _n, _done, failed: failed(OSError("gone")), calls.append, errors.append)
    failing_finder.ask(1)
    assert [str(error) for error in errors] == ["gone"]


def test_a_row_comes_to_the_top_and_the_choice_stays(entries):
    entries.go_to_row(5)
    entries.scroll_to(FAR + 7_000_000)
    assert shown(entries, entries.verticalScrollBar().value()) == FAR + 7_000_000
    entries.scroll_to(FAR + 7_000_003)
    assert shown(entries, entries.verticalScrollBar().value()) == FAR + 7_000_003
