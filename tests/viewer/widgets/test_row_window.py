from __future__ import annotations

from dataclasses import dataclass

import pytest

from viewer.widgets.row_window import ListSource, Page, Window

FAR = 1 << 41


@dataclass(frozen=True)
class Numbered:
    """A hundred thousand million rows that nobody holds; row n stands at ``base`` + n."""

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
        low, high = max(self.base, position - before), min(self.end, position + after)
        return Page(list(range(low, high)), position - low, low == self.base, high == self.end)

    def position(self, row):
        return row

    def behind(self, row):
        return row + 1

    def number(self, row):
        return row - self.base

    def position_of(self, number):
        return self.base + number


def filled(position=FAR, visible=20):
    source = Numbered()
    window = Window(source)
    want = window.jump(position, visible)
    top = window.apply(want, source.read(want.position, want.before, want.after), 0, visible)
    return window, top


def read_on(window, top, visible=20):
    want = window.wanted(top, visible)
    if want is None:
        return top
    return window.apply(want, window.source.read(want.position, want.before, want.after), top, visible)


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
    assert window.rows[-1] == Numbered().end - 1


@pytest.mark.parametrize("step", [7, 20, 50])
def test_scrolling_down_and_up_never_shows_another_row_than_the_next(step):
    window, top = filled(FAR + 10_000_000)
    for direction in (step, -step):
        for _ in range(60):
            before = window.rows[top]
            top = read_on(window, top + direction)
            assert window.rows[top] == before + direction
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
    window.apply(want, source.read(want.position, want.before, want.after), 0, 5)
    assert window.complete
    source.sort(lambda row: row["n"], descending=True)
    assert [row["n"] for row in source.rows] == [3, 2, 1, None]
    assert [source.position(row) for row in source.rows] == [0, 1, 2, 3]


def test_a_list_grows_at_its_end():
    source = ListSource(["a"])
    source.append(["b", "c"])
    page = source.read(1, 1, 5)
    assert (page.rows, page.at, page.first, page.last) == (["a", "b", "c"], 1, True, True)
