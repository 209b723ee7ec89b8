"""The frame around what has the focus by key, for parts that paint none of their own: trees, canvases, side columns."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from viewer.look.theme import C

BY_KEY = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason)


class FocusRing(QWidget):
    """Lies over ``part`` while that has the focus and a key brought it there; lets every click through."""

    def __init__(self, part: QWidget) -> None:
        super().__init__(part)
        self.setObjectName("focus.ring")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        part.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Come with the focus, go with it."""
        part = self.parentWidget()
        if watched is part and event.type() == QEvent.Type.FocusIn and isinstance(event, QFocusEvent):
            self.setGeometry(part.rect())
            self.setVisible(event.reason() in BY_KEY)
            self.raise_()
        elif watched is part and event.type() in {QEvent.Type.FocusOut, QEvent.Type.MouseButtonPress}:
            self.hide()
        elif watched is part and event.type() == QEvent.Type.Resize:
            self.setGeometry(part.rect())
        return False

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Two px in accent."""
        p = QPainter(self)
        p.setPen(QPen(C("accent"), 2))
        p.drawRect(self.rect().adjusted(1, 1, -1, -1))
