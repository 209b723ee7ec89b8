"""Stages of a job as cards, each with its tasks as squares: done, running, tried again, to come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QWidget

from viewer.look.assets import tr, tr_plural
from viewer.look.theme import C, follow, mono, px, theme, ui
from viewer.pipeline.state import Card
from viewer.widgets.basics import ThemedPanel
from viewer.widgets.paint import mark

WIDE, HIGH, ARROW = 214, 190, 22
COLUMNS, ROWS = 18, 8
SIDE, GAP = 7, 3
MARKS = {"waits": "chat", "running": "live", "done": "ok", "failed": "error", "cancelled": "warn"}


def squares(card: Card, max_squares: int = COLUMNS * ROWS) -> tuple[list[str], int]:
    """Return (state of each square, tasks per square).

    With more tasks than squares, a square stands for several: it is done when all of them are. It is unknown which
    tasks were retried, so the last finished ones are marked.
    """
    each = max(1, math.ceil(card.tasks / max_squares))
    count = math.ceil(card.tasks / each)
    done = count if card.done >= card.tasks else card.done // each
    running = min(count - done, math.ceil((card.running + card.done % each) / each) if card.running else 0)
    retried = min(done, math.ceil(card.retried / each))
    states = ["done"] * (done - retried) + ["again"] * retried + ["running"] * running
    return states + ["waits"] * (count - len(states)), each


class StageCard(QWidget):
    """Card of one stage. ``words`` gives its title, its note and its seconds."""

    def __init__(self, card: Card, words: Callable[[Card], tuple[str, str, str]]) -> None:
        super().__init__()
        self.setObjectName("pipeline.stage")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._words = words
        self.card = card
        self.first = False
        self.show_card(card)
        follow(self, self._fit)

    def show_card(self, card: Card) -> None:
        """Show the present state."""
        self.card = card
        title, note, seconds = self._words(card)
        tasks_text = tr_plural("{done:,} of {n:,} task", "{done:,} of {n:,} tasks", done=card.done, n=card.tasks)
        self.setAccessibleName(f"{title}: {tr(card.state)}, {tasks_text}, {seconds}")
        self.setAccessibleDescription(note)
        _, each = squares(card)
        scale_text = tr_plural("one square is {n:,} task", "one square is {n:,} tasks", n=each) if each > 1 else ""
        retried_text = tr("{n:,} tried again", n=card.retried) if card.retried else ""
        self.setToolTip("\n".join(part for part in (title, note, tasks_text, retried_text, scale_text) if part))
        self._fit()

    def _fit(self) -> None:
        self.setFixedSize(px(WIDE) + (0 if self.first else px(ARROW)), px(HIGH))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        card_left = 0.0 if self.first else float(px(ARROW))
        if not self.first:
            self._paint_arrow(p)
        card, z = self.card, px(100) / 100
        box = QRectF(card_left + 0.5, 0.5, self.width() - card_left - 1, self.height() - 1)
        p.setPen(QPen(C("accent"), 1.6) if card.state == "running" else QPen(C("hair"), 1))
        p.setBrush(C("raised"))
        p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        title, note, seconds = self._words(card)
        inside = QRectF(box.left() + px(13), box.top(), box.width() - px(26), box.height())
        mark(p, MARKS[card.state], QPointF(inside.left() + 4 * z, inside.top() + 22 * z), 4.5 * z)
        p.setFont(ui(13, 600))
        p.setPen(C("text2" if card.state == "waits" else "text"))
        head = QRectF(inside.left() + px(16), inside.top() + px(12), inside.width() - px(16), px(20))
        p.drawText(head, _LEFT, _cut(p, title, head.width()))
        p.setFont(ui(12))
        p.setPen(C("text2"))
        line = QRectF(inside.left(), inside.top() + px(33), inside.width(), px(18))
        p.drawText(line, _LEFT, _cut(p, note, line.width()))
        self._paint_squares(p, inside.left(), inside.top() + px(57), inside.width(), z)
        p.setFont(mono(11))
        p.setPen(C("text2"))
        foot = QRectF(inside.left(), box.bottom() - px(25), inside.width(), px(18))
        p.drawText(
            foot, _LEFT, tr_plural("{done:,} of {n:,} task", "{done:,} of {n:,} tasks", done=card.done, n=card.tasks)
        )
        p.drawText(foot, _RIGHT, seconds)

    def _paint_arrow(self, p: QPainter) -> None:
        y, end = float(px(28)), float(px(ARROW) - 3)
        p.setPen(QPen(C("text3"), 1.4))
        p.drawLine(QPointF(3, y), QPointF(end, y))
        p.drawLine(QPointF(end - px(4), y - px(4)), QPointF(end, y))
        p.drawLine(QPointF(end - px(4), y + px(4)), QPointF(end, y))

    def _paint_squares(self, p: QPainter, left_x: float, top: float, wide: float, z: float) -> None:
        states, _ = squares(self.card)
        step = (SIDE + GAP) * z
        columns = max(1, min(COLUMNS, int((wide + GAP * z) // step)))
        p.setPen(Qt.PenStyle.NoPen)
        for index, state in enumerate(states):
            box = QRectF(left_x + index % columns * step, top + index // columns * step, SIDE * z, SIDE * z)
            if state == "running":  # half filled: a shape, not only a colour
                p.setBrush(C("sunken"))
                p.drawRoundedRect(box, 1.5, 1.5)
                p.setBrush(C("accent"))
                p.drawRect(QRectF(box.left(), box.top(), box.width() / 2, box.height()))
                p.setBrush(Qt.BrushStyle.NoBrush)
                p.setPen(QPen(C("accent"), 1))
                p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 1.5, 1.5)
                p.setPen(Qt.PenStyle.NoPen)
                continue
            p.setBrush(C({"done": "ok", "again": "warn", "waits": "sunken" if not theme.dark else "line"}[state]))
            p.drawRoundedRect(box, 1.5, 1.5)


_LEFT = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
_RIGHT = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)


def _cut(p: QPainter, text: str, width: float) -> str:
    return QFontMetrics(p.font()).elidedText(text, Qt.TextElideMode.ElideRight, int(width))


class StageStrip(QScrollArea):
    """All stages side by side; scrolls sideways, and keeps the running one in view."""

    def __init__(self, words: Callable[[Card], tuple[str, str, str]]) -> None:
        super().__init__()
        self.setObjectName("pipeline.stages")
        self.setAccessibleName(tr("Stages"))
        self._words = words
        self.cards: list[StageCard] = []
        self._inner = ThemedPanel("pane")
        self._line = QHBoxLayout(self._inner)
        self._line.setSpacing(0)
        self._line.addStretch(1)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setWidget(self._inner)
        self._shown = ""
        self._fit()
        follow(self, self._fit)

    def show_cards(self, cards: Sequence[Card], of: str) -> None:
        """Show these stages; ``of`` tells one job from another."""
        keys = [card.key for card in cards]
        if of != self._shown or [widget.card.key for widget in self.cards[: len(keys)]] != keys[: len(self.cards)]:
            while self.cards:
                old = self.cards.pop()
                self._line.removeWidget(old)
                old.hide()
                old.deleteLater()
            self._shown = of
        grown = len(cards) > len(self.cards)
        for card, widget in zip(cards, self.cards, strict=False):
            widget.show_card(card)
        for card in cards[len(self.cards) :]:
            stage_card = StageCard(card, self._words)
            stage_card.first = not self.cards
            stage_card.show_card(card)
            self.cards.append(stage_card)
            self._line.insertWidget(len(self.cards) - 1, stage_card)
        if grown:
            self._keep_in_view()

    def _keep_in_view(self) -> None:
        self._inner.adjustSize()
        running = next((widget for widget in reversed(self.cards) if widget.card.state == "running"), None)
        if running is not None:
            self.ensureWidgetVisible(running, px(24), 0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() + step * px(WIDE + ARROW))

    def sizeHint(self) -> QSize:
        return QSize(px(3 * (WIDE + ARROW)), px(HIGH + 26))

    def _fit(self) -> None:
        self._line.setContentsMargins(px(14), px(12), px(14), px(8))
        self.setFixedHeight(px(HIGH + 32))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus():
            p = QPainter(self.viewport())
            p.setPen(QPen(C("accent"), 2))
            p.drawRect(QRect(1, 1, self.viewport().width() - 2, self.viewport().height() - 2))
