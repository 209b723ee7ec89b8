"""Painters of marks, hatches and flags: shapes that show a status even without its colour. No widgets."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QPolygonF

from viewer.look.theme import C, mono, px, ui

MARK_ROLE = {"chat": "text3", "out": "text3", "held": "text2", "unread": "text2", "loop": "error", "stale": "warn"}
OWN_MARKS = {
    "mark": "accent",
    "clock": "posTime",
    "rule.blue": "note",
    "rule.green": "ok",
    "rule.amber": "warn",
    "rule.red": "error",
    "rule.yellow": "warn",
    "rule.grey": "text3",
}
"""Mark that the user or a colouring rule put on a row → colour role."""
CHIP_FILL = {
    "unread": "text2",
    "out": "sunken",
    "chat": "sunken",
    "loop": "errorFill",
    "stale": "warnFill",
    "live": "warnFill",
}
CHIP_INK = {"unread": "pane", "out": "text2", "chat": "text2", "loop": "error", "stale": "warn"}


def mark(p: QPainter, kind: str, c: QPointF, r: float = 4.5, role: str = "") -> None:
    """error ◆ · warn, stale ▲ · note ● · chat ○ · ok ✓ · out – · loop ↻ · live ◉ · unread ⊘ · held (a ring, two bars) ·
    start ▶, around ``c``; in the colour ``role`` where one is given.
    """
    p.save()
    p.setRenderHint(QPainter.RenderHint.Antialiasing)
    color = C(role or OWN_MARKS.get(kind) or MARK_ROLE.get(kind, kind))
    p.setPen(Qt.PenStyle.NoPen)
    p.setBrush(color)
    if kind == "error":
        corners = [QPointF(0, -r - 1), QPointF(r + 1, 0), QPointF(0, r + 1), QPointF(-r - 1, 0)]
        p.drawPolygon(QPolygonF([c + corner for corner in corners]))
    elif kind in {"warn", "stale"}:
        corners = [QPointF(0, -r - 0.5), QPointF(r + 0.8, r - 0.2), QPointF(-r - 0.8, r - 0.2)]
        p.drawPolygon(QPolygonF([c + corner for corner in corners]))
    elif kind in OWN_MARKS:
        _own_mark(p, kind, c, r)
    elif kind == "start":
        corners = [QPointF(-r + 1.5, -r), QPointF(r, 0), QPointF(-r + 1.5, r)]
        p.drawPolygon(QPolygonF([c + corner for corner in corners]))
    elif kind == "note":
        p.drawEllipse(c, r - 0.5, r - 0.5)
    else:
        _stroke_mark(p, kind, c, r, color)
    p.restore()


def _own_mark(p: QPainter, kind: str, c: QPointF, r: float) -> None:
    """Draw a mark that the user put on a row: a bookmark, the time reference, or the shape of a colouring rule."""
    x, y = c.x(), c.y()
    if kind == "mark":
        flag = [QPointF(-r + 1, -r), QPointF(r, -r + 2.5), QPointF(-r + 1, 1)]
        p.drawPolygon(QPolygonF([c + corner for corner in flag]))
        p.drawRect(QRectF(x - r, y - r, 1.6, 2 * r))
        return
    if kind == "rule.blue":
        p.drawRect(QRectF(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2))
    elif kind == "rule.green":
        p.drawRect(QRectF(x - 1.5, y - r - 1, 3, 2 * r + 2))
    elif kind == "rule.yellow":
        star = [
            QPointF(0, -r - 1),
            QPointF(1.4, -1.4),
            QPointF(r + 1, 0),
            QPointF(1.4, 1.4),
            QPointF(0, r + 1),
            QPointF(-1.4, 1.4),
            QPointF(-r - 1, 0),
            QPointF(-1.4, -1.4),
        ]
        p.drawPolygon(QPolygonF([c + corner for corner in star]))
    else:
        p.setPen(QPen(p.brush().color(), 1.8))
        p.setBrush(Qt.BrushStyle.NoBrush)
        if kind == "rule.amber":
            p.drawLine(QPointF(x - r, y), QPointF(x + r, y))
            p.drawLine(QPointF(x, y - r), QPointF(x, y + r))
        elif kind == "rule.red":
            p.drawLine(QPointF(x - r + 1, y - r + 1), QPointF(x + r - 1, y + r - 1))
            p.drawLine(QPointF(x - r + 1, y + r - 1), QPointF(x + r - 1, y - r + 1))
        else:
            p.drawEllipse(c, r - 0.5, r - 0.5)
            if kind == "clock":
                p.drawPolyline([QPointF(x, y - r + 2), c, QPointF(x + r - 2, y)])


def _stroke_mark(p: QPainter, kind: str, c: QPointF, r: float, color: QColor) -> None:
    p.setBrush(Qt.BrushStyle.NoBrush)
    p.setPen(QPen(color, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    if kind == "chat":
        p.drawEllipse(c, r - 1, r - 1)
    elif kind == "unread":
        p.drawEllipse(c, r, r)
        p.drawLine(c + QPointF(-r + 1.4, r - 1.4), c + QPointF(r - 1.4, -r + 1.4))
    elif kind == "ok":
        p.drawPolyline([c + QPointF(-r + 0.5, 0.5), c + QPointF(-1, r - 1.5), c + QPointF(r, -r + 1.5)])
    elif kind == "out":
        p.drawLine(c + QPointF(-r, 0), c + QPointF(r, 0))
    elif kind == "loop":
        p.drawArc(QRectF(c.x() - r, c.y() - r, 2 * r, 2 * r), 30 * 16, 290 * 16)
        p.drawPolyline([c + QPointF(r - 3.2, -r + 1.4), c + QPointF(r - 0.4, -r + 2.2), c + QPointF(r, -r - 1)])
    elif kind == "held":
        p.setPen(QPen(color, 1.2))
        p.drawEllipse(c, r, r)
        for x in (-1.3, 1.3):
            p.drawLine(c + QPointF(x, -r / 2.4), c + QPointF(x, r / 2.4))
    elif kind == "live":
        p.drawEllipse(c, r, r)
        p.setBrush(color)
        p.setPen(Qt.PenStyle.NoPen)
        p.drawEllipse(c, r - 2.6, r - 2.6)


def hatch(p: QPainter, box: QRectF, role: str, alpha: float = 0.9, step: float = 5, *, back: bool = False) -> None:
    """Draw 45° lines over ``box``, for damage and for bytes that would be dropped. ``back`` leans them the other
    way.
    """
    p.save()
    p.setClipRect(box, Qt.ClipOperation.IntersectClip)
    p.setRenderHint(QPainter.RenderHint.Antialiasing)
    p.setPen(QPen(C(role, alpha), 1.2))
    x = box.left() - box.height()
    while x < box.right():
        start_y, end_y = (box.top(), box.bottom()) if back else (box.bottom(), box.top())
        p.drawLine(QPointF(x, start_y), QPointF(x + box.height(), end_y))
        x += step
    p.restore()


def broken_box(p: QPainter, box: QRectF, kind: str) -> None:
    """Draw a stretch that is not intact: missing is dashed and hatched, damaged is outlined and hatched, unreadable
    is cross-hatched in grey.
    """
    role = "text2" if kind == "unread" else "error"
    p.save()
    p.fillRect(box, C({"missing": "pane", "unread": "sunken"}.get(kind, "errorFill")))
    hatch(p, box, role, 0.7 if kind == "unread" else 0.9)
    if kind == "unread":
        hatch(p, box, role, 0.7, back=True)
    if box.width() > 4:
        p.setPen(QPen(C(role), 1, Qt.PenStyle.DashLine if kind == "missing" else Qt.PenStyle.SolidLine))
        p.setBrush(Qt.BrushStyle.NoBrush)
        p.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
    p.restore()


def free_part(box: QRectF, holes: Sequence[tuple[float, float]]) -> QRectF:
    """The widest part of ``box`` between the ``holes`` (left, right) in it."""
    best, free_left = QRectF(box.left(), box.top(), 0, box.height()), box.left()
    inside = [
        (hole_left, hole_right)
        for hole_left, hole_right in holes
        if hole_right > box.left() and hole_left < box.right()
    ]
    for hole_left, hole_right in sorted([*inside, (box.right(), box.right())]):
        if hole_left - free_left > best.width():
            best = QRectF(free_left, box.top(), hole_left - free_left, box.height())
        free_left = max(free_left, hole_right)
    return best


def flag_width(name: str, note: str = "") -> int:
    """Width of a flag's box with these words."""
    width = QFontMetrics(ui(11, 600)).horizontalAdvance(name) + px(12)
    return width + (QFontMetrics(mono(11)).horizontalAdvance(note) + px(6) if note else 0)


