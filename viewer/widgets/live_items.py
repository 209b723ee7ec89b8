"""How a live plot is painted: ground and axes once, the curves of a frame by arrays, marks and cursor on top.

pyqtgraph takes ten times as long for the same picture. This module imports numpy; nobody but
:mod:`viewer.widgets.live_plot` imports it, and only when a plot is on the screen.

The curves of one live plot from frame to frame: what is drawn stays, and moves as time goes on.

Ten frames a second differ in little: time has moved by a column or by none, and a few points came at the right edge.
Where curves are dense they are a picture made by arrays: one byte a pixel says what stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QEvent, QLineF, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
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
from viewer.widgets.line_labels import joined, place_labels
from viewer.widgets.live_axes import paint_axes

if TYPE_CHECKING:
    from viewer.widgets.live_frame import Line, LiveFrame, Trace

Floats = npt.NDArray[np.float64]
DENSE = 700
"""Points from which on a curve is as thick as it turns."""
TRIANGLES = 90
"""Ticks up to which each is a triangle; of more there are strokes, which are drawn here."""
ROUND = 240
"""Dots up to which they are drawn round, and not here."""
TICK, LOW_TICK = 7, 3
"""Px that the stroke of a tick is high; where strokes make a band it is low, so that it covers no curve."""
REACH = 4
"""Px that a bar or a dot is wide, at most."""
NEAR = 0.05
"""Px by which a place may be off that has moved with the time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """One trace in px of the sheet; ``dress`` is everything else that its picture hangs on."""

    dress: tuple[Any, ...]
    xs: Floats
    ys: Floats

    def changed_from(self, before: _Points, moved: float) -> float:
        """The first place, in px, where this is another picture than ``before``, moved to the left."""
        was = before.xs - moved
        old = int(np.searchsorted(was, 0.0))
        if old == len(was):
            return 0.0
        new = int(np.searchsorted(self.xs, was[old] - NEAR))
        many = min(len(was) - old, len(self.xs) - new)
        then, now = before.ys[old : old + many], self.ys[new : new + many]
        same = (then == now) | (np.isnan(then) & np.isnan(now))
        same &= np.abs(was[old : old + many] - self.xs[new : new + many]) < NEAR
        first = many if same.all() else int(same.argmin())
        if first <= 1:
            return 0.0
        return float(self.xs[new + first - 1])  # from there on the curve leads to something else

    def behind(self, first: int) -> tuple[Floats, Floats]:
        """The points whose picture reaches into column ``first``, and those behind it."""
        at = max(0, int(np.searchsorted(self.xs, first - REACH)) - 1) if first else 0
        return self.xs[at:], self.ys[at:]


