"""Flags of a line never touch: they stand side by side, then on levels; a flag without room is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from viewer.widgets.flag_layout import FlagRequest, Scale, inside_gap, place_flags, place_words, share_flags

WISHES = st.lists(
    st.builds(FlagRequest, st.floats(10, 990), st.floats(20, 200), st.sampled_from([1, -1])), min_size=1, max_size=5
)


@given(WISHES)
def test_every_box_stays_inside_the_line(requests: list[FlagRequest]) -> None:
    for request, place in zip(requests, place_flags(requests, 0, 1000, 5), strict=True):
        assert place.left >= 0
        assert place.left + request.width <= 1000


@given(WISHES)
def test_a_box_hangs_on_its_own_stem(requests: list[FlagRequest]) -> None:
    for request, place in zip(requests, place_flags(requests, 0, 1000, 5), strict=True):
        assert place.left - 0.01 <= request.x <= place.left + request.width + 0.01


def test_two_flags_of_one_place_take_two_levels() -> None:
    places = place_flags([FlagRequest(500, 100), FlagRequest(500, 100)], 0, 1000)
    assert {place.level for place in places} == {0, 1}


def test_a_row_of_flags_at_the_right_edge_steps_down_without_touching() -> None:
    requests = [FlagRequest(x, 150, -1) for x in (900, 910, 960, 990)]
    places = place_flags(requests, 0, 1000, 6)
    boxes = [(p.left, p.left + w.width, p.level) for w, p in zip(requests, places, strict=True)]
    for n, (left, right, level) in enumerate(boxes):
        for other_left, other_right, other_level in boxes[n + 1 :]:
            assert level != other_level or right <= other_left or other_right <= left


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
    left_begin, right_begin = place_words(gaps, 4, 1000)
    assert left_begin + 60 <= right_begin or right_begin + 70 <= left_begin
    assert left_begin >= 4
    assert right_begin >= 4


def test_words_stand_in_a_wide_gap_and_beside_a_narrow_one_off_its_neighbours_arrow() -> None:
    wide, narrow = (200.0, 600.0, 100.0), (600.0, 604.0, 60.0)
    assert inside_gap(*wide)
    assert not inside_gap(*narrow)
    assert place_words([wide, narrow], 4, 1000) == [350.0, 612.0]
    assert place_words([narrow], 4, 640) == [532.0]


def test_words_stay_on_the_line_where_nothing_is_free() -> None:
    for position in place_words([(50.0, 52.0, 90.0), (51.0, 53.0, 90.0)], 0, 100):
        assert 0 <= position <= 10


def test_flags_a_pixel_apart_at_the_right_edge_take_two_levels() -> None:
    """Two groups of which one was a message behind the other covered each other's names: "ware|billing"."""
    for first_x, second_x in ((600.2, 601.5), (601.5, 600.2)):
        places = place_flags(
            [FlagRequest(13, 40), FlagRequest(first_x, 145, -1), FlagRequest(second_x, 105, -1)], 2, 669, 2
        )
        assert {place.level for place in places[1:]} == {0, 1}
