"""A live plot that is drawn: zoomed, dragged and fitted by the pointer.

Curves, grounds and bars, drawn by hand into a picture.
"""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QApplication

from viewer.runtime.peak_series import PeakSeries
from viewer.widgets.live_frame import LiveFrame, Trace
from viewer.widgets.live_items import LiveCurves, LivePlotWidget, PlotPicture, bars_of, columns_of, runs, strokes_of


@pytest.fixture
def plot(qtbot):
    widget = LivePlotWidget()
    qtbot.addWidget(widget)
    widget.resize(600, 200)
    widget.show()
    return widget


def test_a_wide_plot_has_a_column_for_two_px():
    assert columns_of(10) == 64
    assert columns_of(1000) > columns_of(600) > 64


def test_the_area_lies_inside_the_widget(plot):
    area = plot.area()
    assert plot.rect().contains(area)
    assert area.width() > 400
    assert not plot.grab().isNull()


def test_the_wheel_zooms_around_the_pointer_and_a_double_click_fits(plot, qtbot):
    zoomed, fitted = [], []
    plot.zoomed.connect(lambda *reported: zoomed.append(reported))
    plot.fitted.connect(lambda: fitted.append(True))
    position = QPointF(plot.area().center())
    wheel = QWheelEvent(
        position,
        plot.mapToGlobal(position),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(plot, wheel)
    assert len(zoomed) == 1
    qtbot.mouseDClick(plot, Qt.MouseButton.LeftButton, pos=position.toPoint())
    assert fitted == [True]


BLUE, RED = QColor("#2060B0"), QColor("#C04010")


def pixels(image: QImage) -> np.ndarray:
    image = image.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
    data = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)
    return data[:, : image.width()].copy()


