"""Windows stand beside each other and inside the screen."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QByteArray, QRect

from viewer.shell.layout import FIRST_SIZE, SMALLEST, TIED_SMALLEST, beside, inside

SCREENS = [QRect(0, 0, 1280, 720), QRect(0, 28, 1600, 972), QRect(0, 0, 1920, 1080), QRect(1920, 0, 3840, 2160)]
FIRST = [QRect(0, 0, 1600, 1000), QRect(40, 60, 1000, 700), QRect(1900, 30, 1200, 800), QRect(-50, -50, 1280, 720)]


@pytest.mark.parametrize(("screen", "first", "tied"), list(itertools.product(SCREENS, FIRST, [False, True])))
def test_no_window_lies_over_the_edge_of_the_screen(screen: QRect, first: QRect, tied: bool) -> None:
    """A second window stood 33 px over the edge of the screen, on the first; the first had no status bar in sight."""
    here, there = beside(first, screen, tied=tied)
    assert screen.contains(here)
    assert screen.contains(there)
    least = TIED_SMALLEST if tied else SMALLEST
    assert there.width() >= least[0]
    assert there.height() >= least[1]
    if tied:
        assert not here.intersects(there), "both can be seen"


def test_tied_windows_stand_one_over_the_other_where_the_screen_is_higher_than_wide() -> None:
    here, there = beside(QRect(0, 0, 900, 700), QRect(0, 0, 1080, 1920), tied=True)
    assert (here, there) == (QRect(0, 0, 1080, 960), QRect(0, 960, 1080, 960))


def test_the_free_side_is_taken() -> None:
    screen = QRect(0, 0, 2560, 1440)
    here, there = beside(QRect(100, 50, 1400, 900), screen, tied=False)
    assert here == QRect(100, 50, 1400, 900), "the first stays where it is"
    assert there == QRect(1500, 50, 1060, 900)
    assert inside(QRect(0, 0, 5000, 100), screen) == QRect(0, 0, 2560, 100)


def test_a_tied_window_may_be_narrower_and_has_no_tree_then(window):
    window.layouts.tie(True)
    window.resize(*TIED_SMALLEST)
    assert (window.minimumWidth(), window.minimumHeight()) == TIED_SMALLEST
    assert not window.layouts.tree_fits
    window.layouts.tie(False)
    assert (window.minimumWidth(), window.minimumHeight()) == SMALLEST
    assert window.layouts.tree_fits


def test_the_default_layout_forgets_splitters_and_the_size(window):
    window.resize(1000, 700)
    window.layouts.take({"side": bytes(window.split.saveState().data())})
    assert window.layouts.states()
    window.layouts.reset()
    assert (window.width(), window.height()) == FIRST_SIZE
    assert window.layouts.states() == {}
    assert window.settings.splitter("side") == QByteArray()
