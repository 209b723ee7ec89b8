"""How evenly the queues of a topic are fed: one bar a queue, a line at the mean."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen

from viewer.assets import tr
from viewer.models.formats import number
from viewer.theme import C, mono, px
from viewer.widgets.canvas import Canvas

TALL = 56


class SkewBars(Canvas):
    """Bars of messages (or whatever is counted) by queue."""

    def __init__(self, name: str) -> None:
        super().__init__(name, tr("How evenly the queues are fed"), TALL, focus=Qt.FocusPolicy.NoFocus, followed=False)
        self._bars: tuple[tuple[str, int], ...] = ()
        self._color: QColor | None = None

    def show_bars(self, bars: Sequence[tuple[str, int]], color: QColor | None = None) -> None:
        """(name, count) of each queue, in their order."""
        self._bars, self._color = tuple(bars), color
        self.setAccessibleDescription(skew_words([count for _, count in bars]))
        self.setVisible(len(self._bars) > 1)
        self.update()

    @property
    def bars(self) -> tuple[tuple[str, int], ...]:
        return self._bars

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(event.rect(), C("pane"))
        if not self._bars:
            return
        most = max(*(count for _, count in self._bars), 1)
        base, room = self.height() - px(15), self.height() - px(19)
        wide = self.width() / len(self._bars)
        color = QColor(self._color) if self._color is not None else C("text3")
        color.setAlphaF(0.62)
        p.setFont(mono(11))
        metrics = QFontMetrics(p.font())
        step = max(1, -(-metrics.horizontalAdvance("888") // max(int(wide), 1)))
        for at, (name, count) in enumerate(self._bars):
            high = room * count / most
            p.fillRect(QRectF(at * wide, base - high, max(wide - min(3, wide / 4), 0.5), high), color)
            if at % step == 0:
                p.setPen(C("text3"))
                p.drawText(QRectF(at * wide, base, wide * step, px(15)), Qt.AlignmentFlag.AlignVCenter, name)
        mean = sum(count for _, count in self._bars) / len(self._bars)
        y = base - room * mean / most
        p.setPen(QPen(C("text2"), 1, Qt.PenStyle.DashLine))
        p.drawLine(0, round(y), self.width(), round(y))

    def words_under(self, point: QPointF) -> str:
        """The queue and its count."""
        if not self._bars:
            return ""
        name, count = self._bars[min(int(point.x() * len(self._bars) / max(self.width(), 1)), len(self._bars) - 1)]
        return f"{tr('Queue {number}', number=name)}: {number(count)}"


def skew_words(counts: Sequence[int]) -> str:
    """How far the fullest and the emptiest are from the mean, in a sentence."""
    mean = sum(counts) / len(counts) if counts else 0
    if len(counts) < 2 or mean <= 0:
        return ""
    high, low = max(counts) / mean, min(counts) / mean
    if high <= 1.1 and low >= 0.9:
        return tr("evenly fed: {low:.2f} to {high:.2f} × the mean", low=low, high=high)
    return tr("unevenly fed: {low:.2f} to {high:.2f} × the mean", low=low, high=high)
