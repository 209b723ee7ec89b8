"""Windows are placed side by side and inside the screen."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QByteArray, QRect

from viewer.shell.layout import FIRST_SIZE, MIN_TIED_WINDOW_SIZE, MIN_WINDOW_SIZE, beside, inside

SCREENS = [QRect(0, 0, 1280, 720), QRect(0, 28, 1600, 972), QRect(0, 0, 1920, 1080), QRect(1920, 0, 3840, 2160)]
FIRST_WINDOWS = [
    QRect(0, 0, 1600, 1000),
    QRect(40, 60, 1000, 700),
    QRect(1900, 30, 1200, 800),
    QRect(-50, -50, 1280, 720),
]


@pytest.mark.parametrize(
    ("screen", "geometry", "linked"), list(itertools.product(SCREENS, FIRST_WINDOWS, [False, True]))
)
def test_no_window_crosses_the_edge_of_the_screen(screen: QRect, geometry: QRect, linked: bool) -> None:
    """A second window overlapped the first and the screen's edge by 33 px, and the first window's status bar was
    hidden.
    """
    first_window, second_window = beside(geometry, screen, tied=linked)
    assert screen.contains(first_window)
    assert screen.contains(second_window)
    least = MIN_TIED_WINDOW_SIZE if linked else MIN_WINDOW_SIZE
    assert second_window.width() >= least[0]
    assert second_window.height() >= least[1]
    if linked:
        assert not first_window.intersects(second_window), "both can be seen"


def test_linked_windows_are_stacked_on_a_tall_screen() -> None:
    first_window, second_window = beside(QRect(0, 0, 900, 700), QRect(0, 0, 1080, 1920), tied=True)
    assert (first_window, second_window) == (QRect(0, 0, 1080, 960), QRect(0, 960, 1080, 960))


def test_the_free_side_is_used() -> None:
    screen = QRect(0, 0, 2560, 1440)
    first_window, second_window = beside(QRect(100, 50, 1400, 900), screen, tied=False)
    assert first_window == QRect(100, 50, 1400, 900), "the first window does not move"
    assert second_window == QRect(1500, 50, 1060, 900)
    assert inside(QRect(0, 0, 5000, 100), screen) == QRect(0, 0, 2560, 100)


def test_a_linked_window_may_be_narrower_without_a_tree(window):
    window.layouts.tie(True)
    window.resize(*MIN_TIED_WINDOW_SIZE)
    assert (window.minimumWidth(), window.minimumHeight()) == MIN_TIED_WINDOW_SIZE
    assert not window.layouts.tree_fits
    window.layouts.tie(False)
    assert (window.minimumWidth(), window.minimumHeight()) == MIN_WINDOW_SIZE
    assert window.layouts.tree_fits


def test_the_default_layout_resets_splitters_and_size(window):
    window.resize(1000, 700)
    window.layouts.take({"side": bytes(window.split.saveState().data())})
    assert window.layouts.states()
    window.layouts.reset()
    assert (window.width(), window.height()) == FIRST_SIZE
    assert window.layouts.states() == {}
    assert window.settings.splitter("side") == QByteArray()
