"""Sizes of a window and its parts."""

from __future__ import annotations

from PySide6.QtCore import QByteArray

from viewer.shell.layout import FIRST_SIZE
from viewer.shell.window_frames import SMALLEST, TIED_SMALLEST


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