def draw_flag(
    p: QPainter,
    x: float,
    top: float,
    bottom: float,
    name: str,
    color: QColor,
    box: QRectF,
    note: str = "",
    ink: str = "text",
) -> None:
    """Draw a stem at ``x`` from ``top`` to ``bottom`` and a framed box with a name and, monospaced, a note."""
    p.save()
    p.setRenderHint(QPainter.RenderHint.Antialiasing)
    p.setPen(QPen(color, 1.5))
    p.drawLine(QPointF(x, top), QPointF(x, bottom))
    p.setPen(QPen(color, 1))
    p.setBrush(C("pane"))
    p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)
    p.setFont(ui(11, 600))
    p.setPen(C(ink))
    words = box.adjusted(px(6), 0, 0, 0)
    p.drawText(words, Qt.AlignmentFlag.AlignVCenter, name)
    if note:
        note_x = QFontMetrics(p.font()).horizontalAdvance(name) + px(5)
        p.setFont(mono(11))
        p.setPen(C("text2"))
        p.drawText(words.adjusted(note_x, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, note)
    p.restore()


def draw_chip(p: QPainter, box: QRectF, kind: str, text: str) -> None:
    """Draw mark and word on their fill."""
    p.save()
    p.setRenderHint(QPainter.RenderHint.Antialiasing)
    p.setPen(Qt.PenStyle.NoPen)
    p.setBrush(C(CHIP_FILL.get(kind, f"{kind}Fill")))
    p.drawRoundedRect(box, 4, 4)
    role = CHIP_INK[kind] if kind == "unread" else ""  # the only inverse chip
    mark(p, kind, QPointF(box.left() + px(11), box.center().y()), 4 * px(100) / 100, role)
    p.setFont(ui(12, 500))
    p.setPen(C(CHIP_INK.get(kind, kind)))
    p.drawText(box.adjusted(px(20), 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)
    p.restore()


def chip_width(text: str) -> int:
    """Width of a chip with this word."""
    return QFontMetrics(ui(12, 500)).horizontalAdvance(text) + px(27)
