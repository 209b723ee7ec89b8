"""Plots of the values that a live view has seen."""

from __future__ import annotations

from sample_position_looks import START, look

from viewer.pane.live_plots import Range, positions_frame, rate_frame
from viewer.runtime.live_history import LiveHistory, fill


def test_manual_actions_are_marked_in_both_plots() -> None:
    history = fill(LiveHistory(), [look(n) for n in range(30)])
    history.note("live", "flushed", "by hand", time_ms=START + 1000)
    history.note("error", "power cut", time_ms=START + 2000)
    shown = Range((START + 2900) / 1000, 60)
    for frame in (rate_frame(history, shown, 400, messages=True), positions_frame(history, shown, 400)):
        assert [line.words for line in frame.lines] == ["power cut", "flushed"]
