"""Parts side by side that run on in further lines where a line is full, as words do."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem

from viewer.look.theme import px


class Flow(QLayout):
    """Lays its parts out from left to right, each as wide as it wants to be, at most as wide as a line."""

    def __init__(self, gap: int = 8, line_gap: int = 2) -> None:
        super().__init__()
        self._gap, self._line_gap = gap, line_gap
        self._parts: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        """One more part, the last."""
        self._parts.append(item)

    def count(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """The part of that number."""
        return self._parts[index] if 0 <= index < len(self._parts) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """The same, which is no part any more."""
        return self._parts.pop(index) if 0 <= index < len(self._parts) else None

    def expandingDirections(self) -> Qt.Orientation:
        """None: what is left of a line stays empty."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Fewer lines where there is more room."""
        return True

    def heightForWidth(self, width: int) -> int:
        """All lines at that width."""
        return self._place(QRect(0, 0, width, 0), really=False)

    def sizeHint(self) -> QSize:
        """As narrow as may be: it takes the width that it is given."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """One line."""
        return QSize(0, max((one.sizeHint().height() for one in self._parts), default=0))

    def setGeometry(self, rect: QRect) -> None:
        """Put the parts there."""
        super().setGeometry(rect)
        self._place(rect, really=True)

    def _place(self, rect: QRect, *, really: bool) -> int:
        """Go through the lines; their height together."""
        at, line = QPoint(rect.topLeft()), 0
        for part in self._parts:
            wanted = part.sizeHint().boundedTo(QSize(max(1, rect.width()), 1 << 20))
            if at.x() > rect.x() and at.x() + wanted.width() > rect.x() + rect.width():
                at, line = QPoint(rect.x(), at.y() + line + px(self._line_gap)), 0
            if really:
                part.setGeometry(QRect(at, wanted))
            at.setX(at.x() + wanted.width() + px(self._gap))
            line = max(line, wanted.height())
        return at.y() + line - rect.y()
