"""Curves as arrays of strokes: where a painter would have drawn them, and frame after frame as if drawn anew."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage

from viewer.runtime.sample_ring import PeakSeries
from viewer.widgets.live_curves import LiveCurves
from viewer.widgets.live_frame import LiveFrame, Trace


def pixels(image: QImage) -> np.ndarray:
    image = image.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
    data = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)
    return data[:, : image.width()].copy()


def frame_at(now: float, times: np.ndarray, values: np.ndarray, kinds: tuple[str, ...], span: float) -> LiveFrame:
    column = span / 150
    edge = (np.floor(now / column) + 1) * column
    low = max(0, int(np.searchsorted(times, edge - span)) - 1)
    high = int(np.searchsorted(times, now, "right"))
    xs, ys = np.clip(times[low:high] - now, edge - now - span, edge - now), values[low:high]
    traces = tuple(
        Trace(kind, role, xs, ys * scale, kind=kind, filled=kind == "line", late=0.9)
        for kind, role, scale in zip(kinds, ("posLog", "posBuild", "posLog3"), (1.0, 0.5, 0.8), strict=False)
    )
    ticks = times[low + low % 2 : high : 2] - now
    return LiveFrame(traces, edge - now - span, edge - now, 1.0, ticks=ticks, at=edge)


@pytest.mark.parametrize("kinds", [("line", "line"), ("bars",), ("dots", "line")])
def test_frame_after_frame_is_the_picture_drawn_anew(qapp, kinds) -> None:
    rng = np.random.default_rng(5)
    times = 1_795_280_000 + np.cumsum(rng.random(1500) * 0.1)
    values = rng.random(1500)
    values[400:440] = np.nan
    kept, few = LiveCurves(300, 60, 1), 0
    for number in range(700, 1500, 3):
        frame = frame_at(times[number], times[: number + 1], values[: number + 1], kinds, 30.0)
        one, other = pixels(kept.image(frame)), pixels(LiveCurves(300, 60, 1).image(frame))
        wrong = np.flatnonzero((one != other).any(0))
        assert not len(wrong[wrong > 2]), f"frame {number}: columns {wrong}"  # the edge that goes is cut elsewhere
        few += kept.drawn < 60
    assert few > 200, "most frames draw only what is new"


def test_another_scale_draws_everything_anew(qapp) -> None:
    times, values = np.arange(100.0), np.linspace(0, 0.5, 100)
    kept = LiveCurves(300, 60, 1)
    kept.image(frame_at(99.0, times, values, ("line",), 60.0))
    frame = frame_at(99.0, times, values, ("line",), 40.0)
    assert np.array_equal(pixels(kept.image(frame)), pixels(LiveCurves(300, 60, 1).image(frame)))
    assert kept.drawn == 300


def test_a_look_behind_a_newer_one_is_drawn(qapp) -> None:
    """A file look and the engine's sample of a moment before were added in this order when a service was paused just
    after the store was opened: times fell, a wide plot had no columns for them, and drawing raised IndexError.
    """
    series = PeakSeries(100)
    for time, value in ((100.0, None), (101.0, 5.0), (100.5, 7.0), (100.5, None)):
        series.append(time, value)
    xs, ys = series.columns(101.0, 1.0, 900)
    assert xs.tolist() == [100.0, 101.0, 101.0, 101.0]
    frame = LiveFrame((Trace("wrote", "posLog", xs - 101.0, ys),), -1.0, 0.0, 10.0)
    assert not LiveCurves(900, 60, 1).image(frame).isNull()
