"""Bars that show how evenly the messages of a topic spread over its queues, with a line at the mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen

from viewer.look.assets import tr
from viewer.look.formats import number
from viewer.look.theme import C, mono, px
from viewer.look.topic_colours import colours_of
from viewer.widgets.canvas import Boxes, MarkCanvas
from viewer.widgets.drawn_marks import DrawnMark, queue_mark

TALL = 56


class SkewBars(MarkCanvas):
    """Bars of messages (or of another count) by queue."""

    def __init__(self, name: str, link_of: Callable[[str, int], object] | None = None) -> None:
        """``link_of`` returns the place of a queue of a topic."""
        super().__init__(name, tr("How evenly the queues are filled"), TALL)
        self._bars: tuple[tuple[str, int], ...] = ()
        self._topic = self._role = ""
        self._link_of = link_of

    def show_bars(self, bars: Sequence[tuple[str, int]], topic: str = "", role: str = "") -> None:
        """Show (number, count) of each queue of ``topic`` in this order, in the topic's colour or in that of
        ``role``.
        """
        self._bars, self._topic, self._role = tuple(bars), topic, role
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
        highest = max(*(count for _, count in self._bars), 1)
        base, room = self.height() - px(15), self.height() - px(19)
        bar_width = self.width() / len(self._bars)
        color = C(self._role) if self._role else colours_of(self).color(self._topic) or C("text3")
        color.setAlphaF(0.62)
        p.setFont(mono(11))
        metrics = QFontMetrics(p.font())
        step = max(1, -(-metrics.horizontalAdvance("888") // max(int(bar_width), 1)))
        for index, (name, count) in enumerate(self._bars):
            height = room * count / highest
            p.fillRect(
                QRectF(index * bar_width, base - height, max(bar_width - min(3, bar_width / 4), 0.5), height), color
            )
            if index % step == 0:
                p.setPen(C("text3"))
                p.drawText(
                    QRectF(index * bar_width, base, bar_width * step, px(15)), Qt.AlignmentFlag.AlignVCenter, name
                )
        mean = sum(count for _, count in self._bars) / len(self._bars)
        y = base - room * mean / highest
        p.setPen(QPen(C("text2"), 1, Qt.PenStyle.DashLine))
        p.drawLine(0, round(y), self.width(), round(y))
        self.paint_framed(p)

    def marks(self) -> Boxes:
        """The bar of each queue, at full height."""
        bar_width = self.width() / max(len(self._bars), 1)
        return [
            (
                QRectF(index * bar_width, 1, bar_width, self.height() - 2),
                self._mark(name, f"{_queue(name)}: {number(count)}"),
            )
            for index, (name, count) in enumerate(self._bars)
        ]

    def _mark(self, name: str, words: str) -> DrawnMark:
        link = self._link_of(self._topic, int(name)) if self._link_of is not None else None
        return queue_mark(self._topic, int(name), link, words)

    def words_under(self, point: QPointF) -> str:
        """The queue and its count."""
        mark_and_place = self.mark_at(point)
        return mark_and_place[0].words if mark_and_place is not None else ""


def _queue(name: str) -> str:
    return tr("Queue {number}", number=name)


def skew_words(counts: Sequence[int]) -> str:
    """Say in a sentence how far the fullest and the emptiest queue are from the mean."""
    mean = sum(counts) / len(counts) if counts else 0
    if len(counts) < 2 or mean <= 0:
        return ""
    highest, lowest = max(counts) / mean, min(counts) / mean
    if highest <= 1.1 and lowest >= 0.9:
        return tr("evenly filled: {low:.2f} to {high:.2f} × the mean", low=lowest, high=highest)
    return tr("unevenly filled: {low:.2f} to {high:.2f} × the mean", low=lowest, high=highest)
