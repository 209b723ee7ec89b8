"""A severity with its count as a switch: pressed it is shown, released it is left out."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton

from viewer.look.theme import C, follow, px
from viewer.widgets.paint import chip_width, draw_chip


class SeverityChip(QAbstractButton):
    """``toggled(shown)`` by pointer or Space."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self.setObjectName(f"findings.{kind}")
        self.setCheckable(True)
        self.setChecked(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        follow(self, self._fit)
        self.show_count("", visible=False)

    def show_count(self, words: str, *, visible: bool) -> None:
        """Say how many there are."""
        self.setText(words)
        self.setAccessibleName(words)
        self.setVisible(visible)
        self._fit()

    def _fit(self) -> None:
        self.setFixedSize(chip_width(self.text()), px(22))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The chip; grey where it is left out, framed with the focus."""
        p = QPainter(self)
        box = QRectF(0, 1, self.width(), px(20))
        draw_chip(p, box, self._kind if self.isChecked() else "out", self.text())
        if self.hasFocus():
            p.setRenderHint(QPainter.RenderHint.Antialiasing)
            p.setPen(QPen(C("accent"), 2))
            p.drawRoundedRect(box.adjusted(1, 1, -1, -1), 4, 4)
