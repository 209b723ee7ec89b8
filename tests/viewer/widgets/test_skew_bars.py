"""Bars of queues of unequal length."""

from __future__ import annotations

from viewer.widgets.skew_bars import SkewBars, skew_words


def test_skew_is_said_in_words(qtbot):
    assert skew_words([100, 101, 99]).startswith("evenly filled")
    assert skew_words([100, 0]).startswith("unevenly filled: 0.00 to 2.00")
    assert skew_words([7]) == skew_words([0, 0]) == ""
    bars = SkewBars("test.skew")
    qtbot.addWidget(bars)
    bars.resize(300, 56)
    bars.show_bars([("0", 100), ("1", 50)])
    bars.grab()
    assert "unevenly" in bars.accessibleDescription()
