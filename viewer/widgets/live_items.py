"""How a live plot is painted inside pyqtgraph: one item draws grid, curves, marks and cursor of a frame in device px.

pyqtgraph's own curves and grid take ten times as long for the same picture. This module imports pyqtgraph; nobody but
:mod:`viewer.widgets.live_plot` imports it, and only when a plot is on the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPen, QPolygonF, QWheelEvent

from viewer.theme import C, mono, px, ui

if TYPE_CHECKING:
    from viewer.widgets.live_plot import Line, LiveFrame, Trace

DENSE = 700
"""Points from which on a curve is as thick as it turns."""
TRIANGLES = 90
ROUND = 240
"""Dots up to which they are drawn round."""
LATE = 40
"""Late dots that are drawn at most as triangles of their own."""


class AgoAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """Seconds before now: ``-50 s``, from three minutes on ``-4:30``, from three hours on ``-3:20 h``."""

    def tickStrings(self, values: Sequence[float], _scale: float, spacing: float) -> list[str]:
        return [ago(value, spacing) for value in values]


def ago(value: float, spacing: float) -> str:
    """A place on the axis in words."""
    seconds = round(-value, 1)
    if seconds == 0:
        return "0"
    sign = "-" if seconds > 0 else "+"
    seconds = abs(seconds)
    if seconds >= 10_800:
        return f"{sign}{int(seconds // 3600)}:{int(seconds % 3600 // 60):02d} h"
    if seconds >= 180:
        return f"{sign}{int(seconds // 60)}:{int(seconds % 60):02d}"
    return f"{sign}{seconds:.1f} s" if spacing < 1 else f"{sign}{seconds:.0f} s"


class LivePlotWidget(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """A plot whose place in time its owner keeps: ``pointed(seconds or None)`` under the pointer, ``picked(seconds)``
    on a click, ``zoomed(factor, seconds)`` by the wheel, ``dragged(seconds)`` by the hand, ``fitted()`` on a double
    click.
    """

    pointed = Signal(object)
    picked = Signal(float)
    zoomed = Signal(float, float)
    dragged = Signal(float)
    fitted = Signal()

    def __init__(self) -> None:
        super().__init__(axisItems={"bottom": AgoAxis("bottom")})
        item = self.getPlotItem()
        item.hideButtons()
        item.setMenuEnabled(False)
        item.setContentsMargins(0, px(6), px(10), 2)
        item.disableAutoRange()
        self.setMouseTracking(True)
        self.item = FrameItem()
        item.addItem(self.item, ignoreBounds=True)
        self._held: QPointF | None = None
        self._moved = False

    def show_frame(self, frame: LiveFrame) -> None:
        """Draw a frame; axes are laid out anew only where their range changes."""
        box = self.getPlotItem().vb
        wanted = ((frame.begin, frame.end), (frame.bottom, frame.top))
        if tuple(map(tuple, box.viewRange())) != wanted:
            box.setRange(xRange=wanted[0], yRange=wanted[1], padding=0)
        self.item.show_frame(frame, self.getPlotItem())

    def _seconds(self, x: float) -> float:
        return float(self.getPlotItem().vb.mapSceneToView(QPointF(x, 0)).x())

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        self.zoomed.emit(0.8 if event.angleDelta().y() > 0 else 1.25, self._seconds(event.position().x()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._held, self._moved = event.position(), False
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._held is not None and event.buttons() & Qt.MouseButton.LeftButton:
            by = self._seconds(self._held.x()) - self._seconds(event.position().x())
            if self._moved or abs(event.position().x() - self._held.x()) > 3:
                self._moved, self._held = True, event.position()
                self.dragged.emit(by)
            return
        self.pointed.emit(self._seconds(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._held is not None and not self._moved:
            self.picked.emit(self._seconds(event.position().x()))
        self._held = None

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        self._held = None
        self.fitted.emit()

    def leaveEvent(self, event: Any) -> None:
        self.pointed.emit(None)
        super().leaveEvent(event)


class FrameItem(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph has no types
    """All of one frame in one paint, in px: nothing is scaled, lines stay as thin as they are."""

    def __init__(self) -> None:
        super().__init__()
        self._frame: LiveFrame | None = None
        self._plot: Any = None
        self._levels: dict[str, tuple[tuple[float, ...], list[float]]] = {}

    def show_frame(self, frame: LiveFrame, plot: Any) -> None:
        """Draw this from now on."""
        self._frame, self._plot = frame, plot
        self.update()

    def boundingRect(self) -> QRectF:
        frame = self._frame
        if frame is None:
            return QRectF()
        return QRectF(frame.begin, frame.bottom, frame.end - frame.begin, frame.top - frame.bottom)

    def paint(self, p: QPainter, *_: object) -> None:
        frame = self._frame
        if frame is None:
            return
        t = p.transform()
        kx, dx, ky, dy = t.m11(), t.dx(), t.m22(), t.dy()
        p.resetTransform()
        p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        area = QRectF(
            QPointF(frame.begin * kx + dx, frame.top * ky + dy), QPointF(frame.end * kx + dx, frame.bottom * ky + dy)
        )
        self._paint_grid(p, area, (kx, dx, ky, dy))
        for trace in frame.traces:
            if len(trace.xs):
                xs, ys = np.asarray(trace.xs) * kx + dx, np.asarray(trace.ys) * ky + dy
                _paint_trace(p, trace, xs, ys, area)
        if len(frame.ticks):
            _paint_ticks(p, np.asarray(frame.ticks) * kx + dx, area, frame.tick_role)
        for number, line in enumerate(frame.lines):
            _paint_line(p, line, line.at * kx + dx if line.upright else line.at * ky + dy, area, number)
        if frame.cursor is not None and frame.begin <= frame.cursor <= frame.end:
            p.setPen(QPen(C("text"), 1))
            x = frame.cursor * kx + dx
            p.drawLine(QLineF(x, area.top(), x, area.bottom()))

    def _paint_grid(self, p: QPainter, area: QRectF, to: tuple[float, float, float, float]) -> None:
        frame = self._frame
        assert frame is not None
        kx, dx, ky, dy = to
        p.setPen(QPen(C("text3", 0.16), 1))
        for name, low, high, size in (
            ("bottom", frame.begin, frame.end, area.width()),
            ("left", frame.bottom, frame.top, area.height()),
        ):
            asked = (low, high, size)
            if name not in self._levels or self._levels[name][0] != asked:
                levels = self._plot.getAxis(name).tickValues(low, high, size)
                self._levels[name] = asked, list(levels[0][1]) if levels else []
            for value in self._levels[name][1]:
                if name == "bottom":
                    p.drawLine(QLineF(value * kx + dx, area.top(), value * kx + dx, area.bottom()))
                else:
                    p.drawLine(QLineF(area.left(), value * ky + dy, area.right(), value * ky + dy))


def _paint_trace(p: QPainter, trace: Trace, xs: Any, ys: Any, area: QRectF) -> None:
    known = np.isfinite(ys)
    if trace.kind == "dots":
        _paint_dots(p, trace, xs[known], ys[known])
        return
    if trace.kind == "bars":
        p.setPen(QPen(C(trace.role), 1))
        comb = _comb(xs[known], ys[known], area.bottom())
        p.drawPolyline(comb)
        p.translate(1, 0)
        p.drawPolyline(comb)
        p.translate(-1, 0)
        return
    for part in _runs(known):
        polygon = _polygon(xs[part], ys[part])
        if trace.filled:
            _fill(p, trace.role, xs[part], ys[part], area.bottom())
        p.setPen(QPen(C(trace.role), 1))
        p.setBrush(Qt.BrushStyle.NoBrush)
        p.drawPolyline(polygon)
        if polygon.size() <= DENSE:  # twice by one px: a pen of two takes ten times as long
            p.translate(0, 1)
            p.drawPolyline(polygon)
            p.translate(0, -1)


def _comb(xs: Any, ys: Any, foot: float) -> QPolygonF:
    """One line from the axis up to each value and down again: the painter's fastest way to many upright strokes."""
    return _polygon(np.repeat(xs, 3), np.stack((np.full(len(ys), foot), ys, np.full(len(ys), foot)), 1).ravel())


