"""A fault in a field stands under that field, over whatever lies there, and goes with the next key."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QLabel, QWidget

from viewer.look.theme import C, px, ui


class FaultNote(QLabel):
    """Words under a field; hidden until :meth:`say`."""

    def __init__(self, field: QWidget, name: str) -> None:
        super().__init__(field.window())
        self._field = field
        self.setObjectName(name)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.hide()

    def say(self, words: str) -> None:
        """Say what is wrong with the field's text; nothing hides it."""
        self.setText(words)
        self._field.setAccessibleDescription(words)
        self.setVisible(bool(words))
        if not words:
            return
        self.setFont(ui(12))
        colors = self.palette()
        colors.setColor(QPalette.ColorRole.WindowText, C("error"))
        self.setPalette(colors)
        self.setContentsMargins(px(10), px(6), px(10), px(6))
        self.setFixedWidth(self._field.width())
        self.adjustSize()
        self.move(self._field.mapTo(self._field.window(), QPoint(0, self._field.height() + 3)))
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Ground and frame, then the words."""
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(QPen(C("error"), 1))
        p.setBrush(C("errorFill"))
        p.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        p.end()
        super().paintEvent(event)
