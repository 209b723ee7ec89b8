"""What widgets share that draw everything themselves: a name, the focus, and words under the pointer;
and, where they draw several marks, which of them the arrow keys frame, and its menu.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from viewer.look.theme import C, follow, px
from viewer.widgets.drawn_marks import Mark
from viewer.widgets.record_menu import Found, MarkMenu


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


Boxes = Sequence[tuple[QRectF, Mark]]
"""Where each mark is drawn, in the order in which the arrow keys go through them; later ones lie above earlier ones."""


class MarkCanvas(Canvas):
    """Subclasses say by :meth:`marks` what is drawn where, and end their painting with :meth:`paint_framed`."""

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
        """What is drawn, and where."""
        return ()

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The mark under the point, or the framed one."""
        found = self.marks()
        if point is not None:
            hit = next((one for one in reversed(found) if one[0].contains(point)), None)
        else:
            hit = found[min(self._framed, len(found) - 1)] if found else None
        return (hit[1], QPointF(hit[0].center().x(), hit[0].bottom())) if hit is not None else None

    def frame(self, number: int) -> None:
        """Put the frame around the mark of that number, the nearest there is."""
        self._framed = min(max(number, 0), max(len(self.marks()) - 1, 0))
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self.marks()) - 1
        goal = {
            Qt.Key.Key_Left: self._framed - 1,
            Qt.Key.Key_Up: self._framed - 1,
            Qt.Key.Key_Right: self._framed + 1,
            Qt.Key.Key_Down: self._framed + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }.get(Qt.Key(event.key()))
        if goal is None or last < 0:
            super().keyPressEvent(event)
        else:
            self.frame(goal)

    def paint_framed(self, p: QPainter) -> None:
        """While the keys are here: the frame around the chosen mark, around everything where there is none."""
        if not self.hasFocus():
            return
        found, whole = self.marks(), QRectF(self.rect()).adjusted(1, 1, -1, -1)
        box = found[min(self._framed, len(found) - 1)][0].adjusted(-1, -1, 1, 1) if found else whole
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(Qt.BrushStyle.NoBrush)
        p.drawRect(box.intersected(whole))
