"""The strip of seconds: old on the left, new on the right, gaps between, and a click goes to a second."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtTest import QTest

from viewer.look.theme import px
from viewer.requests.rate_strip import SIDE, RateStrip
from viewer.requests.request_log import SecondCounts


def test_seconds_are_in_order_and_a_click_goes_there(shown) -> None:
    strip = RateStrip()
    shown(strip, width=800)
    strip.show_seconds([SecondCounts(100, [1, 2, 0, 0]), SecondCounts(103, [0, 0, 0, 4], 1)], live=False)
    strip.grab()
    wide = strip._width()
    point = QPointF(px(SIDE) + 3.5 * wide, 30)
    assert "4 the rest, 1 not 0" in strip.words_under(point)
    assert strip.words_under(QPointF(px(SIDE) + 1.5 * wide, 30)).endswith("no requests")
    assert strip.words_under(QPointF(px(SIDE) + 50.5 * wide, 30)) == ""
    chosen_times: list[object] = []
    strip.chosen.connect(chosen_times.append)
    QTest.mouseClick(strip, _left_button(), pos=point.toPoint())
    assert chosen_times == [103_000]


def test_the_unfinished_second_is_not_drawn_while_live(shown) -> None:
    strip = RateStrip()
    shown(strip, width=800)
    strip.show_seconds([SecondCounts(100, [1, 0, 0, 0]), SecondCounts(101, [9, 0, 0, 0])], live=True)
    assert [second.second for second in strip._seconds] == [100]


def test_a_long_recording_leaves_its_gaps_out(shown) -> None:
    strip = RateStrip()
    shown(strip, width=800)
    strip.show_seconds([SecondCounts(number, [1, 0, 0, 0]) for number in range(0, 100_000, 500)], live=False)
    assert len(strip._seconds) == 180
    strip.grab()


def _left_button():
    from PySide6.QtCore import Qt

    return Qt.MouseButton.LeftButton
