"""Paint what stands before a topic's name: the bar in its colour, or the mark of its kind for RocketMQ's own topics.

Both stand in a box of one width, so that names align. Nothing here is hollow: a hollow box reads as a missing glyph.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from viewer.look.theme import C
from viewer.look.topic_kinds import Kind, kind_of

NAME_INDENT = 15
"""Px at 100 % from the left edge to the name."""
_SIDE = 9.0


def draw_lead(p: QPainter, topic: str, color: QColor | None, x: float, middle: float, zoom: float) -> None:
    """Draw the bar or mark with its left edge at ``x``, around the height ``middle``. ``color`` is the topic's own,
    if any.
    """
    kind = kind_of(topic)
    if not kind:
        p.fillRect(QRectF(x + 2 * zoom, middle - 6 * zoom, 4 * zoom, 12 * zoom), color or C("disabled"))
        return
    p.save()
    p.setRenderHint(QPainter.RenderHint.Antialiasing)
    p.translate(x + _SIDE / 2 * zoom, middle)
    p.scale(zoom, zoom)
    p.setPen(QPen(C("text2"), 1.35, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    p.setBrush(Qt.BrushStyle.NoBrush)
    _draw_kind(p, kind, _SIDE / 2 - 0.3)
    p.restore()


def _draw_kind(p: QPainter, kind: Kind, r: float) -> None:
    """Draw the mark of a kind around the origin, with radius ``r``."""
    box = QRectF(-r, -r, 2 * r, 2 * r)
    if kind == "retry":
        path = QPainterPath(QPointF(-r, r - 0.2))
        path.lineTo(QPointF(0.6, r - 0.2))
        path.arcTo(QRectF(-r + 1.6, -r + 1.6, 2 * r - 1.6, 2 * r - 1.8), -90, 180)
        path.lineTo(QPointF(-r + 0.6, -r + 1.6))
        p.drawPath(path)
        p.drawPolyline([QPointF(-r + 2.8, -r - 0.4), QPointF(-r + 0.4, -r + 1.6), QPointF(-r + 2.8, -r + 3.6)])
    elif kind == "dead":
        reach = r - 0.7
        p.setPen(QPen(C("text2"), 1.9, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        p.drawLine(QPointF(-reach, -reach), QPointF(reach, reach))
        p.drawLine(QPointF(-reach, reach), QPointF(reach, -reach))
    elif kind == "delayed":
        p.drawEllipse(box)
        p.drawPolyline([QPointF(0, -r + 1.7), QPointF(0, 0), QPointF(r - 2, 1.2)])
    elif kind in {"half", "op"}:
        p.drawEllipse(box)
        p.setBrush(C("text2"))
        p.drawPie(box, (90 if kind == "half" else -90) * 16, 180 * 16)
    else:
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("text2"))
        for x in (-3.4, 0.0, 3.4):
            p.drawEllipse(QPointF(x, 0), 1.25, 1.25)
