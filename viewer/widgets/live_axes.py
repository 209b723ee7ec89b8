"""The axes of a live plot: where round values lie, what they are called, and how they are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QLineF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPen

from viewer.look.theme import C, mono, px

SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
DAY = 86_400
APART = 96
"""Px between two words on the time axis, at least."""
ABOVE = 26
"""Px between two words on the value axis, at least."""
TICK = 4
MINOR = 5
"""Parts of a step that are marked by small ticks."""


def ago(value: float, spacing: float) -> str:
    """A place on the time axis: ``-50 s``, from three minutes on ``-4:30``, from three hours on ``-3:20 h``."""
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


def time_step(span: float, room: float) -> float:
    """Seconds between two words on a time axis of ``room`` px that shows ``span`` seconds."""
    least = span * px(APART) / max(room, 1.0)
    return next((step for step in SECONDS if step >= least), math.ceil(least / DAY) * DAY)


def value_step(span: float, room: float) -> float:
    """The least 1, 2 or 5 times a power of ten that leaves room for the words."""
    least = span * px(ABOVE) / max(room, 1.0)
    power = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * 0.999)


def value_words(value: float, step: float) -> str:
    """A value on the axis, as exact as the steps are."""
    if not value:
        return "0"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def _steps(low: float, high: float, step: float) -> Iterator[float]:
    for number in range(math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6) + 1):
        yield number * step


def paint_axes(p: QPainter, area: QRect, span: float, values: Sequence[float]) -> None:
    """Grid, axes, ticks and words around ``area``: ``span`` seconds up to its right edge, values (low, high)."""
    low, high = values
    across, up = area.width() / span, area.height() / (high - low)
    step, stride = time_step(span, area.width()), value_step(high - low, area.height())
    foot, left = area.top() + area.height(), area.left()
    p.setPen(QPen(C("text3", 0.16), 1))
    times = [(area.left() + area.width() + value * across, value) for value in _steps(-span, 0.0, step)]
    marks = [(foot - (value - low) * up, value) for value in _steps(low, high, stride)]
    for x, _ in times:
        p.drawLine(QLineF(round(x), area.top(), round(x), foot))
    for y, _ in marks:
        p.drawLine(QLineF(left, round(y), left + area.width(), round(y)))
    p.setPen(QPen(C("line", 0.5), 1))
    tick = px(TICK)
    for value in _steps(-span, 0.0, step / MINOR):
        x = round(area.left() + area.width() + value * across)
        p.drawLine(QLineF(x, foot, x, foot - tick))
    for value in _steps(low, high, stride / MINOR):
        y = round(foot - (value - low) * up)
        p.drawLine(QLineF(left - 1, y, left - 1 + tick, y))
    p.setPen(QPen(C("line"), 1))
    p.drawLine(QLineF(left - 1, area.top() - px(4), left - 1, foot))
    p.drawLine(QLineF(left - 1, foot, left + area.width(), foot))
    p.setPen(C("text3"))
    p.setFont(mono(11))
    metrics = QFontMetrics(p.font())
    tall, most = metrics.height(), area.left() + area.width() + px(10)
    for x, value in times:
        said = ago(value, step)
        wide = metrics.horizontalAdvance(said)
        if x + wide / 2 <= most and x - wide / 2 >= 0:
            p.drawText(QRectF(x - wide / 2, foot + 2, wide + 1, tall), said)
    right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
    for y, value in marks:
        p.drawText(QRectF(0, y - tall / 2, left - px(6), tall), right, value_words(value, stride))
