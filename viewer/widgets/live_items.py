"""Paint a live plot: background and axes once, the curves of a frame by arrays, then marks and the cursor.

pyqtgraph takes ten times as long for the same picture. This module imports numpy. Only
:mod:`viewer.widgets.live_plot` imports it, and only when a plot is on the screen.

Ten frames come in a second and differ little: time has moved by one column or none, and a few points are new at
the right edge. So the old picture stays and moves to the left. Dense curves are painted into an array with one
byte for each pixel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
"""Curves with more points are drawn with a thin line."""
TRIANGLES = 90
"""Up to this number each tick is a triangle. More ticks become strokes, which are drawn here."""
MAX_ROUND_DOTS = 240
"""Up to this number dots are round and drawn elsewhere."""
TICK, LOW_TICK = 7, 3
"""Height in px of a tick's stroke. It is low where the strokes form a band, so that they cover no curve."""
REACH = 4
"""Maximum width in px of a bar or a dot."""
MOVE_TOLERANCE_PX = 0.05
"""Tolerance in px for a place that has moved with the time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """A trace in px of the sheet. ``dress`` is everything else that its picture depends on."""

    dress: tuple[Any, ...]
    xs: Floats
    ys: Floats

    def changed_from(self, previous: _Points, moved: float) -> float:
        """The first x, in px, at which the picture differs from ``previous`` moved to the left."""
        moved_xs = previous.xs - moved
        old_start = int(np.searchsorted(moved_xs, 0.0))
        if old_start == len(moved_xs):
            return 0.0
        new_start = int(np.searchsorted(self.xs, moved_xs[old_start] - MOVE_TOLERANCE_PX))
        common_count = min(len(moved_xs) - old_start, len(self.xs) - new_start)
        old_ys, new_ys = (
            previous.ys[old_start : old_start + common_count],
            self.ys[new_start : new_start + common_count],
        )
        same = (old_ys == new_ys) | (np.isnan(old_ys) & np.isnan(new_ys))
        same &= (
            np.abs(moved_xs[old_start : old_start + common_count] - self.xs[new_start : new_start + common_count])
            < MOVE_TOLERANCE_PX
        )
        first_changed = common_count if same.all() else int(same.argmin())
        if first_changed <= 1:
            return 0.0
        return float(self.xs[new_start + first_changed - 1])  # from this point on the curve differs

    def behind(self, column: int) -> tuple[Floats, Floats]:
        """The points whose picture reaches into ``column`` or later columns."""
        start = max(0, int(np.searchsorted(self.xs, column - REACH)) - 1) if column else 0
        return self.xs[start:], self.ys[start:]


class LiveCurves:
    """The picture of one plot's curves, ``width`` × ``height`` px. Thin lines are ``thin`` px wide."""

    def __init__(self, width: int, height: int, thin: int) -> None:
        self.size = width, height
        self._thin = thin
        self._sheet = PlotPicture(width, height)
        self._frame: LiveFrame | None = None
        self._points: list[_Points] = []
        self._image: QImage | None = None
        self.drawn = 0
        """Columns that were drawn for the last frame."""

    def image(self, frame: LiveFrame) -> QImage:
        """Return the picture of ``frame``. It is valid until the next call."""
        if self._image is None or frame is not self._frame:
            points = self._points_of(frame)
            first_column, moved = self._kept(frame, points)
            self._frame, self._points = frame, points
            self._sheet.begin(first_column, moved)
            self._draw(first_column)
            self._image = self._sheet.image()
            self.drawn = self._sheet.width - first_column
        return self._image

    def _points_of(self, frame: LiveFrame) -> list[_Points]:
        px_per_second = self._sheet.width / (frame.end - frame.begin)
        px_per_value = self._sheet.height / (frame.top - frame.bottom)
        foot = self._sheet.height - 0.5
        traces_in_px = []
        for trace in frame.traces:
            xs = (np.asarray(trace.xs) - frame.begin) * px_per_second + 0.001  # a column begins with its first point
            ys = foot - (np.asarray(trace.ys) - frame.bottom) * px_per_value
            kind, point_count = trace.kind, len(xs)
            if kind == "dots":
                early = np.isfinite(ys)
                early[early] = ~late_of(trace)
                xs, ys, point_count = xs[early], ys[early], int(np.isfinite(trace.ys).sum())
                kind = "dots" if point_count > MAX_ROUND_DOTS else "round"
            traces_in_px.append(_Points((kind, trace.role, trace.filled, point_count > DENSE), xs, ys))
        if len(frame.ticks) > TRIANGLES:
            xs = (np.asarray(frame.ticks) - frame.begin) * px_per_second
            band = len(xs) > self._sheet.width // 4
            tick_height = (LOW_TICK if band else TICK) * self._thin
            traces_in_px.append(
                _Points(("ticks", frame.tick_role, False, band), xs, np.full(len(xs), foot - tick_height))
            )
        return traces_in_px

    def _kept(self, frame: LiveFrame, points: list[_Points]) -> tuple[int, int]:
        """Return the first column to draw again, and the px by which the old picture moves to the left."""
        previous, old_points = self._frame, self._points
        if previous is None or [curve.dress for curve in points] != [curve.dress for curve in old_points]:
            return 0, 0
        span = frame.end - frame.begin
        if (frame.top, frame.bottom) != (previous.top, previous.bottom) or abs(
            span - previous.end + previous.begin
        ) > 1e-6:
            return 0, 0
        moved = (frame.right_edge_s - previous.right_edge_s) * self._sheet.width / span
        if not -MOVE_TOLERANCE_PX <= moved < self._sheet.width or abs(moved - round(moved)) > MOVE_TOLERANCE_PX:
            return 0, 0
        first_column = min(
            (new_curve.changed_from(old_curve, moved) for new_curve, old_curve in zip(points, old_points, strict=True)),
            default=0.0,
        )
        first_column = min(first_column, self._sheet.width - round(moved))
        return max(0, int(first_column)), round(moved)

    def _draw(self, first_column: int) -> None:
        """Draw the lines, fills, bars, ticks and dense dots from ``first_column`` on."""
        sheet, thin = self._sheet, self._thin
        size = sheet.width, sheet.height
        curves = []
        for points in self._points:
            kind, role, filled, dense = points.dress
            xs, ys = points.behind(first_column)
            finite = np.isfinite(ys)
            parts = []
            if kind == "bars" and finite.any():
                parts = [bars_of(xs[finite], ys[finite], *size, 2 * thin)]
            elif kind == "line":
                thickness = thin if dense else 2 * thin
                parts = [strokes_of(xs[part], ys[part], *size, thickness) for part in runs(finite)]
            elif kind == "ticks" and finite.any():
                start_column, tops, feet = bars_of(xs, ys, *size, thin)
                parts = [(start_column, tops, feet - np.int16(thin))]
            curves.append((kind, C(role), parts, xs, ys))
            for part in parts if filled else ():
                sheet.ground(part, C(role, 0.09))
        for kind, color, parts, xs, ys in curves:
            if kind == "dots":
                sheet.squares(xs, ys, 2 * thin, color)
            else:
                sheet.line(parts, color)


