"""Where a jump ended: one short frame around the chosen row, and around the field that was meant, so that the eye finds
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from viewer.look.theme import C, theme
from viewer.pane import Pane
from viewer.runtime.places import Place
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.pane.store_window import StoreWindow

LASTS_MS = 300
LOOK_MS = 30
FIELD = "text"
"""Colour role of the frame around a field: its own ground is the accent."""
LOOKS = 40
"""How often it is looked for the row when no more rows are being read."""


class JumpFrame(QWidget):
    """The frame; lets every click through and goes by itself."""

    def __init__(self, parent: QWidget, box: QRect) -> None:
        super().__init__(parent)
        self.setObjectName("pulse")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setGeometry(box)
        self.show()
        QTimer.singleShot(LASTS_MS, self, self.deleteLater)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Two px in accent."""
        p = QPainter(self)
        p.setPen(QPen(C("accent"), 2))
        p.drawRect(self.rect().adjusted(1, 1, -1, -1))


class Jumps:
    """Frames the chosen row of the table in front after each jump, and the field that the place names."""

    def __init__(self, window: StoreWindow) -> None:
        self._window = window
        self._left = 0
        self._field = ""
        self._frame: JumpFrame | None = None
        self._timer = QTimer(window, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)

    def jumped(self, place: Place) -> None:
        """A jump to ``place`` was made: the frame of the one before goes, and its row is looked for.

        None is drawn where motion is to be reduced.
        """
        if self._frame is not None and isValid(self._frame):
            self._frame.hide()
            self._frame.deleteLater()
        self._frame = None
        if theme.still:
            return
        self._left, self._field = LOOKS, place.field
        self._timer.start()

    def _look(self) -> None:
        window = self._window
        pane = window.panes.get(window.view) if window.session is not None else None
        if pane is None or self._left <= 0:
            self._timer.stop()
            return
        views = [view for view in pane.findChildren(RecordView) if view.isVisible()]
        if any(view.loading for view in views):
            return
        self._left -= 1
        chosen = next((view for view in views if view.currentIndex().isValid()), None)
        if chosen is None or (self._field and not self._frame_field(pane)):
            return
        self._timer.stop()
        row = chosen.visualRect(chosen.currentIndex())
        if row.isValid():
            self._frame = JumpFrame(chosen.viewport(), QRect(0, row.top(), chosen.viewport().width(), row.height()))

    def _frame_field(self, pane: Pane) -> bool:
        """Frame the field's bytes, too, once they are there; whether they are."""
        found = next((view for view in pane.findChildren(HexView) if view.chosen_field == self._field), None)
        if found is not None:
            found.set_found([found.selection()], FIELD)
            QTimer.singleShot(LASTS_MS, found, lambda: found.set_found((), FIELD))
        return found is not None
