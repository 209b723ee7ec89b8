"""Combo boxes, check boxes and lists with the same look everywhere."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QCheckBox, QComboBox, QListWidget, QStyle, QStyleOptionButton, QWidget

from viewer.look.assets import icon_pixmap
from viewer.look.theme import C, px
from viewer.widgets.focus import FocusRing


class ChoiceField(QComboBox):
    """A combo box with an arrow at the right."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        draw_chevron(self)


def draw_chevron(widget: QWidget) -> None:
    """Draw the arrow of a choice at the right edge of ``widget``; for its ``paintEvent``."""
    side = px(14)
    role = "text2" if widget.isEnabled() else "disabled"
    picture = icon_pixmap("chevron-down", C(role), side, widget.devicePixelRatioF())
    QPainter(widget).drawPixmap(widget.width() - side - px(6), (widget.height() - side) // 2, picture)


class TickBox(QCheckBox):
    """A check box that paints its tick. A filled box would look partly checked."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.isChecked():
            return
        option = QStyleOptionButton()
        self.initStyleOption(option)
        box = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(
            QPen(
                C("accentText"),
                max(1.6, px(2)),
                Qt.PenStyle.SolidLine,
                Qt.PenCapStyle.RoundCap,
                Qt.PenJoinStyle.RoundJoin,
            )
        )
        corners = ((0.24, 0.52), (0.43, 0.7), (0.76, 0.3))
        p.drawPolyline(QPolygonF([QPointF(box.x() + box.width() * x, box.y() + box.height() * y) for x, y in corners]))


class ChoiceList(QListWidget):
    """A list with a frame while a key has brought the focus there. An empty list showed nothing."""

    def __init__(self) -> None:
        super().__init__()
        FocusRing(self)
