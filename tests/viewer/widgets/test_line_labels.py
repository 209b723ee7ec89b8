"""Words of marked lines: one for lines of one place, none on another, none where there is no room."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from viewer.widgets.line_labels import GAP, joined, place_labels


def test_lines_of_one_place_share_their_words() -> None:
    words = ["min", "checkpoint, log", "checkpoint, index", "roll"]
    output = joined(words, [0.0, 90.2, 90.9, 90.5], ["a", "b", "b", "a"])
    assert output == ["min", "checkpoint, log = checkpoint, index", "", "roll"]


@given(
    st.lists(st.tuples(st.floats(-50, 850), st.floats(0, 300)), max_size=14),
    st.integers(1, 4),
)
def test_no_label_touches_another_or_leaves_the_plot(lines: list[tuple[float, float]], rows: int) -> None:
    """Labels lay on each other: every third line had the same height, wherever it stood."""
    extents = [extent for _, extent in lines]
    actual_place_labels = place_labels([place for place, _ in lines], extents, 0.0, 800.0, rows)
    boxes = [
        (label.row, label.begin, label.begin + wide)
        for label, wide in zip(actual_place_labels, extents, strict=True)
        if label
    ]
    assert all(begin >= 0 and end <= 800 and row < rows for row, begin, end in boxes)
    for (row, begin, end), (other_row, other_begin, other_end) in combinations(boxes, 2):
        assert row != other_row or end + GAP <= other_begin or begin >= other_end + GAP


def test_a_label_that_fits_is_not_left_out() -> None:
    first, second, third, fourth = place_labels([100, 110, 120, 400], [80, 80, 80, 80], 0, 800, 2)
    assert (first.row, first.begin) == (0, 16)
    assert (second.row, second.begin) == (0, 114)
    assert third.row == 1
    assert fourth.row == 0
