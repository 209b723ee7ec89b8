"""Scroll bar over positions of 64 bits: Qt's own counts in 32."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QAbstractSlider

from viewer.widgets.long_scroll_bar import STEPS, LongScrollBar

FAR = 1 << 50


@pytest.fixture
def bar(qtbot):
    long_scroll_bar = LongScrollBar()
    qtbot.addWidget(long_scroll_bar)
    return long_scroll_bar


def test_a_place_far_out_comes_back_within_a_step(bar):
    bar.show_place(FAR, 2 * FAR, FAR + FAR // 3, 1000)
    assert abs(bar.place() - (FAR + FAR // 3)) <= FAR // STEPS + 1


def test_begin_and_end_are_the_ends_of_the_bar(bar):
    bar.show_place(0, FAR, 0, 1000)
    assert bar.value() == 0
    bar.show_place(0, FAR, FAR - 2000, 1000, at_end=True)
    assert bar.value() == STEPS


def test_showing_a_place_moves_nobody_and_a_step_asks_its_owner(bar):
    placed, stepped = [], []
    bar.positionChosen.connect(placed.append)
    bar.stepped.connect(lambda kind, sign: stepped.append((kind, sign)))
    bar.show_place(0, FAR, FAR // 2, 1000)
    assert (placed, stepped) == ([], [])
    value_before = bar.value()
    bar.triggerAction(QAbstractSlider.SliderAction.SliderPageStepAdd)
    bar.triggerAction(QAbstractSlider.SliderAction.SliderSingleStepSub)
    assert stepped == [("page", 1), ("line", -1)]
    assert bar.value() == value_before
    assert placed == []
