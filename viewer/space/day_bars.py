"""Bar chart of bytes by day, topics stacked; a click goes to the day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from viewer.look.assets import tr, tr_plural
from viewer.look.formats import plain, size
from viewer.look.theme import C, dark, mono, px, ui
from viewer.look.topic_colours import colours_of
from viewer.widgets.canvas import Boxes, MarkCanvas
from viewer.widgets.drawn_marks import day_mark

BAR_HEIGHT = 26
MAX_DAYS = 10


@dataclass(frozen=True, slots=True)
class DayBar:
    """A day: ``parts`` are (topic, bytes), largest topics of the store first."""

    day: str
    bytes: int
    messages: int
    parts: tuple[tuple[str, int], ...]
    link: object = field(default=None, compare=False)
    """Place where the day begins."""


class DayBars(MarkCanvas):
    """Emits ``dayChosen(day)`` on a click, and on Enter for the day that the arrow keys framed."""

    dayChosen = Signal(str)

    def __init__(self, name: str = "space.days") -> None:
        super().__init__(name, tr("Bytes by day"), followed=True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._days: tuple[DayBar, ...] = ()
        self._words = ""

    def show_days(self, days: Sequence[DayBar], words: str = "") -> None:
        """Draw the given days, the oldest on top; show ``words`` if there are none."""
        self._days, self._words = tuple(days), words
        self.setAccessibleDescription(
            "; ".join(f"{day_bar.day} {size(day_bar.bytes)}" for day_bar in self._days) or words
        )
        self._fit()

    @property
    def days(self) -> tuple[DayBar, ...]:
        return self._days

    def _fit(self) -> None:
        self.setFixedHeight(px(BAR_HEIGHT) * max(len(self._days), 1) + px(12))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(px(300), self.minimumHeight())

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(event.rect(), C("pane"))
        if not self._days:
            p.setFont(ui(12))
            p.setPen(C("text3"))
            p.drawText(self.rect().adjusted(px(14), 0, -px(14), 0), Qt.AlignmentFlag.AlignVCenter, self._words)
            self.paint_framed(p)
            return
        p.setFont(mono(11))
        metrics = QFontMetrics(p.font())
        bars_left = px(22) + max(metrics.horizontalAdvance(day_bar.day[5:] or day_bar.day) for day_bar in self._days)
        max_bytes = max(day_bar.bytes for day_bar in self._days) or 1
        max_width = self.width() - bars_left - px(24) - metrics.horizontalAdvance("1,023 MiB")
        for number, day_bar in enumerate(self._days):
            self._paint_day(
                p, day_bar, px(6) + number * px(BAR_HEIGHT), bars_left, max_width * day_bar.bytes / max_bytes
            )
        self.paint_framed(p)

    def marks(self) -> Boxes:
        """Return one mark for each day."""
        wide = self.width() - px(12)
        return [
            (
                QRectF(px(6), px(6) + number * px(BAR_HEIGHT) + 2, wide, px(BAR_HEIGHT) - 5),
                day_mark(day_bar.day, day_bar.link, self.words_of(day_bar)),
            )
            for number, day_bar in enumerate(self._days)
        ]

    def _paint_day(self, p: QPainter, day_bar: DayBar, y: int, bars_left: int, width: float) -> None:
        p.setPen(C("text2"))
        p.drawText(
            QRectF(px(14), y, bars_left, px(BAR_HEIGHT)), Qt.AlignmentFlag.AlignVCenter, day_bar.day[5:] or day_bar.day
        )
        x, colours = float(bars_left), colours_of(self)
        for topic, part in day_bar.parts:
            part_width = width * part / (day_bar.bytes or 1)
            color = colours.color(topic)
            if color is None:
                color = C("text3", 0.45)
            else:
                color.setAlphaF(0.7 if dark() else 0.8)
            p.fillRect(QRectF(x, y + px(4), max(part_width - 0.8, 0.4), px(BAR_HEIGHT) - px(9)), color)
            x += part_width
        p.setPen(C("text"))
        p.drawText(QRectF(x + px(8), y, px(120), px(BAR_HEIGHT)), Qt.AlignmentFlag.AlignVCenter, size(day_bar.bytes))

    def _number_at(self, y: float) -> int | None:
        number = int((y - px(6)) // px(BAR_HEIGHT))
        return number if 0 <= number < len(self._days) else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        number = self._number_at(event.position().y())
        if number is not None and event.button() == Qt.MouseButton.LeftButton:
            self.frame(number)
            self.dayChosen.emit(self._days[number].day)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._days:
            self.dayChosen.emit(self._days[min(self._framed, len(self._days) - 1)].day)
        else:
            super().keyPressEvent(event)

    def words_under(self, point: QPointF) -> str:
        """Describe the day under a point."""
        number = self._number_at(point.y())
        return self.words_of(self._days[number]) if number is not None else ""

    def words_of(self, day_bar: DayBar) -> str:
        """Describe a day in full."""
        parts = [
            f"{day_bar.day}  {day_bar.bytes:,} B",
            tr_plural("{n:,} message", "{n:,} messages", n=day_bar.messages),
        ]
        return "\n".join([*parts, *(f"{plain(topic)} {size(part)}" for topic, part in day_bar.parts[:12])])
