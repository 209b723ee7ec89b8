"""How a live plot is painted: ground and axes once, the curves of a frame by arrays, marks and cursor on top.

pyqtgraph takes ten times as long for the same picture. This module imports numpy; nobody but
:mod:`viewer.widgets.live_plot` imports it, and only when a plot is on the screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QImage,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from viewer.look.assets import tr
from viewer.look.theme import C, mono, px, ui
from viewer.widgets.live_axes import paint_axes
from viewer.widgets.live_curves import ROUND, TRIANGLES, LiveCurves, late_of

if TYPE_CHECKING:
    from viewer.widgets.live_frame import Line, LiveFrame, Trace

LATE = 40
"""Late dots that are drawn at most as triangles of their own."""
RADIUS = 2.6


class LivePlotWidget(QWidget):
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
        super().__init__()
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._frame: LiveFrame | None = None
        self._ground: tuple[tuple[Any, ...], QPixmap] | None = None
        self._curves: LiveCurves | None = None
        self._dots: dict[str, QPixmap] = {}
        self._held: QPointF | None = None
        self._moved = False

    def sizeHint(self) -> QSize:
        """As much as others leave."""
        return QSize(256, 192)

    def minimumSizeHint(self) -> QSize:
        """A few px: the plot's owner says how small it may get."""
        return QSize(32, 32)

    def show_frame(self, frame: LiveFrame) -> None:
        """Draw a frame."""
        self._frame = frame
        self.update()

    def retheme(self) -> None:
        """Take the colours, the fonts and the zoom in force."""
        self._ground, self._curves = None, None
        self._dots.clear()
        self.update()

    def area(self) -> QRect:
        """Where the curves are, in px of the widget: two px for each of :func:`columns_of` its width."""
        below = QFontMetrics(mono(11)).height() + px(6)
        return QRect(px(LEFT) + 1, px(TOP), 2 * columns_of(self.width()), max(1, self.height() - px(TOP) - below))

    def _seconds(self, x: float) -> float:
        area, frame = self.area(), self._frame
        if frame is None:
            return 0.0
        return frame.begin + (x - area.left()) * (frame.end - frame.begin) / area.width()

    # ---- hands -------------------------------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The wheel zooms around its place; with Ctrl it is the window's."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        self.zoomed.emit(0.8 if event.angleDelta().y() > 0 else 1.25, self._seconds(event.position().x()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold."""
        self._held, self._moved = event.position(), False
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag what is held, else point."""
        if self._held is not None and event.buttons() & Qt.MouseButton.LeftButton:
            by = self._seconds(self._held.x()) - self._seconds(event.position().x())
            if self._moved or abs(event.position().x() - self._held.x()) > 3:
                self._moved, self._held = True, event.position()
                self.dragged.emit(by)
            return
        self.pointed.emit(self._seconds(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A press that did not move is a choice."""
        if self._held is not None and not self._moved:
            self.picked.emit(self._seconds(event.position().x()))
        self._held = None

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """All of it."""
        self._held = None
        self.fitted.emit()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at."""
        self.pointed.emit(None)
        super().leaveEvent(event)

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Ground, curves, then what lies over them."""
        p, frame = QPainter(self), self._frame
        if frame is None:
            p.fillRect(self.rect(), C("pane"))
            return
        area = self.area()
        p.drawPixmap(0, 0, self._ground_of(frame, area))
        p.drawImage(area.topLeft(), self._curves_of(frame, area))
        p.setClipRect(area)
        over = _Over(p, frame, QRectF(area))
        for trace in frame.traces:
            if trace.kind == "dots":
                over.dots(trace, self._dot(trace.role))
        over.breaks()
        over.ticks()
        over.lines()

    def _ground_of(self, frame: LiveFrame, area: QRect) -> QPixmap:
        ratio, span = self.devicePixelRatioF(), frame.end - frame.begin
        asked = (self.size().toTuple(), ratio, round(span, 6), frame.bottom, frame.top)
        if self._ground is None or self._ground[0] != asked:
            made = QPixmap(self.size() * ratio)
            made.setDevicePixelRatio(ratio)
            made.fill(C("pane"))
            p = QPainter(made)
            paint_axes(p, area, span, (frame.bottom, frame.top))
            p.end()
            self._ground = asked, made
        return self._ground[1]

    def _curves_of(self, frame: LiveFrame, area: QRect) -> QImage:
        ratio = self.devicePixelRatioF()
        wide, tall = round(area.width() * ratio), round(area.height() * ratio)
        if self._curves is None or self._curves.size != (wide, tall):
            self._curves = LiveCurves(wide, tall, max(1, round(ratio)))
        picture = self._curves.image(frame)
        picture.setDevicePixelRatio(ratio)
        return picture

    def _dot(self, role: str) -> QPixmap:
        """A round dot, drawn once."""
        if role not in self._dots:
            ratio, side = self.devicePixelRatioF(), 7
            made = QPixmap(round(side * ratio), round(side * ratio))
            made.setDevicePixelRatio(ratio)
            made.fill(Qt.GlobalColor.transparent)
            p = QPainter(made)
            p.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(C(role))
            p.drawEllipse(QPointF(side / 2, side / 2), RADIUS, RADIUS)
            p.end()
            self._dots[role] = made
        return self._dots[role]


