"""Topic and key → key text → hash → slot → first byte of the slot, then window and result, as one readable line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPen

from viewer.look.assets import tr
from viewer.look.theme import C, mono, scale, ui
from viewer.widgets.canvas import Boxes, MarkCanvas
from viewer.widgets.drawn_marks import DrawnMark

TALL = 46


@dataclass(frozen=True, slots=True)
class StripPart:
    """A small name over a value; ``follows`` draws the arrow of a computed step in front of it, else a hairline.
    ``mark``: what its menu is about.
    """

    name: str
    value: str
    role: str = "text"
    follows: bool = False
    code: bool = True
    mark: DrawnMark | None = None


class HashStrip(MarkCanvas):
    """Parts from left to right.

    What does not fit is left out from the right, never cut in its middle but for the key.
    """

    def __init__(self) -> None:
        super().__init__("trace.hash", tr("From the key to its slot"), TALL)
        self._parts: tuple[StripPart, ...] = ()

    def show_parts(self, parts: Sequence[StripPart]) -> None:
        """Show these instead."""
        self._parts = tuple(parts)
        self.setAccessibleDescription("; ".join(f"{part.name}: {part.value}" for part in parts))
        self.update()

    def words_under(self, _point: QPointF) -> str:
        """Return the whole text: also parts that did not fit."""
        return "\n".join(f"{part.name}: {part.value}" for part in self._parts)

    def marks(self) -> Boxes:
        """The parts that fit."""
        return [
            (QRectF(x - 4, 3, wide + 8, self.height() - 6), part.mark)
            for part, x, wide in self._places()
            if part.mark is not None
        ]

    def _places(self) -> Iterator[tuple[StripPart, float, float]]:
        """Return every part that fits, with its x position and width."""
        z = scale()
        x = 14 * z
        wide = [self._width(part) for part in self._parts]
        over = sum(wide) + 30 * z * max(0, len(wide) - 1) - (self.width() - x - 8 * z)
        for index, part in enumerate(self._parts):
            width = max(120 * z, wide[index] - over) if index == 0 and over > 0 else wide[index]
            if x + width > self.width() - 4:
                break
            yield part, x, width
            x += width + 30 * z

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("raised"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        for index, (part, x, width) in enumerate(self._places()):
            if index:
                self._paint_joint(p, x, part)
            self._paint_part(p, part, x, width)
        self.paint_framed(p)

    def _width(self, part: StripPart) -> float:
        value = QFontMetrics(_font(part)).horizontalAdvance(part.value)
        return max(value, QFontMetrics(ui(11)).horizontalAdvance(part.name))

    def _paint_joint(self, p: QPainter, x: float, part: StripPart) -> None:
        z = scale()
        p.setPen(QPen(C("field"), 1.4))
        if part.follows:
            p.drawPolyline([QPointF(x - 17 * z, 18 * z), QPointF(x - 12 * z, 23 * z), QPointF(x - 17 * z, 28 * z)])
        else:
            p.setPen(QPen(C("hair"), 1))
            p.drawLine(QPointF(x - 15 * z, 10 * z), QPointF(x - 15 * z, 36 * z))

    def _paint_part(self, p: QPainter, part: StripPart, x: float, width: float) -> None:
        z = scale()
        p.setFont(ui(11))
        p.setPen(C("text3"))
        p.drawText(QRectF(x, 4 * z, width + 8, 16 * z), Qt.AlignmentFlag.AlignVCenter, part.name)
        p.setFont(_font(part))
        p.setPen(C(part.role))
        shown = QFontMetrics(p.font()).elidedText(part.value, Qt.TextElideMode.ElideMiddle, int(width) + 2)
        p.drawText(QRectF(x, 20 * z, width + 8, 20 * z), Qt.AlignmentFlag.AlignVCenter, shown)


def _font(part: StripPart) -> QFont:
    return mono(13, 600) if part.code else ui(13, 600)