@pytest.mark.parametrize("points", [(0, 5, 20, 60, 99), (3, 3.5, 3.9, 50, 51, 98)])
def test_a_curve_lies_where_a_painter_draws_it(qapp, points) -> None:
    """The two pictures agree within one pixel."""
    xs = np.array(points, float)
    ys = np.array([5, 44, 20, 30, 2, 47][: len(xs)], float)
    sheet = PlotPicture(100, 50)
    sheet.begin()
    sheet.line([strokes_of(xs, ys, 100, 50, 1)], BLUE)
    ours = pixels(sheet.image()) != 0
    image = QImage(100, 50, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    p = QPainter(image)
    p.setPen(QPen(BLUE, 1))
    p.drawPolyline(QPolygonF([QPointF(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]))
    p.end()
    theirs = pixels(image) != 0
    for pixels_of_one, pixels_of_other in ((ours, theirs), (theirs, ours)):
        wide = np.pad(pixels_of_other, 1)
        near = np.zeros_like(pixels_of_one)
        for down in range(3):
            for right in range(3):
                near |= wide[down : down + 50, right : right + 100]
        assert not (pixels_of_one & ~near).any()


def test_tall_strokes_and_single_pixels_give_the_same(qapp, monkeypatch) -> None:
    rng = np.random.default_rng(3)
    strokes = strokes_of(np.arange(80.0), rng.random(80) * 60, 80, 60, 2)
    new_pixels = []
    for few in (0, 1000):
        monkeypatch.setattr("viewer.widgets.live_items._FEW", few)
        sheet = PlotPicture(80, 60)
        sheet.begin()
        sheet.line([strokes], RED)
        new_pixels.append(pixels(sheet.image()))
    assert np.array_equal(*new_pixels)
    assert (new_pixels[0] == RED.rgba()).any()


def test_grounds_mix_and_lines_lie_above_them(qapp) -> None:
    sheet, pale = PlotPicture(10, 10), QColor(255, 0, 0, 128)
    sheet.begin()
    flat = strokes_of(np.array([0.0, 9.0]), np.array([4.0, 4.0]), 10, 10, 1)
    lower = strokes_of(np.array([0.0, 9.0]), np.array([7.0, 7.0]), 10, 10, 1)
    sheet.ground(flat, pale)
    sheet.ground(lower, QColor(0, 0, 255, 128))
    sheet.line([flat], BLUE)
    image = sheet.image()
    assert image.pixelColor(5, 2).alpha() == 0
    assert image.pixelColor(5, 4) == BLUE
    assert image.pixelColor(5, 5).alpha() == 128
    assert image.pixelColor(5, 8).alpha() == 192
    assert image.pixelColor(5, 8).blue() > image.pixelColor(5, 8).red() > 0


def test_bars_stand_on_the_foot_and_stay_inside(qapp) -> None:
    sheet = PlotPicture(20, 10)
    sheet.begin()
    sheet.line([bars_of(np.array([0.0, 6.0, 6.4, 19.0]), np.array([8.0, 5.0, 2.0, -4.0]), 20, 10, 2)], BLUE)
    drawn = pixels(sheet.image()) != 0
    assert drawn.sum(0).tolist() == [2, 2, 0, 0, 0, 0, 8, 8, *[0] * 11, 10]
    assert runs(np.array([True, False, True, True])) == [slice(0, 1), slice(2, 4)]
    assert runs(np.array([], bool)) == []


def frame_at(now: float, times: np.ndarray, values: np.ndarray, kinds: tuple[str, ...], span: float) -> LiveFrame:
    column = span / 150
    edge = (np.floor(now / column) + 1) * column
    first = max(0, int(np.searchsorted(times, edge - span)) - 1)
    last = int(np.searchsorted(times, now, "right"))
    xs, ys = np.clip(times[first:last] - now, edge - now - span, edge - now), values[first:last]
    traces = tuple(
        Trace(kind, role, xs, ys * scale, kind=kind, filled=kind == "line", late=0.9)
        for kind, role, scale in zip(kinds, ("posLog", "posBuild", "posLog3"), (1.0, 0.5, 0.8), strict=False)
    )
    ticks = times[first + first % 2 : last : 2] - now
    return LiveFrame(traces, edge - now - span, edge - now, 1.0, ticks=ticks, right_edge_s=edge)


@pytest.mark.parametrize("kinds", [("line", "line"), ("bars",), ("dots", "line")])
def test_frame_after_frame_is_the_picture_drawn_anew(qapp, kinds) -> None:
    rng = np.random.default_rng(5)
    times = 1_795_280_000 + np.cumsum(rng.random(1500) * 0.1)
    values = rng.random(1500)
    values[400:440] = np.nan
    curves, cheap_frames = LiveCurves(300, 60, 1), 0
    for number in range(700, 1500, 3):
        frame = frame_at(times[number], times[: number + 1], values[: number + 1], kinds, 30.0)
        drawn_on, drawn_anew = pixels(curves.image(frame)), pixels(LiveCurves(300, 60, 1).image(frame))
        wrong = np.flatnonzero((drawn_on != drawn_anew).any(0))
        assert not len(wrong[wrong > 2]), f"frame {number}: columns {wrong}"  # the edge that goes is cut elsewhere
        cheap_frames += curves.drawn < 60
    assert cheap_frames > 200, "most frames draw only what is new"


def test_another_scale_draws_everything_anew(qapp) -> None:
    times, values = np.arange(100.0), np.linspace(0, 0.5, 100)
    curves = LiveCurves(300, 60, 1)
    curves.image(frame_at(99.0, times, values, ("line",), 60.0))
    frame = frame_at(99.0, times, values, ("line",), 40.0)
    assert np.array_equal(pixels(curves.image(frame)), pixels(LiveCurves(300, 60, 1).image(frame)))
    assert curves.drawn == 300


def test_a_look_behind_a_newer_one_is_drawn(qapp) -> None:
    """Pausing a service just after the store was opened added a look at files and an older sample of the engine in this
    order: times fell, a wide plot had no columns for them, and drawing raised IndexError.
    """
    series = PeakSeries(100)
    for time, value in ((100.0, None), (101.0, 5.0), (100.5, 7.0), (100.5, None)):
        series.append(time, value)
    xs, ys = series.columns(101.0, 1.0, 900)
    assert xs.tolist() == [100.0, 101.0, 101.0, 101.0]
    frame = LiveFrame((Trace("wrote", "posLog", xs - 101.0, ys),), -1.0, 0.0, 10.0)
    assert not LiveCurves(900, 60, 1).image(frame).isNull()
