"""A stack of views that are painted piece by piece, and the split between them and the tree.

Painting a whole view at once would block the loop. Painted part by part, the loop handles keys and new positions
in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from weakref import WeakSet

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QScrollArea, QSplitter, QSplitterHandle, QStackedWidget, QWidget
from shiboken6 import isValid

from viewer.look.theme import C, px
from viewer.widgets.stepwise import StepQueue

LARGE_PART_DIVISOR = 6
"""A part larger than 1/LARGE_PART_DIVISOR of its view is painted in parts if it has any."""
MIN_VIEWS_WIDTH = 400
"""Smallest width (px) of the views beside the tree."""
SMALL_PART_DIVISOR = 100
"""Parts smaller than 1/SMALL_PART_DIVISOR of the view are painted with the background."""


class ViewStack(QStackedWidget):
    """Shows one view. A view that was in front before is painted part by part, one part a turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("views")
        self._laid_out: WeakSet[QWidget] = WeakSet()
        self._turns = StepQueue(self)

    def minimumSizeHint(self) -> QSize:
        """Return no minimum, so that a long name or sentence in a view does not change the tree's width."""
        return QSize(px(MIN_VIEWS_WIDTH), super().minimumSizeHint().height())

    def setCurrentWidget(self, view: QWidget) -> None:
        """Bring ``view`` to the front: its background at once, its parts in the next turns of the loop."""
        if view is self.currentWidget():
            self._laid_out.add(view)
            return
        self._turns.finish()
        if self.isVisible() and view in self._laid_out:
            veiled = list(parts(view))
            for part in veiled:
                part.setUpdatesEnabled(False)
            self._turns.take([lambda: None, *(partial(_unveil, part) for part in veiled)])
        self._laid_out.add(view)
        super().setCurrentWidget(view)


def _unveil(part: QWidget) -> None:
    if isValid(part):
        part.setUpdatesEnabled(True)


def parts(view: QWidget) -> Iterator[QWidget]:
    """Yield the parts that ``view`` is painted of, in layout order. Small parts are left out."""
    view_area = view.width() * view.height()
    pending = _shown_in(view)
    while pending:
        part = pending.pop(0)
        area = part.width() * part.height()
        inner = _shown_in(part) if area * LARGE_PART_DIVISOR > view_area else []
        if inner:
            pending[:0] = inner
        elif area * SMALL_PART_DIVISOR > view_area:
            yield part


def _shown_in(part: QWidget) -> list[QWidget]:
    """Return the children that are painted separately. A table or plot is painted as a whole."""
    if isinstance(part, QScrollArea):
        content = part.widget()
        return [content] if content is not None else []
    if isinstance(part, QAbstractScrollArea):
        return []
    return [
        child
        for child in part.children()
        if isinstance(child, QWidget) and not child.isHidden() and not child.isWindow() and child.updatesEnabled()
    ]


class SideSplit(QSplitter):
    """A horizontal splitter with a hairline handle."""

    def __init__(self, name: str) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setObjectName(name)
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)

    def createHandle(self) -> QSplitterHandle:
        return _SplitterLine(self.orientation(), self)


class _SplitterLine(QSplitterHandle):
    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), C("accent" if self.underMouse() else "hair"))

    def event(self, event: QEvent) -> bool:
        if event.type() in {QEvent.Type.Enter, QEvent.Type.Leave}:
            self.update()
        return super().event(event)