def late_of(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which of the finite dots are late."""
    ys = np.asarray(trace.ys)
    ys = ys[np.isfinite(ys)]
    late: npt.NDArray[np.bool_] = ys >= trace.late if trace.late else np.zeros(len(ys), bool)
    return late


Shorts = npt.NDArray[np.int16]
Strokes = tuple[int, Shorts, Shorts]
"""First column; for each column from there on, the first row and the row after the last."""
_FILLS = 4
_LINE = 1 << _FILLS
_LINES = 255 // _LINE
_FIRST = np.ones(1, bool)
_FEW = 12
"""Average number of rows in a column up to which single pixels are set."""


class PlotPicture:
    """A picture of ``width`` × ``height`` px. Fills lie below lines, later lines above earlier ones."""

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

    def begin(self, first_column: int = 0, moved: int = 0) -> None:
        """Move the content ``moved`` px to the left, then clear it from ``first_column`` on."""
        if 0 < moved < self.width:
            for array in (self._places, self._pixels):
                array[:, :-moved] = array[:, moved:]
        self._from = first_column
        self._places[:, first_column:] = 0
        self._fills, self._lines = [], []

    def ground(self, strokes: Strokes, color: QColor) -> None:
        """Fill everything below a line. Where several fills overlap their colours mix."""
        bit = min(len(self._fills), _FILLS - 1)
        self._fills.append(color)
        first_column, tops, _ = self._cut(strokes)
        top = int(tops.min(initial=self.height))
        if top >= self.height:
            return
        part = slice(top, None), slice(first_column, first_column + len(tops))
        below = np.greater_equal(self._rows[top:], tops, out=self._one[part]).view(np.uint8)
        self._places[part] |= below << np.uint8(bit)

    def line(self, parts: Iterable[Strokes], color: QColor) -> None:
        """Draw strokes of one colour."""
        value = _LINE * (min(len(self._lines), _LINES - 1) + 1)
        self._lines.append(color)
        for part in parts:
            first_column, begins, ends = self._cut(part)
            if not len(begins):
                continue
            pixel_count = int((ends - begins).sum(dtype=np.int64))
            if pixel_count <= _FEW * len(begins):
                self._set(first_column, begins, ends, value)
                continue
            top, foot = int(begins.min()), int(ends.max())
            area = slice(top, foot), slice(first_column, first_column + len(begins))
            inside = np.greater_equal(self._rows[top:foot], begins, out=self._one[area])
            inside &= np.less(self._rows[top:foot], ends, out=self._two[area])
            places = self._places[area]
            np.maximum(places, inside.view(np.uint8) * np.uint8(value), out=places)

    def _cut(self, strokes: Strokes) -> Strokes:
        """Return the part of the strokes that lies in the columns to draw."""
        first_column, begins, ends = strokes
        cut = max(0, self._from - first_column)
        return first_column + cut, begins[cut:], ends[cut:]

    def _set(self, first_column: int, begins: Shorts, ends: Shorts, value: int) -> None:
        """Draw strokes pixel by pixel, which is faster when they are short."""
        sizes = np.maximum(ends - begins, 0).astype(np.int64)
        run_starts = np.cumsum(sizes) - sizes
        rows = np.arange(int(sizes.sum())) + np.repeat(begins - run_starts, sizes)
        positions = rows * self.width + np.repeat(np.arange(first_column, first_column + len(begins)), sizes)
        self._places.reshape(-1)[positions] = value

    def squares(self, xs: Floats, ys: Floats, side: int, color: QColor) -> None:
        """Draw a square at each point."""
        value = _LINE * (min(len(self._lines), _LINES - 1) + 1)
        self._lines.append(color)
        columns, rows = np.floor(xs).astype(np.int64), np.floor(ys).astype(np.int64)
        for right in range(side):
            for down in range(side):
                x, y = columns + right, rows + down
                inside = (x >= 0) & (x < self.width) & (y >= 0) & (y < self.height)
                self._places[y[inside], x[inside]] = value

    def image(self) -> QImage:
        """Return the picture. It is valid until the sheet is drawn on again."""
        table, first_column = self._table(), self._from
        if first_column:
            self._pixels[:, first_column:] = table[self._places[:, first_column:]]
        else:
            np.take(table, self._places, out=self._pixels, mode="clip")
        size = self.width, self.height
        return QImage(self._pixels.data, *size, self.width * 4, QImage.Format.Format_ARGB32_Premultiplied)

    def _table(self) -> npt.NDArray[np.uint32]:
        """The colour of each pixel value, premultiplied with alpha."""
        table = np.zeros(256, np.uint32)
        for mixed in range(1, _LINE):
            alpha, parts = 0.0, [0.0, 0.0, 0.0]
            for bit, color in enumerate(self._fills[:_FILLS]):
                if mixed >> bit & 1:
                    opacity, transparency = color.alphaF(), 1 - color.alphaF()
                    alpha = opacity + alpha * transparency
                    channels = (color.redF(), color.greenF(), color.blueF())
                    parts = [opacity * new + transparency * old for new, old in zip(channels, parts, strict=True)]
            table[mixed] = _packed(alpha, *parts)
        for number, color in enumerate(self._lines[:_LINES]):
            table[_LINE * (number + 1) : _LINE * (number + 2)] = color.rgba()
        return table


def _packed(alpha: float, red: float, green: float, blue: float) -> int:
    a, r, g, b = (round(255 * part) for part in (alpha, red, green, blue))
    return a << 24 | r << 16 | g << 8 | b


def strokes_of(xs: Floats, ys: Floats, width: int, height: int, thickness: int) -> Strokes:
    """A curve without gaps as one vertical stroke in each column, from its highest to its lowest point there,
    ``thickness`` px longer. ``xs`` must not decrease.
    """
    columns = _columns(xs, width)
    first_column, last_column = int(columns[0]), int(columns[-1])
    at_edges = np.interp(np.arange(first_column, last_column + 2), xs, ys)
    tops, bottoms = np.minimum(at_edges[:-1], at_edges[1:]), np.maximum(at_edges[:-1], at_edges[1:])
    starts = _starts(columns)
    with_points = columns[starts] - first_column
    tops[with_points] = np.minimum(tops[with_points], np.minimum.reduceat(ys, starts))
    bottoms[with_points] = np.maximum(bottoms[with_points], np.maximum.reduceat(ys, starts))
    last_row = max(0, height - thickness)
    return first_column, _rows(tops, last_row), _rows(bottoms, last_row) + np.int16(min(thickness, height))


def bars_of(xs: Floats, ys: Floats, width: int, height: int, bar_width: int) -> Strokes:
    """Bars from the bottom up to each value, ``bar_width`` px wide. Bars in the same column become the highest one."""
    tops = np.full(width, height, np.int16)
    columns = _columns(xs, width)
    starts = _starts(columns)
    tops[columns[starts]] = _rows(np.minimum.reduceat(ys, starts), height)
    wider = tops.copy()
    for right in range(1, min(bar_width, width)):
        wider[right:] = np.minimum(wider[right:], tops[:-right])
    return 0, wider, np.full(width, height, np.int16)


def runs(finite: npt.NDArray[np.bool_]) -> list[slice]:
    """Slices without a gap."""
    if finite.all():
        return [slice(0, len(finite))] if len(finite) else []
    edges = np.flatnonzero(np.diff(np.concatenate(([0], finite.view(np.int8), [0]))))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _columns(xs: Floats, width: int) -> npt.NDArray[np.int64]:
    return np.minimum(np.maximum(xs, 0), width - 1).astype(np.int64)


def _starts(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Index of the first point of each column."""
    return np.flatnonzero(np.concatenate((_FIRST, columns[1:] != columns[:-1])))


def _rows(ys: Floats, last_row: int) -> Shorts:
    rows: Shorts = np.minimum(np.maximum(ys, 0), last_row).astype(np.int16)
    return rows


LATE = 40
"""Maximum number of late dots that are drawn as triangles."""
RADIUS = 2.6


class LivePlotWidget(QWidget):
    """A live plot. Its owner decides which time it shows: ``pointed(seconds or None)`` under the pointer,
    ``picked(seconds)`` on a click, ``zoomed(factor, seconds)`` by the wheel, ``dragged(seconds)`` by a drag,
    ``fitted()`` on a double click.
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
        return QSize(256, 192)

    def minimumSizeHint(self) -> QSize:
        """A few px. The plot's owner sets the real minimum."""
        return QSize(32, 32)

    def show_frame(self, frame: LiveFrame) -> None:
        """Draw ``frame``."""
        self._frame = frame
        self.update()

    def retheme(self) -> None:
        """Apply the current colours, fonts and zoom."""
        self._ground, self._curves = None, None
        self._dots.clear()
        self.update()

    def area(self) -> QRect:
        """The area of the curves in px of the widget: two px for each of the :func:`columns_of` its width."""
        below = QFontMetrics(mono(11)).height() + px(6)
        return QRect(px(LEFT) + 1, px(TOP), 2 * columns_of(self.width()), max(1, self.height() - px(TOP) - below))

    def _seconds(self, x: float) -> float:
        area, frame = self.area(), self._frame
        if frame is None:
            return 0.0
        return frame.begin + (x - area.left()) * (frame.end - frame.begin) / area.width()

    # ---- mouse -------------------------------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer. Ctrl and the wheel zoom the window instead."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        self.zoomed.emit(0.8 if event.angleDelta().y() > 0 else 1.25, self._seconds(event.position().x()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._held, self._moved = event.position(), False
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag with the left button down, else report the time under the pointer."""
        if self._held is not None and event.buttons() & Qt.MouseButton.LeftButton:
            seconds = self._seconds(self._held.x()) - self._seconds(event.position().x())
            if self._moved or abs(event.position().x() - self._held.x()) > 3:
                self._moved, self._held = True, event.position()
                self.dragged.emit(seconds)
            return
        self.pointed.emit(self._seconds(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Emit ``picked`` if the mouse was not dragged."""
        if self._held is not None and not self._moved:
            self.picked.emit(self._seconds(event.position().x()))
        self._held = None

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        self._held = None
        self.fitted.emit()

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(None)
        super().leaveEvent(event)

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the background, the curves, then the items over them."""
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
        key = (self.size().toTuple(), ratio, round(span, 6), frame.bottom, frame.top)
        if self._ground is None or self._ground[0] != key:
            picture = QPixmap(self.size() * ratio)
            picture.setDevicePixelRatio(ratio)
            picture.fill(C("pane"))
            p = QPainter(picture)
            paint_axes(p, area, span, (frame.bottom, frame.top))
            p.end()
            self._ground = key, picture
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
        """The picture of a round dot, drawn once."""
        if role not in self._dots:
            ratio, side = self.devicePixelRatioF(), 7
            picture = QPixmap(round(side * ratio), round(side * ratio))
            picture.setDevicePixelRatio(ratio)
            picture.fill(Qt.GlobalColor.transparent)
            p = QPainter(picture)
            p.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(C(role))
            p.drawEllipse(QPointF(side / 2, side / 2), RADIUS, RADIUS)
            p.end()
            self._dots[role] = picture
        return self._dots[role]


LEFT, TOP, RIGHT = 48, 6, 10
"""Px around the area of a plot."""


def columns_of(width: int) -> int:
    """Number of columns of two px that a plot of ``width`` px has for its curves."""
    return max(64, (width - px(LEFT) - px(RIGHT) - 1) // 2)


class _Over:
    """Paints the items over the curves of one frame: dots, ticks, marked values, the cursor."""

    def __init__(self, p: QPainter, frame: LiveFrame, area: QRectF) -> None:
        self._p, self._frame, self._area = p, frame, area
        self._across = area.width() / (frame.end - frame.begin)
        self._up = area.height() / (frame.top - frame.bottom)

    def _x(self, seconds: Any) -> Any:
        return self._area.left() + (seconds - self._frame.begin) * self._across

    def _y(self, value: Any) -> Any:
        return self._area.bottom() - (value - self._frame.bottom) * self._up

    def dots(self, trace: Trace, dot: QPixmap) -> None:
        """Paint the dots round if they are few, and late dots as triangles."""
        finite = np.isfinite(trace.ys)
        xs, ys = self._x(np.asarray(trace.xs)[finite]), self._y(np.asarray(trace.ys)[finite])
        late = late_of(trace)
        p = self._p
        if len(xs) <= MAX_ROUND_DOTS:
            half = dot.deviceIndependentSize().width() / 2
            for x, y in zip((xs[~late] - half).tolist(), (ys[~late] - half).tolist(), strict=True):
                p.drawPixmap(QPointF(x, y), dot)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("warn"))
        for x, y in zip(xs[late][-LATE:].tolist(), ys[late][-LATE:].tolist(), strict=True):
            p.drawPolygon(QPolygonF([QPointF(x, y - 5), QPointF(x + 5, y + 4), QPointF(x - 5, y + 4)]))

    def breaks(self) -> None:
        """Write into the times without samples, if the words fit."""
        text = tr("not sampled")
        self._p.setFont(ui(11))
        self._p.setPen(C("text3"))
        text_width = QFontMetrics(self._p.font()).horizontalAdvance(text)
        for begin, end in self._frame.breaks:
            left_x, right_x = max(self._x(begin), self._area.left()), min(self._x(end), self._area.right())
            if right_x - left_x > text_width + 8:
                box = QRectF(left_x, self._area.top(), right_x - left_x, self._area.height())
                self._p.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def ticks(self) -> None:
        """Paint small triangles on the time axis."""
        frame, area, p = self._frame, self._area, self._p
        if not 0 < len(frame.ticks) <= TRIANGLES:
            return  # many ticks are strokes, drawn with the curves
        xs = self._x(np.asarray(frame.ticks))
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C(frame.tick_role))
        foot, last_x = area.bottom() - 2, -1e9
        for x in xs[(xs >= area.left()) & (xs <= area.right())].tolist():
            if x - last_x >= 6:
                p.drawPolygon(QPolygonF([QPointF(x, foot - 7), QPointF(x + 3.5, foot), QPointF(x - 3.5, foot)]))
                last_x = x

    def lines(self) -> None:
        """Paint the marked values with their words, then the cursor."""
        frame, area = self._frame, self._area
        labels: list[LineLabel] = []
        for upright in (True, False):
            lines = [line for line in frame.lines if line.upright == upright]
            places = [self._x(line.position) if upright else self._y(line.position) for line in lines]
            labels += _paint_lines(self._p, lines, places, area)
        for label in labels:  # above the lines of both directions
            self._p.fillRect(label.box, C("pane"))
            self._p.setPen(C(label.role))
            self._p.drawText(label.box, Qt.AlignmentFlag.AlignCenter, label.words)
        if frame.cursor is not None and frame.begin <= frame.cursor <= frame.end:
            self._p.setPen(QPen(C("text"), 1))
            x = self._x(frame.cursor)
            self._p.drawLine(QLineF(x, area.top(), x, area.bottom()))


LABEL_ROWS = 3


class LineLabel(NamedTuple):
    """Words of a line, to be painted over all lines."""

    box: QRectF
    words: str
    role: str


def _paint_lines(p: QPainter, lines: Sequence[Line], places: Sequence[float], area: QRectF) -> list[LineLabel]:
    """Paint the lines of one direction, and return the words that have room."""
    p.setFont(ui(11, 600))
    metrics, label_height = QFontMetrics(p.font()), px(15)
    words = joined([line.words for line in lines], places, [line.role for line in lines])
    text_widths = [metrics.horizontalAdvance(text) for text in words]
    upright = bool(lines) and lines[0].upright
    extents = [float(width if upright else label_height) if width else 0.0 for width in text_widths]
    start, end = (area.left(), area.right()) if upright else (area.top(), area.bottom())
    labels = place_labels(places, extents, start, end, LABEL_ROWS)
    for line, place, label in zip(lines, places, labels, strict=True):
        if start <= place <= end:
            pen = QPen(C(line.role), 1.4, Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine)
            p.setPen(pen)
            top = area.top() + (label.row if label is not None else 0) * label_height
            foot = area.bottom() if line.dashed else min(area.bottom(), top + px(28))
            p.drawLine(QLineF(place, top, place, foot) if upright else QLineF(area.left(), place, area.right(), place))
    line_labels = []
    for line, text, width, label in zip(lines, words, text_widths, labels, strict=True):
        if label is not None:
            left_x = label.begin if upright else area.left() + px(10) + label.row * area.width() / LABEL_ROWS
            top = area.top() + label.row * label_height if upright else label.begin
            line_labels.append(LineLabel(QRectF(left_x - 2, top, width + 4, label_height), text, line.role))
    return line_labels
