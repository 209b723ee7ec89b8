"""What widgets share that draw everything themselves: a name, the focus, and words under the pointer."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QHelpEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from viewer.look.theme import follow, px


class Canvas(QWidget):
    """A drawn widget; with ``height`` (px before zoom) it keeps that, else it takes the room that there is.

    The pointer is a hand with ``followed``: what is drawn leads somewhere.
    """

    def __init__(
        self,
        name: str,
        title: str,
        height: int | None = None,
        focus: Qt.FocusPolicy = Qt.FocusPolicy.StrongFocus,
        followed: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setFocusPolicy(focus)
        if followed:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._height = height
        down = QSizePolicy.Policy.Expanding if height is None else QSizePolicy.Policy.Fixed
        self.setSizePolicy(QSizePolicy.Policy.Expanding, down)
        if height is not None:
            self.setFixedHeight(px(height))
        follow(self, self._fit)

    def _fit(self) -> None:
        """The zoom or the colours are others."""
        if self._height is not None:
            self.setFixedHeight(px(self._height))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(px(400), px(self._height or 300))

    def words_under(self, _point: QPointF) -> str:
        """What lies under the pointer, in words."""
        return ""

    def focusInEvent(self, _event: QFocusEvent) -> None:
        self.update()

    def focusOutEvent(self, _event: QFocusEvent) -> None:
        self.update()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_under(QPointF(event.pos())), self)
            return True
        return bool(super().event(event))
