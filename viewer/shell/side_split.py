"""The tree beside the views: its handle draws itself, so that what lies in the splitter wears its sheet by itself."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSplitter, QSplitterHandle

from viewer.look.theme import C


class SideSplit(QSplitter):
    """Side by side, with a hairline between."""

    def __init__(self, name: str) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setObjectName(name)
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)

    def createHandle(self) -> QSplitterHandle:
        return _Hair(self.orientation(), self)


class _Hair(QSplitterHandle):
    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), C("accent" if self.underMouse() else "hair"))

    def event(self, event: QEvent) -> bool:
        if event.type() in {QEvent.Type.Enter, QEvent.Type.Leave}:
            self.update()
        return super().event(event)