class LiveCurves:
    """The picture of one plot's curves, ``width`` × ``height`` px; thin lines are ``thin`` px."""

    def __init__(self, width: int, height: int, thin: int) -> None:
        self.size = width, height
        self._thin = thin
        self._sheet = Sheet(width, height)
        self._frame: LiveFrame | None = None
        self._points: list[_Points] = []
        self._image: QImage | None = None
        self.drawn = 0
        """Columns that the last frame drew."""

    def image(self, frame: LiveFrame) -> QImage:
        """The picture of ``frame``; it stands until the next is asked for."""
        if self._image is None or frame is not self._frame:
            points = self._points_of(frame)
            first, moved = self._kept(frame, points)
            self._frame, self._points = frame, points
            self._sheet.begin(first, moved)
            self._draw(first)
            self._image = self._sheet.image()
            self.drawn = self._sheet.width - first
        return self._image

    def _points_of(self, frame: LiveFrame) -> list[_Points]:
        across = self._sheet.width / (frame.end - frame.begin)
        up = self._sheet.height / (frame.top - frame.bottom)
        foot = self._sheet.height - 0.5
        made = []
        for trace in frame.traces:
            xs = (np.asarray(trace.xs) - frame.begin) * across + 0.001  # a column begins with its first point
            ys = foot - (np.asarray(trace.ys) - frame.bottom) * up
            kind, many = trace.kind, len(xs)
            if kind == "dots":
                early = np.isfinite(ys)
                early[early] = ~late_of(trace)
                xs, ys, many = xs[early], ys[early], int(np.isfinite(trace.ys).sum())
                kind = "dots" if many > ROUND else "round"
            made.append(_Points((kind, trace.role, trace.filled, many > DENSE), xs, ys))
        if len(frame.ticks) > TRIANGLES:
            xs = (np.asarray(frame.ticks) - frame.begin) * across
            band = len(xs) > self._sheet.width // 4
            tall = (LOW_TICK if band else TICK) * self._thin
            made.append(_Points(("ticks", frame.tick_role, False, band), xs, np.full(len(xs), foot - tall)))
        return made

    def _kept(self, frame: LiveFrame, points: list[_Points]) -> tuple[int, int]:
        """From which column on the picture is another, once what is there has moved so many px to the left."""
        before, old = self._frame, self._points
        if before is None or [one.dress for one in points] != [one.dress for one in old]:
            return 0, 0
        span = frame.end - frame.begin
        if (frame.top, frame.bottom) != (before.top, before.bottom) or abs(span - before.end + before.begin) > 1e-6:
            return 0, 0
        moved = (frame.at - before.at) * self._sheet.width / span
        if not -NEAR <= moved < self._sheet.width or abs(moved - round(moved)) > NEAR:
            return 0, 0
        first = min((now.changed_from(was, moved) for now, was in zip(points, old, strict=True)), default=0.0)
        first = min(first, self._sheet.width - round(moved))
        return max(0, int(first)), round(moved)

    def _draw(self, first: int) -> None:
        """The lines, grounds, bars, ticks and many dots from column ``first`` on."""
        sheet, thin = self._sheet, self._thin
        size = sheet.width, sheet.height
        made = []
        for one in self._points:
            kind, role, filled, dense = one.dress
            xs, ys = one.behind(first)
            known = np.isfinite(ys)
            parts = []
            if kind == "bars" and known.any():
                parts = [bars_of(xs[known], ys[known], *size, 2 * thin)]
            elif kind == "line":
                thick = thin if dense else 2 * thin
                parts = [strokes_of(xs[part], ys[part], *size, thick) for part in runs(known)]
            elif kind == "ticks" and known.any():
                left, tops, feet = bars_of(xs, ys, *size, thin)
                parts = [(left, tops, feet - np.int16(thin))]
            made.append((kind, C(role), parts, xs, ys))
            for part in parts if filled else ():
                sheet.ground(part, C(role, 0.09))
        for kind, color, parts, xs, ys in made:
            if kind == "dots":
                sheet.squares(xs, ys, 2 * thin, color)
            else:
                sheet.line(parts, color)


def late_of(trace: Trace) -> npt.NDArray[np.bool_]:
    """Which of the known dots are late."""
    ys = np.asarray(trace.ys)
    ys = ys[np.isfinite(ys)]
    late: npt.NDArray[np.bool_] = ys >= trace.late if trace.late else np.zeros(len(ys), bool)
    return late


Shorts = npt.NDArray[np.int16]
Strokes = tuple[int, Shorts, Shorts]
"""First column, and for each column from there on the first row and the row behind the last."""
_FILLS = 4
_LINE = 1 << _FILLS
_LINES = 255 // _LINE
_FIRST = np.ones(1, bool)
_FEW = 12
"""Rows of a column, on the average, up to which single pixels are set."""


