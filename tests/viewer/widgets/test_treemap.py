"""Treemap: chosen by pointer and keys, described in words; areas in proportion that never overlap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt

from viewer.widgets.areas import Area
from viewer.widgets.treemap import Box, Treemap, bands, squarify

LEFT = Qt.MouseButton.LeftButton


def queue(topic: str, number: int, size: int) -> Area:
    days = tuple(Area(f"2026-11-{18 + n}", f"2026-11-{18 + n}", size // 2, 5, topic, age=n) for n in (0, 1))
    return Area(str(number), f"Queue {number}", size, 10, topic, children=days)


ROOT = Area(
    "",
    "",
    1000,
    children=(
        Area(
            "Orders", "Orders", 600, 30, "Orders", "a note", children=(queue("Orders", 0, 400), queue("Orders", 1, 200))
        ),
        Area("Paid", "Paid", 300, 10, "Paid", children=(queue("Paid", 0, 300),)),
        Area("\x01zero", "Zero tail", 100, hatch="line"),
    ),
)


@pytest.fixture
def treemap(qtbot):
    new_treemap = Treemap()
    qtbot.addWidget(new_treemap)
    new_treemap.resize(700, 500)
    new_treemap.show()
    new_treemap.show_areas(ROOT)
    new_treemap.grab()
    return new_treemap


def middle(treemap: Treemap, path: tuple[str, ...]) -> QPoint:
    x, y = next(area.box for area in treemap.placed_areas() if area.path == path).middle
    return QPoint(round(x), round(y))


def test_areas_are_drawn_in_proportion(treemap):
    boxes = {item.path: item.box for item in treemap.placed_areas()}
    ratio = boxes["Orders",].width * boxes["Orders",].height / (boxes["Paid",].width * boxes["Paid",].height)
    assert ratio == pytest.approx(2, rel=0.05)
    assert ("Orders", "0", "2026-11-18") in boxes


def test_a_click_chooses_and_a_double_click_follows(treemap, qtbot):
    with qtbot.waitSignal(treemap.chosen) as chosen:
        qtbot.mouseClick(treemap, LEFT, pos=middle(treemap, ("Orders", "1")))
    assert chosen.args[0] == ("Orders", "1")
    with qtbot.waitSignal(treemap.areaFollowed) as followed:
        qtbot.mouseDClick(treemap, LEFT, pos=middle(treemap, ("Paid", "0")))
    assert followed.args[0] == ("Paid", "0")


def test_keys_walk_in_out_and_beside(treemap, qtbot):
    walked = []
    treemap.chosen.connect(walked.append)
    for key in (Qt.Key.Key_Home, Qt.Key.Key_PageDown, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp, Qt.Key.Key_PageUp):
        qtbot.keyClick(treemap, key)
    assert walked == [("Orders",), ("Orders", "0"), ("Orders", "0", "2026-11-18"), ("Orders", "0"), ("Orders",)]
    walked.clear()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left):
        qtbot.keyClick(treemap, key)
    assert walked[0] in {("Paid",), ("\x01zero",)}
    assert walked[-1] == ("Orders",)
    with qtbot.waitSignal(treemap.areaFollowed):
        qtbot.keyClick(treemap, Qt.Key.Key_Return)


def test_words_tell_bytes_share_and_messages(treemap):
    words = treemap.words_of(("Orders", "0"))
    assert "Orders › Queue 0" in words
    assert "400 B" in words
    assert "40.0%" in words
    assert "10 messages, 40 B each" in words
    assert "a note" in treemap.words_of(("Orders",))
    treemap.choose(("Orders",))
    assert "600 B" in treemap.accessibleDescription()


def test_an_area_that_disappears_loses_the_selection(treemap):
    treemap.choose(("Paid", "0"))
    treemap.show_areas(Area("", "", 600, children=ROOT.children[:1]))
    assert treemap.path == ()
    treemap.show_areas(Area("", "", 0), "nothing here")
    treemap.grab()
    assert treemap.accessibleDescription() == "nothing here"


def test_a_tiny_treemap_draws_without_complaint(treemap):
    for width, height in ((1, 1), (30, 200), (240, 20)):
        treemap.resize(width, height)
        assert not treemap.grab().isNull()


ROOM = Box(10, 20, 600, 400)


@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=40))
def test_areas_are_in_proportion_and_inside(sizes: list[int]) -> None:
    sizes.sort(reverse=True)
    boxes = squarify(sizes, ROOM)
    total = sum(sizes)
    for size, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(600 * 400 * size / total, rel=1e-6, abs=1e-6)
        assert box.x >= ROOM.x - 1e-6
        assert box.y >= ROOM.y - 1e-6
        assert box.x + box.width <= ROOM.x + ROOM.width + 1e-6
        assert box.y + box.height <= ROOM.y + ROOM.height + 1e-6


def test_boxes_do_not_overlap() -> None:
    boxes = squarify([90, 50, 40, 30, 20, 10, 5, 1], ROOM)
    for n, box in enumerate(boxes):
        for later_box in boxes[n + 1 :]:
            beside = box.x + box.width <= later_box.x + 1e-6 or later_box.x + later_box.width <= box.x + 1e-6
            below = box.y + box.height <= later_box.y + 1e-6 or later_box.y + later_box.height <= box.y + 1e-6
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
    actual_bands = bands([1, 3], ROOM)
    assert actual_bands == [Box(10, 20, 600, 100), Box(10, 120, 600, 300)]


def test_a_box_holds_its_own_points() -> None:
    assert ROOM.holds(10, 20)
    assert not ROOM.holds(610, 20)
    assert ROOM.middle == (310, 220)
    assert ROOM.inset(1, 2, 3, 4) == Box(11, 22, 596, 394)
