"""The guided tour: five steps over the damaged sample, each at an existing place, ended by Escape."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QWidget

from engine.inspection.samples import sample
from viewer.runtime import places
from viewer.shell.tour import SAMPLE, STEPS, Tour


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.at)
def test_every_step_names_a_place(step):
    assert places.parse(step.at)
    assert step.title
    assert step.text


def test_the_tour_goes_forward_and_back_and_ends(run, window, qtbot):
    assert run(window.open(sample(SAMPLE)))
    run(window.settled())
    tour = Tour(window)
    tour.go(0)
    run(window.settled())
    assert (tour.at, tour._number.text(), tour._back.isEnabled()) == (0, "Step 1 of 5", False)
    tour._next.click()
    run(window.settled())
    assert (tour.at, window.view) == (1, "index")
    tour.go(99)
    assert tour.at == 1
    tour.go(len(STEPS) - 1)
    run(window.settled())
    assert tour._next.text() == "End the tour"
    qtbot.keyClick(tour, Qt.Key.Key_Escape)
    assert tour.isHidden()


def test_the_card_does_not_cover_the_described_bytes(run, window, qtbot):
    window.resize(1280, 720)
    assert run(window.open(sample(SAMPLE)))
    run(window.settled())
    tour = Tour(window)
    tour.go(0)
    run(window.settled())
    tour._place()
    hex_view = window.findChild(QWidget, "unit.hex")
    bytes_rect = QRect(hex_view.mapTo(window, hex_view.rect().topLeft()), hex_view.size())
    assert tour._frame.geometry().contains(bytes_rect)
    assert not tour.geometry().intersects(bytes_rect)
    tour.end()
