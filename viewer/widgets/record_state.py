"""The states of a table: loading, empty, error, cut off, out of date, live.

The header stays; a state never hides what could be read. Empty and error stand in the table, the others are its last
line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import C, follow, scale, ui
from viewer.widgets.paint import mark
from viewer.widgets.table_state import TableState

MARKS = {
    "empty": "chat",
    "hint": "chat",
    "error": "error",
    "cut": "warn",
    "stale": "warn",
    "live": "live",
    "note": "chat",
    "unread": "unread",
}
IN_TABLE = ("empty", "hint", "error")
UNREAD = "unread"
"""Property of a window: how much of its store could not be read."""
INDENT = 34
"""Px beside the words, for the mark at the left and a margin at the right."""


def unread_of(widget: QWidget) -> str:
    """Return in two words how much of the store in the widget's window could not be read. Then nothing may be
    concluded from missing rows.
    """
    part: QWidget | None = widget
    while part is not None:
        unread_words = part.property(UNREAD)
        if unread_words:
            return str(unread_words)
        part = part.parentWidget()
    return ""


@dataclass(frozen=True)
class State:
    """``kind`` is loading, empty, hint, error, cut, stale, live, unread or note; ``done`` is the share of the work, 0
    to 1. An empty table concludes that there is nothing; a hint says what brings rows.

    ``steps`` are the next steps: a word and what it does; at most two.
    """

    kind: str
    text: str
    done: float | None = None
    steps: tuple[tuple[str, Callable[[], object]], ...] = field(default=(), compare=False)


def state_of(state: TableState | None, action: Callable[[], object] | None = None) -> State | None:
    """Return what a model says of a table as a state; ``action`` does its next step."""
    if state is None:
        return None
    steps = ((state.step, action),) if state.step and action is not None else ()
    return State(state.kind, state.text, state.part, steps)


class ElidedSentence(QLabel):
    """The sentence of a state. On one line it ends in ``…`` if it does not fit; the tool tip has all of it."""

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self.text()
        if not self.wordWrap():
            shown = self.fontMetrics().elidedText(shown, Qt.TextElideMode.ElideRight, self.width())
        self.setToolTip(self.text() if shown != self.text() else "")
        if shown == self.text():
            super().paintEvent(event)
            return
        p = QPainter(self)
        p.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        p.drawText(self.rect(), int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)


class StateLine(QWidget):
    """A state on one line, with its next steps. ``show_state(None)`` hides it."""

    def __init__(self, parent: QWidget | None = None, strip: bool = True) -> None:
        super().__init__(parent)
        self.setObjectName("state.line")
        self._strip = strip
        self.state: State | None = None
        self._room = 460 * scale()
        self._text = ElidedSentence(self)
        self._text.setWordWrap(not strip)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setSizePolicy(
            QSizePolicy.Policy.Ignored if strip else QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred
        )
        self._steps = QHBoxLayout()
        self._steps.setSpacing(8)
        if strip:
            line = QHBoxLayout(self)
            line.setContentsMargins(34, 4, 12, 4)
            line.setSpacing(8)
            line.addWidget(self._text, 1)
            line.addLayout(self._steps)
        else:
            box = QVBoxLayout(self)
            box.setContentsMargins(INDENT - 8, 2, 8, 2)
            box.setSpacing(10)
            box.addWidget(self._text)
            box.addLayout(self._steps)
        self.hide()
        follow(self, self._retheme)

    def _retheme(self) -> None:
        if self.state is not None:
            self.show_state(self.state)

    def show_state(self, state: State | None) -> None:
        """Show ``state``, or hide the line."""
        steps_stay = (
            state is not None
            and self.state is not None
            and [w for w, _ in state.steps] == [w for w, _ in self.state.steps]
        )
        self.state = state
        if state is None:
            self.hide()
            return
        text = engine_words(state.text) if state.kind == "error" else state.text
        if state.kind == "empty" and (unread := unread_of(self)):
            text += (" · " if self._strip else "\n") + tr("Not for certain: {unread}", unread=unread)
        self._text.setText(text)
        self._text.setFont(ui(12, 600 if state.kind in ("cut", "live") else 400))
        role = {"cut": "warn", "live": "live", "error": "text"}.get(state.kind, "text2")
        colors = self._text.palette()
        colors.setColor(QPalette.ColorRole.WindowText, C(role))
        self._text.setPalette(colors)
        self.setAccessibleName(text)
        if not self._strip:
            words = max(self._text.fontMetrics().horizontalAdvance(line) for line in text.split("\n")) + 4
            self._text.setFixedWidth(round(min(words, 460 * scale(), self._room)))
        if not steps_stay:
            self._fill_steps()
        self.setVisible(self.parentWidget() is not None)  # without a parent it would become a window
        self.update()

    def fit(self, room: int) -> None:
        """Wrap the text to ``room`` px."""
        if not self._strip and room - INDENT != self._room:
            self._room = room - INDENT
            self.show_state(self.state)
        self.setMaximumWidth(room)
        self.adjustSize()

    def step(self, number: int = 0) -> None:
        """Run next step ``number``."""
        if self.state is not None and number < len(self.state.steps):
            self.state.steps[number][1]()

    def _fill_steps(self) -> None:
        while (item := self._steps.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for number, (word, _) in enumerate(self.state.steps if self.state else ()):
            button = QPushButton(word, self)
            button.setFont(ui(13))
            button.setProperty("kind", "flat" if number or (self.state and self.state.kind == "loading") else "")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(lambda _=False, n=number: self.step(n))
            self._steps.addWidget(button)
        if not self._strip:
            self._steps.addStretch(1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.state is None:
            return
        p = QPainter(self)
        z = scale()
        if self._strip:
            p.fillRect(self.rect(), C("pane"))
            p.fillRect(QRect(0, 0, self.width(), 1), C("hair"))
        if self.state.kind == "loading":
            self._paint_bar(p, z)
        elif self.state.kind in MARKS:
            x = 18 * z if self._strip else 8 * z
            y = self.height() / 2 if self._strip else self._text.geometry().center().y()
            mark(p, MARKS[self.state.kind], QPointF(x, y), 4.5 * z)

    def _paint_bar(self, p: QPainter, z: float) -> None:
        """Paint a thin progress bar at the line's upper edge; no spinner."""
        bar = QRectF(0, 0, self.width(), 3 * z)
        p.fillRect(bar, C("hair"))
        done = self.state.done if self.state is not None else None
        if done is not None:
            p.fillRect(QRectF(0, 0, self.width() * min(1.0, max(0.0, done)), 3 * z), C("accent"))
        mark(p, "chat", QPointF(18 * z, self.height() / 2), 4 * z)
