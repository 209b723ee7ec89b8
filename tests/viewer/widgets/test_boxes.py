"""Rows and columns of widgets, and the parts that take the remaining room."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from viewer.widgets.boxes import beside, empty, row, scrolling, splitter, stacked


def labels(count):
    return [QLabel(str(number)) for number in range(count)]


def test_a_gap_of_none_takes_the_room_between_two_parts(shown):
    left, right = labels(2)
    box = shown(row(left, None, right), width=600)
    assert left.geometry().left() == 0
    assert right.geometry().right() == box.width() - 1


def test_the_named_part_of_a_stack_takes_the_height_and_the_first_of_a_pair_the_width(shown):
    top, middle, foot = labels(3)
    stack = shown(stacked(top, middle, foot))
    stack.resize(300, 400)
    assert middle.height() > top.height() + foot.height()
    wide, narrow = labels(2)
    pair = shown(beside(wide, narrow), width=600)
    assert wide.width() + narrow.width() == pair.width()
    assert wide.width() > narrow.width()


def test_a_removed_widget_is_hidden_at_once(shown):
    (label,) = labels(1)
    box = shown(row(label))
    empty(box.box)
    assert label.isHidden()
    assert box.box.count() == 0


def test_panes_are_divided_as_they_are_given(qtbot):
    panes = splitter(True, *((label, size) for label, size in zip(labels(2), (100, 300), strict=True)))
    qtbot.addWidget(panes)
    assert panes.orientation() == Qt.Orientation.Vertical
    assert not panes.childrenCollapsible()
    panes.resize(200, 401)
    panes.show()
    upper, lower = panes.sizes()
    assert upper < lower
    area = scrolling(panes)
    qtbot.addWidget(area)
    assert area.widget() is panes
