"""The axes of a live plot: the places of round values, their labels, and how they are painted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QLineF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPen

from viewer.look.theme import C, mono, px

SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
DAY = 86_400
MIN_LABEL_DISTANCE_PX = 96
"""Minimum px between two labels on the time axis."""
ABOVE = 26
"""Minimum px between two labels on the value axis."""
TICK = 4
MINOR = 5
"""Parts of a step that are marked by small ticks."""


def ago(value: float, spacing: float) -> str:
    """Format a place on the time axis: ``-50 s``, from three minutes on ``-4:30``, from three hours on ``-3:20 h``."""
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
    """Seconds between two labels on a time axis of ``room`` px that shows ``span`` seconds."""
    least = span * px(MIN_LABEL_DISTANCE_PX) / max(room, 1.0)
    return next((step for step in SECONDS if step >= least), math.ceil(least / DAY) * DAY)


def value_step(span: float, room: float) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten that leaves room for the labels."""
    least = span * px(ABOVE) / max(room, 1.0)
    power = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * 0.999)


def value_words(value: float, step: float) -> str:
    """Format a value on the axis with the precision of the steps."""
    if not value:
        return "0"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def _steps(lowest: float, highest: float, step: float) -> Iterator[float]:
    for number in range(math.ceil(lowest / step - 1e-6), math.floor(highest / step + 1e-6) + 1):
        yield number * step


def paint_axes(p: QPainter, area: QRect, span: float, values: Sequence[float]) -> None:
    """Paint grid, axes, ticks and labels around ``area``: ``span`` seconds up to its right edge, ``values`` (lowest,
    highest).
    """
    lowest, highest = values
    px_per_second, px_per_value = area.width() / span, area.height() / (highest - lowest)
    step, stride = time_step(span, area.width()), value_step(highest - lowest, area.height())
    foot, left_x = area.top() + area.height(), area.left()
    p.setPen(QPen(C("text3", 0.16), 1))
    times = [(area.left() + area.width() + value * px_per_second, value) for value in _steps(-span, 0.0, step)]
    marks = [(foot - (value - lowest) * px_per_value, value) for value in _steps(lowest, highest, stride)]
    for x, _ in times:
        p.drawLine(QLineF(round(x), area.top(), round(x), foot))
    for y, _ in marks:
        p.drawLine(QLineF(left_x, round(y), left_x + area.width(), round(y)))
    p.setPen(QPen(C("line", 0.5), 1))
    tick = px(TICK)
    for value in _steps(-span, 0.0, step / MINOR):
        x = round(area.left() + area.width() + value * px_per_second)
        p.drawLine(QLineF(x, foot, x, foot - tick))
    for value in _steps(lowest, highest, stride / MINOR):
        y = round(foot - (value - lowest) * px_per_value)
        p.drawLine(QLineF(left_x - 1, y, left_x - 1 + tick, y))
    p.setPen(QPen(C("line"), 1))
    p.drawLine(QLineF(left_x - 1, area.top() - px(4), left_x - 1, foot))
    p.drawLine(QLineF(left_x - 1, foot, left_x + area.width(), foot))
    p.setPen(C("text3"))
    p.setFont(mono(11))
    metrics = QFontMetrics(p.font())
    text_height, right_limit = metrics.height(), area.left() + area.width() + px(10)
    for x, value in times:
        label = ago(value, step)
        text_width = metrics.horizontalAdvance(label)
        if x + text_width / 2 <= right_limit and x - text_width / 2 >= 0:
            p.drawText(QRectF(x - text_width / 2, foot + 2, text_width + 1, text_height), label)
    right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
    for y, value in marks:
        p.drawText(QRectF(0, y - text_height / 2, left_x - px(6), text_height), right, value_words(value, stride))