LEFT, TOP, RIGHT = 48, 6, 10
"""Px around the area of a plot."""


def columns_of(width: int) -> int:
    """Columns of two px that a plot of ``width`` px has for its curves."""
    return max(64, (width - px(LEFT) - px(RIGHT) - 1) // 2)


class _Over:
    """What lies over the curves of one frame: round dots, ticks, marked values, the cursor."""

    def __init__(self, p: QPainter, frame: LiveFrame, area: QRectF) -> None:
        self._p, self._frame, self._area = p, frame, area
        self._across = area.width() / (frame.end - frame.begin)
        self._up = area.height() / (frame.top - frame.bottom)

    def _x(self, seconds: Any) -> Any:
        return self._area.left() + (seconds - self._frame.begin) * self._across

    def _y(self, value: Any) -> Any:
        return self._area.bottom() - (value - self._frame.bottom) * self._up

    def dots(self, trace: Trace, dot: QPixmap) -> None:
        """Round ones where there are few; late ones as triangles."""
        known = np.isfinite(trace.ys)
        xs, ys = self._x(np.asarray(trace.xs)[known]), self._y(np.asarray(trace.ys)[known])
        late = late_of(trace)
        p = self._p
        if len(xs) <= ROUND:
            half = dot.deviceIndependentSize().width() / 2
            for x, y in zip((xs[~late] - half).tolist(), (ys[~late] - half).tolist(), strict=True):
                p.drawPixmap(QPointF(x, y), dot)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("warn"))
        for x, y in zip(xs[late][-LATE:].tolist(), ys[late][-LATE:].tolist(), strict=True):
            p.drawPolygon(QPolygonF([QPointF(x, y - 5), QPointF(x + 5, y + 4), QPointF(x - 5, y + 4)]))

    def breaks(self) -> None:
        """Words where nobody sampled, where they fit."""
        said = tr("not sampled")
        self._p.setFont(ui(11))
        self._p.setPen(C("text3"))
        wide = QFontMetrics(self._p.font()).horizontalAdvance(said)
        for begin, end in self._frame.breaks:
            left, right = max(self._x(begin), self._area.left()), min(self._x(end), self._area.right())
            if right - left > wide + 8:
                box = QRectF(left, self._area.top(), right - left, self._area.height())
                self._p.drawText(box, Qt.AlignmentFlag.AlignCenter, said)

    def ticks(self) -> None:
        """Small triangles on the time axis."""
        frame, area, p = self._frame, self._area, self._p
        if not 0 < len(frame.ticks) <= TRIANGLES:
            return  # strokes, if any, are among the curves
        xs = self._x(np.asarray(frame.ticks))
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C(frame.tick_role))
        foot, last = area.bottom() - 2, -1e9
        for x in xs[(xs >= area.left()) & (xs <= area.right())].tolist():
            if x - last >= 6:
                p.drawPolygon(QPolygonF([QPointF(x, foot - 7), QPointF(x + 3.5, foot), QPointF(x - 3.5, foot)]))
                last = x

    def lines(self) -> None:
        """Marked values, then the cursor."""
        frame, area = self._frame, self._area
        for number, line in enumerate(frame.lines):
            _paint_line(self._p, line, self._x(line.at) if line.upright else self._y(line.at), area, number)
        if frame.cursor is not None and frame.begin <= frame.cursor <= frame.end:
            self._p.setPen(QPen(C("text"), 1))
            x = self._x(frame.cursor)
            self._p.drawLine(QLineF(x, area.top(), x, area.bottom()))


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
