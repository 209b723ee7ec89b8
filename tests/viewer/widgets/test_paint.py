"""What is painted by hand.

The lead of a topic: its colour, or the mark of its kind.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from viewer.look.theme import C
from viewer.widgets.columns import Chip, chip_column
from viewer.widgets.paint import (
    ROOM,
    FlagWish,
    Scale,
    draw_chip,
    draw_lead,
    inside_gap,
    place_flags,
    place_words,
    share_flags,
)
from viewer.widgets.row_painter import RowPainter, Slot


@pytest.mark.parametrize("where", ["row", "frame"])
def test_its_chip_is_the_only_inverse_one(dressed: QApplication, where: str) -> None:
    def drawn(kind: str) -> set[str]:
        picture = QImage(160, 24, QImage.Format.Format_RGB32)
        picture.fill(QColor("#FFFFFF"))
        p = QPainter(picture)
        if where == "frame":
            draw_chip(p, QRectF(0, 2, 150, 19), kind, "cannot be read")
        else:
            column = chip_column("state", "State", 150, lambda _row: Chip(kind, "cannot be read"))
            RowPainter().paint_chip(p, QRect(0, 0, 160, 24), Slot(0, 0, 150, column), Chip(kind, "cannot be read"))
        p.end()
        return {picture.pixelColor(x, y).name() for x in range(10, 22) for y in range(4, 20)}

    assert {C("text2").name(), C("pane").name()} <= drawn("unread"), "the mark is light on the dark ground"
    assert C("text2").name() not in drawn("error")


WISHES = st.lists(
    st.builds(FlagWish, st.floats(10, 990), st.floats(20, 200), st.sampled_from([1, -1])), min_size=1, max_size=5
)


@given(WISHES)
def test_every_box_stays_inside_the_line(wishes: list[FlagWish]) -> None:
    for wish, place in zip(wishes, place_flags(wishes, 0, 1000, 5), strict=True):
        assert place.left >= 0
        assert place.left + wish.width <= 1000


@given(WISHES)
def test_a_box_hangs_on_its_own_stem(wishes: list[FlagWish]) -> None:
    for wish, place in zip(wishes, place_flags(wishes, 0, 1000, 5), strict=True):
        assert place.left - 0.01 <= wish.x <= place.left + wish.width + 0.01


def test_two_flags_of_one_place_take_two_levels() -> None:
    places = place_flags([FlagWish(500, 100), FlagWish(500, 100)], 0, 1000)
    assert {place.level for place in places} == {0, 1}


def test_a_row_of_flags_at_the_right_edge_steps_down_without_touching() -> None:
    wishes = [FlagWish(x, 150, -1) for x in (900, 910, 960, 990)]
    places = place_flags(wishes, 0, 1000, 6)
    boxes = [(p.left, p.left + w.width, p.level) for w, p in zip(wishes, places, strict=True)]
    for n, (low, high, level) in enumerate(boxes):
        for other_low, other_high, other_level in boxes[n + 1 :]:
            assert level != other_level or high <= other_low or other_high <= low


def test_equal_positions_share_a_flag_in_the_order_given() -> None:
    flags = [("committed", 7, "a"), ("confirm", 7, "b"), ("wrote", 9, "c")]
    assert share_flags(flags) == [("committed = confirm", 7, "a"), ("wrote", 9, "c")]


def test_a_scale_keeps_offsets_beyond_the_precision_of_a_float_apart() -> None:
    base = 1 << 62
    scale = Scale(base, base + 1000, 0, 1000)
    assert scale.x(base) == 0
    assert scale.x(base + 500) == 500
    assert scale.offset(250) == base + 250
    assert scale.x(0) == 0
    assert scale.x(1 << 63) == 1000


def test_words_of_two_narrow_gaps_at_one_place_do_not_touch() -> None:
    gaps = [(503.0, 507.0, 60.0), (500.0, 503.0, 70.0)]
    first, second = place_words(gaps, 4, 1000)
    assert first + 60 <= second or second + 70 <= first
    assert first >= 4
    assert second >= 4


def test_words_stand_in_a_wide_gap_and_beside_a_narrow_one_off_its_neighbours_arrow() -> None:
    wide, narrow = (200.0, 600.0, 100.0), (600.0, 604.0, 60.0)
    assert inside_gap(*wide)
    assert not inside_gap(*narrow)
    assert place_words([wide, narrow], 4, 1000) == [350.0, 612.0]
    assert place_words([narrow], 4, 640) == [532.0]


def test_words_stay_on_the_line_where_nothing_is_free() -> None:
    for at in place_words([(50.0, 52.0, 90.0), (51.0, 53.0, 90.0)], 0, 100):
        assert 0 <= at <= 10


KINDS = {
    "%RETRY%billing": "retry", "%DLQ%billing": "dead", "SCHEDULE_TOPIC_XXXX": "delayed",
    "rmq_sys_wheel_timer": "delayed", "RMQ_SYS_TRANS_HALF_TOPIC": "half", "RMQ_SYS_TRANS_OP_HALF_TOPIC": "op",
    "RMQ_SYS_TRACE_TOPIC": "system", "rmq_sys_REVIVE_LOG_DefaultCluster": "system",
    "TRANS_CHECK_MAX_TIME_TOPIC": "system", "TBW102": "system", "OFFSET_MOVED_EVENT": "system",
}  # fmt: skip


def _lead(topic: str, color: QColor | None = None) -> QImage:
    picture = QImage(ROOM * 4, 80, QImage.Format.Format_RGB32)
    picture.fill(C("pane"))
    p = QPainter(picture)
    draw_lead(p, topic, color, 0, 40, 4)
    p.end()
    return picture


def test_each_kind_has_its_own_mark_and_nothing_is_a_hollow_box(dressed: QApplication) -> None:
    """A hollow bar before a topic was taken for a letter that the font lacks, in every view."""
    drawn = {KINDS[topic]: _lead(topic) for topic in KINDS}
    pictures = [*drawn.values(), _lead("Orders"), _lead("Orders", QColor("#1054C6"))]
    for at, one in enumerate(pictures):
        assert all(one != other for other in pictures[at + 1 :]), "each looks different"
    bar = _lead("Orders")
    inside = {bar.pixelColor(x, y).name() for x in range(9, 23) for y in range(18, 62)}
    assert inside == {C("disabled").name()}, "a user's topic behind the eighth is a filled bar"
