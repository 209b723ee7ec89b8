"""The curves of one live plot from frame to frame: what is drawn stays, and moves as time goes on.

Ten frames a second differ in little: time has moved by a column or by none, and a few points came at the right edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QImage

from viewer.look.theme import C
from viewer.widgets.live_sheet import Sheet, bars_of, runs, strokes_of

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