class Sheet:
    """A picture of ``width`` × ``height`` px; grounds go below lines, later lines above earlier ones."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(1, width), max(1, height)
        self._rows = np.arange(self.height, dtype=np.int16)[:, None]
        self._places = np.zeros((self.height, self.width), np.uint8)
        self._pixels = np.zeros((self.height, self.width), np.uint32)
        self._one = np.empty((self.height, self.width), bool)
        self._two = np.empty((self.height, self.width), bool)
        self._fills: list[QColor] = []
        self._lines: list[QColor] = []
        self._from = 0

    def begin(self, first: int = 0, moved: int = 0) -> None:
        """An empty sheet from column ``first`` on, after what is there ``moved`` to the left."""
        if 0 < moved < self.width:
            for held in (self._places, self._pixels):
                held[:, :-moved] = held[:, moved:]
        self._from = first
        self._places[:, first:] = 0
        self._fills, self._lines = [], []

    def ground(self, strokes: Strokes, color: QColor) -> None:
        """Everything below a line down to the foot; where several lie over each other their colours mix."""
        bit = min(len(self._fills), _FILLS - 1)
        self._fills.append(color)
        first, tops, _ = self._cut(strokes)
        top = int(tops.min(initial=self.height))
        if top >= self.height:
            return
        part = slice(top, None), slice(first, first + len(tops))
        below = np.greater_equal(self._rows[top:], tops, out=self._one[part]).view(np.uint8)
        self._places[part] |= below << np.uint8(bit)

    def line(self, parts: Iterable[Strokes], color: QColor) -> None:
        """Strokes of one colour."""
        value = _LINE * (min(len(self._lines), _LINES - 1) + 1)
        self._lines.append(color)
        for part in parts:
            first, begins, ends = self._cut(part)
            if not len(begins):
                continue
            total = int((ends - begins).sum(dtype=np.int64))
            if total <= _FEW * len(begins):
                self._set(first, begins, ends, value)
                continue
            top, foot = int(begins.min()), int(ends.max())
            area = slice(top, foot), slice(first, first + len(begins))
            inside = np.greater_equal(self._rows[top:foot], begins, out=self._one[area])
            inside &= np.less(self._rows[top:foot], ends, out=self._two[area])
            places = self._places[area]
            np.maximum(places, inside.view(np.uint8) * np.uint8(value), out=places)

    def _cut(self, strokes: Strokes) -> Strokes:
        """What of them lies in the columns that are drawn."""
        first, begins, ends = strokes
        cut = max(0, self._from - first)
        return first + cut, begins[cut:], ends[cut:]

    def _set(self, first: int, begins: Shorts, ends: Shorts, value: int) -> None:
        """The same pixel by pixel."""
        sizes = np.maximum(ends - begins, 0).astype(np.int64)
        before = np.cumsum(sizes) - sizes
        rows = np.arange(int(sizes.sum())) + np.repeat(begins - before, sizes)
        at = rows * self.width + np.repeat(np.arange(first, first + len(begins)), sizes)
        self._places.reshape(-1)[at] = value

    def squares(self, xs: Floats, ys: Floats, side: int, color: QColor) -> None:
        """A square around each point."""
        value = _LINE * (min(len(self._lines), _LINES - 1) + 1)
        self._lines.append(color)
        columns, rows = np.floor(xs).astype(np.int64), np.floor(ys).astype(np.int64)
        for right in range(side):
            for down in range(side):
                x, y = columns + right, rows + down
                known = (x >= 0) & (x < self.width) & (y >= 0) & (y < self.height)
                self._places[y[known], x[known]] = value

    def image(self) -> QImage:
        """The picture; it stands until the sheet is drawn on again."""
        table, first = self._table(), self._from
        if first:
            self._pixels[:, first:] = table[self._places[:, first:]]
        else:
            np.take(table, self._places, out=self._pixels, mode="clip")
        size = self.width, self.height
        return QImage(self._pixels.data, *size, self.width * 4, QImage.Format.Format_ARGB32_Premultiplied)

    def _table(self) -> npt.NDArray[np.uint32]:
        """What each value of a place looks like, alpha multiplied in."""
        table = np.zeros(256, np.uint32)
        for mixed in range(1, _LINE):
            alpha, parts = 0.0, [0.0, 0.0, 0.0]
            for bit, color in enumerate(self._fills[:_FILLS]):
                if mixed >> bit & 1:
                    a, rest = color.alphaF(), 1 - color.alphaF()
                    alpha = a + alpha * rest
                    own = (color.redF(), color.greenF(), color.blueF())
                    parts = [a * new + rest * old for new, old in zip(own, parts, strict=True)]
            table[mixed] = _packed(alpha, *parts)
        for number, color in enumerate(self._lines[:_LINES]):
            table[_LINE * (number + 1) : _LINE * (number + 2)] = color.rgba()
        return table


def _packed(alpha: float, red: float, green: float, blue: float) -> int:
    a, r, g, b = (round(255 * part) for part in (alpha, red, green, blue))
    return a << 24 | r << 16 | g << 8 | b


def strokes_of(xs: Floats, ys: Floats, width: int, height: int, thick: int) -> Strokes:
    """A curve without gaps as one upright stroke a column: from the highest to the lowest place that it has there,
    ``thick`` px more. ``xs`` do not fall.
    """
    columns = _columns(xs, width)
    first, last = int(columns[0]), int(columns[-1])
    at_edges = np.interp(np.arange(first, last + 2), xs, ys)
    low, high = np.minimum(at_edges[:-1], at_edges[1:]), np.maximum(at_edges[:-1], at_edges[1:])
    starts = _starts(columns)
    held = columns[starts] - first
    low[held] = np.minimum(low[held], np.minimum.reduceat(ys, starts))
    high[held] = np.maximum(high[held], np.maximum.reduceat(ys, starts))
    most = max(0, height - thick)
    return first, _rows(low, most), _rows(high, most) + np.int16(min(thick, height))


def bars_of(xs: Floats, ys: Floats, width: int, height: int, wide: int) -> Strokes:
    """A bar from the foot up to each value, ``wide`` px wide; the highest of those that share a column."""
    tops = np.full(width, height, np.int16)
    columns = _columns(xs, width)
    starts = _starts(columns)
    tops[columns[starts]] = _rows(np.minimum.reduceat(ys, starts), height)
    wider = tops.copy()
    for right in range(1, min(wide, width)):
        wider[right:] = np.minimum(wider[right:], tops[:-right])
    return 0, wider, np.full(width, height, np.int16)


def runs(known: npt.NDArray[np.bool_]) -> list[slice]:
    """Stretches without a gap."""
    if known.all():
        return [slice(0, len(known))] if len(known) else []
    edges = np.flatnonzero(np.diff(np.concatenate(([0], known.view(np.int8), [0]))))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _columns(xs: Floats, width: int) -> npt.NDArray[np.int64]:
    return np.minimum(np.maximum(xs, 0), width - 1).astype(np.int64)


def _starts(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Numbers of the first point of each column."""
    return np.flatnonzero(np.concatenate((_FIRST, columns[1:] != columns[:-1])))


