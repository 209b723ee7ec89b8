"""The base of widgets that paint everything themselves: an accessible name, the focus, a tool tip for each place.

:class:`MarkCanvas` adds several marks, of which the arrow keys frame one, and a menu for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from viewer.look.theme import C, follow, px
from viewer.widgets.drawn_marks import DrawnMark
from viewer.widgets.record_menu import Found, MarkMenu


class Canvas(QWidget):
    """A widget that paints itself. With ``height`` (px at 100 %) its height is fixed, else it takes the available
    room.

    With ``followed`` the pointer is a hand, because a click leads somewhere.
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
        if self._height is not None:
            self.setFixedHeight(px(self._height))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(px(400), px(self._height or 300))

    def words_under(self, _point: QPointF) -> str:
        """Describe what lies under the pointer."""
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


Boxes = Sequence[tuple[QRectF, DrawnMark]]
"""The boxes of the marks, in the order of the arrow keys. Later ones lie above earlier ones."""


class MarkCanvas(Canvas):
    """A canvas of several marks. Subclasses return them from :meth:`marks` and end their painting with
    :meth:`paint_framed`.
    """

    def __init__(
        self,
        name: str,
        title: str,
        height: int | None = None,
        focus: Qt.FocusPolicy = Qt.FocusPolicy.TabFocus,
        followed: bool = False,
    ) -> None:
        super().__init__(name, title, height, focus, followed)
        self._framed = 0
        self.menu = MarkMenu(self, self.mark_at)

    def marks(self) -> Boxes:
        """The marks that are drawn, with their boxes."""
        return ()

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The mark under the point; without a point the framed one."""
        boxes = self.marks()
        if point is not None:
            hit = next((box_and_mark for box_and_mark in reversed(boxes) if box_and_mark[0].contains(point)), None)
        else:
            hit = boxes[min(self._framed, len(boxes) - 1)] if boxes else None
        return (hit[1], QPointF(hit[0].center().x(), hit[0].bottom())) if hit is not None else None

    def frame(self, number: int) -> None:
        """Frame the mark with this number, or the nearest valid number."""
        self._framed = min(max(number, 0), max(len(self.marks()) - 1, 0))
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last_number = len(self.marks()) - 1
        goal = {
            Qt.Key.Key_Left: self._framed - 1,
            Qt.Key.Key_Up: self._framed - 1,
            Qt.Key.Key_Right: self._framed + 1,
            Qt.Key.Key_Down: self._framed + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last_number,
        }.get(Qt.Key(event.key()))
        if goal is None or last_number < 0:
            super().keyPressEvent(event)
        else:
            self.frame(goal)

    def paint_framed(self, p: QPainter) -> None:
        """Paint the focus frame around the framed mark, or around the whole widget if there are no marks."""
        if not self.hasFocus():
            return
        boxes, bounds = self.marks(), QRectF(self.rect()).adjusted(1, 1, -1, -1)
        box = boxes[min(self._framed, len(boxes) - 1)][0].adjusted(-1, -1, 1, 1) if boxes else bounds
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(Qt.BrushStyle.NoBrush)
        p.drawRect(box.intersected(bounds))
