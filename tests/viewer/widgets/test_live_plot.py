"""The slider over the time that is held, by hand and by keys."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from viewer.widgets.live_frame import Line
from viewer.widgets.live_plot import Bar, Curve, LivePlot, Tick, TimeBar, TimeTrack


@pytest.fixture
def plot(qtbot):
    made = LivePlot("positions.plot", "Positions", "MiB")
    qtbot.addWidget(made)
    made.resize(600, 240)
    return made


def test_nothing_is_drawn_before_it_is_on_the_screen(plot) -> None:
    plot.show_curves([Curve("wrote", "posLog2", [0, 1], [0, 1], "1.0")])
    assert plot._plot is None
    plot.show()
    assert plot._plot is not None


def test_curves_lines_and_bars_follow_each_other(plot) -> None:
    plot.show()
    times = [1_795_248_000.0 + n for n in range(2000)]
    curve = Curve("wrote", "posLog2", times, [float(n) for n in range(2000)], "2 GiB", filled=True)
    plot.show_curves(
        [curve], [Line(times[5], "posTime", "checkpoint"), Line(1990.0, "posBuild", "end", upright=False)], times=True
    )
    plot.grab()
    assert "wrote 2 GiB" in plot.accessibleDescription()
    assert "checkpoint" in plot.accessibleDescription()
    plot.show_bars([Bar("dispatched", "posBuild", 3.5, "3.5 MiB"), Bar("flushed", "posLog3", 0.0, "at the end")])
    plot.grab()
    assert "dispatched: 3.5 MiB" in plot.accessibleDescription()
    plot.show_nothing("nothing to draw")
    plot.grab()
    assert plot.accessibleDescription() == "nothing to draw"
    plot.retheme()


START = 1_795_280_000_000


def test_hand_and_keys_move_it(qtbot) -> None:
    track = TimeTrack()
    qtbot.addWidget(track)
    track.resize(416, 44)
    track.show()
    span = (START, START + 40_000)
    track.show_time(span, span[1], [Tick(START + 1000, "warn", "flush paused"), Tick(START + 1100, "ok", "goes on")])
    moved = []
    track.moved.connect(moved.append)
    qtbot.mousePress(track, Qt.MouseButton.LeftButton, pos=QPoint(208, 16))
    assert abs(moved[-1] - (START + 20_000)) < 200
    for key, at in ((Qt.Key.Key_Home, span[0]), (Qt.Key.Key_End, span[1]), (Qt.Key.Key_Left, span[1] - 1000),
                    (Qt.Key.Key_PageUp, span[1] - 10_000), (Qt.Key.Key_Right, span[1])):  # fmt: skip
        qtbot.keyClick(track, key)
        assert moved[-1] == at
    track.grab()


def test_every_tool_has_a_name(qtbot) -> None:
    bar = TimeBar("positions")
    qtbot.addWidget(bar)
    for tool in (bar.record, bar.pause, bar.play, bar.end, bar.load):
        assert tool.objectName().startswith("positions.")
        assert tool.accessibleName()
    bar.grab()