def _rows(ys: Floats, most: int) -> Shorts:
    rows: Shorts = np.minimum(np.maximum(ys, 0), most).astype(np.int16)
    return rows


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
        """Marked values with their words, then the cursor."""
        frame, area = self._frame, self._area
        for upright in (True, False):
            lines = [line for line in frame.lines if line.upright == upright]
            _paint_lines(self._p, lines, [self._x(line.at) if upright else self._y(line.at) for line in lines], area)
        if frame.cursor is not None and frame.begin <= frame.cursor <= frame.end:
            self._p.setPen(QPen(C("text"), 1))
            x = self._x(frame.cursor)
            self._p.drawLine(QLineF(x, area.top(), x, area.bottom()))


LABEL_ROWS = 3


def _paint_lines(p: QPainter, lines: Sequence[Line], places: Sequence[float], area: QRectF) -> None:
    """Lines of one direction, and their words as far as they have room, on the plot's ground."""
    p.setFont(ui(11, 600))
    metrics, high = QFontMetrics(p.font()), px(15)
    words = joined([line.words for line in lines], places, [line.role for line in lines])
    wide = [metrics.horizontalAdvance(said) for said in words]
    upright = bool(lines) and lines[0].upright
    extents = [float(width if upright else high) if width else 0.0 for width in wide]
    low, end = (area.left(), area.right()) if upright else (area.top(), area.bottom())
    labels = place_labels(places, extents, low, end, LABEL_ROWS)
    for line, place, label in zip(lines, places, labels, strict=True):
        if low <= place <= end:
            pen = QPen(C(line.role), 1.4, Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine)
            p.setPen(pen)
            top = area.top() + (label.row if label is not None else 0) * high
            foot = area.bottom() if line.dashed else min(area.bottom(), top + px(28))
            p.drawLine(QLineF(place, top, place, foot) if upright else QLineF(area.left(), place, area.right(), place))
    for line, said, width, label in zip(lines, words, wide, labels, strict=True):
        if label is not None:
            left = label.begin if upright else area.left() + px(10) + label.row * area.width() / LABEL_ROWS
            top = area.top() + label.row * high if upright else label.begin
            box = QRectF(left - 2, top, width + 4, high)
            p.fillRect(box, C("pane", 0.85))
            p.setPen(C(line.role))
            p.drawText(box, Qt.AlignmentFlag.AlignCenter, said)
