"""Areas in the proportion of their numbers, inside their room, not touching each other, and not too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewer.widgets.squares import Box, bands, squarify

ROOM = Box(10, 20, 600, 400)


@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=40))
def test_areas_are_in_proportion_and_inside(sizes: list[int]) -> None:
    sizes.sort(reverse=True)
    boxes = squarify(sizes, ROOM)
    whole = sum(sizes)
    for size, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(600 * 400 * size / whole, rel=1e-6, abs=1e-6)
        assert box.x >= ROOM.x - 1e-6
        assert box.y >= ROOM.y - 1e-6
        assert box.x + box.width <= ROOM.x + ROOM.width + 1e-6
        assert box.y + box.height <= ROOM.y + ROOM.height + 1e-6


def test_boxes_do_not_overlap() -> None:
    boxes = squarify([90, 50, 40, 30, 20, 10, 5, 1], ROOM)
    for n, one in enumerate(boxes):
        for other in boxes[n + 1 :]:
            beside = one.x + one.width <= other.x + 1e-6 or other.x + other.width <= one.x + 1e-6
            below = one.y + one.height <= other.y + 1e-6 or other.y + other.height <= one.y + 1e-6
            assert beside or below


def test_equal_numbers_are_nearly_square() -> None:
    for box in squarify([1] * 24, ROOM):
        assert 0.4 < box.width / box.height < 2.5


def test_nothing_takes_no_room() -> None:
    assert squarify([], ROOM) == []
    boxes = squarify([5, 0, 0], ROOM)
    assert boxes[0] == ROOM
    assert boxes[1].width == boxes[2].height == 0
    assert all(box.width == 0 or box.height == 0 for box in squarify([1, 1], Box(0, 0, 0, 10)))


def test_bands_lie_one_below_the_other() -> None:
    found = bands([1, 3], ROOM)
    assert found == [Box(10, 20, 600, 100), Box(10, 120, 600, 300)]


def test_a_box_holds_its_own_points() -> None:
    assert ROOM.holds(10, 20)
    assert not ROOM.holds(610, 20)
    assert ROOM.middle == (310, 220)
    assert ROOM.inset(1, 2, 3, 4) == Box(11, 22, 596, 394)
