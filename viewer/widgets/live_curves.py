"""The curves of one live plot from frame to frame: what is drawn stays, and moves as time goes on.

Ten frames a second differ in little: time has moved by a column or by none, and a few points came at the right edge.
Where curves are dense they are a picture made by arrays: one byte a pixel says what stands there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor, QImage

from viewer.look.theme import C

if TYPE_CHECKING:
    from viewer.widgets.live_frame import LiveFrame, Trace


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