def _fill(p: QPainter, role: str, xs: Any, ys: Any, foot: float) -> None:
    """Down to the axis, one stroke a pixel: a polygon with that many turns would take the rasteriser seconds."""
    columns = np.arange(int(xs[0]), int(xs[-1]) + 1, dtype=float)
    starts = np.flatnonzero(np.diff(xs, prepend=xs[0] - 1))
    tops = np.interp(columns, xs[starts], np.minimum.reduceat(ys, starts))
    pairs = np.stack((np.full(len(tops), foot), tops), 1)
    pairs[1::2] = pairs[1::2, ::-1]
    p.setPen(QPen(C(role, 0.09), 1))
    p.drawPolyline(_polygon(np.repeat(columns, 2), pairs.ravel()))


def _runs(known: Any) -> list[slice]:
    """Stretches without a gap."""
    if known.all():
        return [slice(0, len(known))]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], known.view(np.int8), [0]))))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _polygon(xs: Any, ys: Any) -> QPolygonF:
    polygon: QPolygonF = pg.functions.create_qpolygonf(len(xs))
    view = pg.functions.ndarray_from_qpolygonf(polygon)
    view[:, 0], view[:, 1] = xs, ys
    return polygon


def _paint_dots(p: QPainter, trace: Trace, xs: Any, ys: Any) -> None:
    late = np.asarray(trace.ys)[np.isfinite(trace.ys)] >= trace.late if trace.late else np.zeros(len(xs), bool)
    p.setPen(Qt.PenStyle.NoPen)
    p.setBrush(C(trace.role))
    dots = zip(xs[~late].tolist(), ys[~late].tolist(), strict=True)
    if len(xs) <= ROUND:
        p.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for x, y in dots:
            p.drawEllipse(QPointF(x, y), 2.6, 2.6)
        p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    else:
        p.setPen(QPen(C(trace.role), 1))
        points = _polygon(xs[~late], ys[~late])
        for right, down in ((0, 0), (1, 0), (0, 1), (1, 1)):
            p.translate(right, down)
            p.drawPoints(points)
            p.translate(-right, -down)
    p.setPen(Qt.PenStyle.NoPen)
    p.setBrush(C("warn"))
    for x, y in zip(xs[late][-LATE:].tolist(), ys[late][-LATE:].tolist(), strict=True):
        p.drawPolygon(QPolygonF([QPointF(x, y - 5), QPointF(x + 5, y + 4), QPointF(x - 5, y + 4)]))


