"""Tabs that are words in a pane's head."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from viewer.look.theme import C, follow, px, ui

GAP = 16


class WordTabs(QWidget):
    """Tabs that are words in a pane's head, the chosen one in the accent colour. Choosing another emits
    ``chosen(key)``.
    """

    chosen = Signal(str)

    def __init__(self, name: str, tabs: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._tabs = list(tabs)
        self._chosen_index = 0
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        follow(self, self._fit)
        self._refresh()

    @property
    def key(self) -> str:
        """The key of the chosen tab."""
        return self._tabs[self._chosen_index][0]

    def choose(self, key: str) -> None:
        """Choose a tab by its key."""
        number = next((n for n, tab in enumerate(self._tabs) if tab[0] == key), self._chosen_index)
        if number != self._chosen_index:
            self._chosen_index = number
            self._refresh()
            self.chosen.emit(self.key)

    def sizeHint(self) -> QSize:
        return QSize(int(sum(width for _, width in self._places())) + px(GAP) * (len(self._tabs) - 1), px(26))

    def _places(self) -> list[tuple[float, float]]:
        places, x = [], 0.0
        for number, (_, word) in enumerate(self._tabs):
            width = float(
                QFontMetrics(ui(12, 600 if number == self._chosen_index else 400)).horizontalAdvance(word) + 2
            )
            places.append((x, width))
            x += width + px(GAP)
        return places

    def _fit(self) -> None:
        self.updateGeometry()
        self.update()

    def _refresh(self) -> None:
        self.setAccessibleName(self._tabs[self._chosen_index][1])
        self._fit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        for number, ((_, word), (x, width)) in enumerate(zip(self._tabs, self._places(), strict=True)):
            on = number == self._chosen_index
            p.setFont(ui(12, 600 if on else 400))
            p.setPen(C("accent" if on else "text3"))
            p.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, word)
            if on and self.hasFocus():
                p.fillRect(QRectF(x, self.height() - 3, width, 2), C("accent"))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        for (key, _), (x, width) in zip(self._tabs, self._places(), strict=True):
            if x - 6 <= event.position().x() < x + width + 6:
                self.choose(key)
                return

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.choose(self._tabs[(self._chosen_index + step) % len(self._tabs)][0])
