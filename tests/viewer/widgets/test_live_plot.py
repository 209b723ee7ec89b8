from __future__ import annotations

import pytest

from viewer.widgets.live_frame import Line
from viewer.widgets.live_plot import Bar, Curve, LivePlot


@pytest.fixture
def plot(qtbot):
    live_plot = LivePlot("positions.plot", "Positions", "MiB")
    qtbot.addWidget(live_plot)
    live_plot.resize(600, 240)
    return live_plot


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


def test_no_line_crosses_the_words_of_another(plot) -> None:
    """The dashed line of a value went through "checkpoint, log", the words of an upright line."""
    import pyqtgraph as pg

    plot.show()
    times = [1_795_248_000.0 + n for n in range(2000)]
    curve = Curve("wrote", "posLog2", times, [float(n) for n in range(2000)], "2 GiB")
    lines = [
        Line(times[5], "posTime", "checkpoint, log"),
        *(Line(float(value), "posBuild", "end", upright=False) for value in (1000, 1980)),
    ]
    plot.show_curves([curve], lines, times=True)
    items = [item for item in plot._plot.scene().items() if isinstance(item, pg.InfiniteLine)]
    with_words = [item for item in items if getattr(item, "label", None) is not None]
    without = [item for item in items if getattr(item, "label", None) is None]
    assert with_words
    assert len(without) == len(lines)
    assert min(item.zValue() for item in with_words) > max(item.zValue() for item in without)
