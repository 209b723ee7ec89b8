"""The strip of two logs: a click leads to the difference under the pointer, keys move along."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt

from viewer.compare.pair_columns import OTHER, OWN
from viewer.compare.pair_rows import DifferenceSpan, DifferenceSpans
from viewer.compare.pair_strip import BandExtent, PairStrip, StripContent


def strip_of(qtbot, spans: list[DifferenceSpan], fork: int | None = None) -> PairStrip:
    strip = PairStrip()
    qtbot.addWidget(strip)
    strip.resize(1000, strip.sizeHint().height())
    bands = {OWN: BandExtent(((0, 10_000),), (5_000,)), OTHER: BandExtent(((2_000, 9_000),))}
    heads = (DifferenceSpan(0, 2_000, "own"),)
    strip.show_content(StripContent(0, 10_000, bands, fork, DifferenceSpans(spans), spans, heads, is_compared=True))
    strip.show()
    strip.grab()
    return strip


def test_a_click_near_a_difference_leads_to_it(qtbot) -> None:
    strip = strip_of(qtbot, [DifferenceSpan(4_000, 4_010, "differs"), DifferenceSpan(9_000, 10_000, "own")])
    chosen: list[int] = []
    strip.positionChosen.connect(chosen.append)
    x = round(strip._x(4_000)) + 2
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(x, 20))
    assert chosen == [4_000]
    assert strip.words_under(QPointF(x, 20)) == "4,000\ndiffers"
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(round(strip._x(6_000)), 20))
    assert abs(chosen[-1] - 6_000) < 20
    assert strip.words_under(QPointF(strip._x(6_000), 20)).endswith("the same bytes")
    assert strip.words_under(QPointF(strip._x(1_000), 20)).endswith("one log begins later")


def test_keys_move_along_the_logs(qtbot) -> None:
    strip = strip_of(qtbot, [])
    strip.set_frame(5_000, 5_200)
    chosen: list[int] = []
    strip.positionChosen.connect(chosen.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_PageUp, Qt.Key.Key_Home, Qt.Key.Key_End):
        qtbot.keyClick(strip, key)
    assert chosen == [5_100, 4_000, 0, 10_000]
    assert strip.accessibleDescription() == "showing 5,000 to 5,200 of 0 to 10,000"


def test_behind_a_fork_no_offset_is_claimed(qtbot) -> None:
    strip = strip_of(qtbot, [DifferenceSpan(7_000, 8_000, "unrelated")], fork=6_000)
    assert strip.words_under(QPointF(strip._x(7_500), 20)) == "two other messages"
    strip.show_content(StripContent())
    strip.grab()
    assert strip.words_under(QPointF(10, 10)) == ""
