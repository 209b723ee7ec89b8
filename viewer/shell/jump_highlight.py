"""A short frame around the target of a jump: the chosen row, and the field that was meant."""

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
    from viewer.shell.main_window import MainWindow

DURATION_MS = 300
POLL_INTERVAL_MS = 30
FIELD = "text"
"""Colour role of the frame around a field, whose background is the accent colour."""
MAX_POLLS = 40
"""How often the row is looked for when nothing more is being read."""


class JumpFrame(QWidget):
    """The frame. It lets every click through and disappears by itself."""

    def __init__(self, parent: QWidget, box: QRect) -> None:
        super().__init__(parent)
        self.setObjectName("pulse")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setGeometry(box)
        self.show()
        QTimer.singleShot(DURATION_MS, self, self.deleteLater)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint a frame of two px in the accent colour."""
        p = QPainter(self)
        p.setPen(QPen(C("accent"), 2))
        p.drawRect(self.rect().adjusted(1, 1, -1, -1))


class Jumps:
    """Frames the chosen row of the front table after each jump, and the field that the place names."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._left = 0
        self._field = ""
        self._frame: JumpFrame | None = None
        self._timer = QTimer(window, interval=POLL_INTERVAL_MS)
        self._timer.timeout.connect(self._look)

    def jumped(self, place: Place) -> None:
        """Remove the previous frame and look for the row of ``place``.

        No frame is drawn if the user wants reduced motion.
        """
        if self._frame is not None and isValid(self._frame):
            self._frame.hide()
            self._frame.deleteLater()
        self._frame = None
        if theme.still:
            return
        self._left, self._field = MAX_POLLS, place.field
        self._timer.start()

    def _look(self) -> None:
        window = self._window
        pane = window.panes.get(window.view) if window.session is not None else None
        if pane is None or self._left <= 0:
            self._timer.stop()
            return
        views = [view for view in pane.findChildren(RecordView) if view.isVisible()]
        if any(view.loading for view in views) or not window.jobs.quick_idle:
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
        """Frame the field's bytes too. Return False while they are not loaded."""
        hex_view = next((view for view in pane.findChildren(HexView) if view.chosen_field == self._field), None)
        if hex_view is not None:
            hex_view.set_hits([hex_view.selection()], FIELD)
            QTimer.singleShot(DURATION_MS, hex_view, lambda: hex_view.set_hits((), FIELD))
        return hex_view is not None
