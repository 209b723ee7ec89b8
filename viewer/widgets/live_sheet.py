"""The curves of a live plot as a picture made by arrays: one byte a pixel says what stands there, colours come last.

Qt's raster engine takes 0.01 µs for every pixel of every stroke: dense curves, bars and the grounds below curves are
little else than tall strokes, which cost milliseconds a frame. Here a stroke is two comparisons over whole arrays,
whatever its height. Lengths are device pixels from the upper left corner of the plot's area.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor, QImage

Floats = npt.NDArray[np.float64]
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