def _paint_ticks(p: QPainter, xs: Any, area: QRectF, role: str) -> None:
    """Small triangles on the time axis, thin strokes where they would touch."""
    if len(xs) > TRIANGLES:
        p.setPen(QPen(C(role), 1))
        p.drawPolyline(_comb(xs, np.full(len(xs), area.bottom() - 7), area.bottom() - 1))
        return
    p.setPen(Qt.PenStyle.NoPen)
    p.setBrush(C(role))
    foot, last = area.bottom() - 2, -1e9
    for x in xs[(xs >= area.left()) & (xs <= area.right())].tolist():
        if x - last >= 6:
            p.drawPolygon(QPolygonF([QPointF(x, foot - 7), QPointF(x + 3.5, foot), QPointF(x - 3.5, foot)]))
            last = x


def _paint_line(p: QPainter, line: Line, at: float, area: QRectF, number: int) -> None:
    pen = QPen(C(line.role), 1.4)
    if line.dashed:
        pen.setStyle(Qt.PenStyle.DashLine)
    p.setPen(pen)
    p.setFont(ui(11, 600))
    wide, high = QFontMetrics(p.font()).horizontalAdvance(line.words), px(16)
    if not line.upright:
        if area.top() <= at <= area.bottom():
            p.drawLine(QLineF(area.left(), at, area.right(), at))
            p.drawText(QRectF(area.left() + px(10), max(area.top(), at - high), wide + 4, high), line.words)
        return
    if not area.left() <= at <= area.right():
        return
    top = area.top() + (number % 3) * px(15)
    foot = area.bottom() if line.dashed else min(area.bottom(), top + px(28))
    p.drawLine(QLineF(at, top, at, foot))
    left = at - wide - 4 if at - wide - 4 >= area.left() else at + 4
    p.drawText(QRectF(left, top, wide + 4, high), line.words)


def dress(plot: LivePlotWidget) -> None:
    """Ground, axes and fonts in the colours and the zoom in force."""
    plot.setBackground(C("pane"))
    item = plot.getPlotItem()
    for name in ("left", "bottom"):
        axis = item.getAxis(name)
        axis.setPen(pg.mkPen(C("line")))
        axis.setTextPen(pg.mkPen(C("text3")))
        axis.setStyle(tickFont=mono(11), tickLength=-4)
        axis.enableAutoSIPrefix(False)
    item.getAxis("left").setWidth(px(48))
    plot.item.update()
