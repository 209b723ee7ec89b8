"""The views behind each other, brought to the front piece by piece, and the split between them and the tree.

A view painted at once holds the loop as long as all its parts together; painted part by part, the loop comes round
between two of them: keys are answered and positions arrive while a full view is being drawn.
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
from viewer.widgets.stepwise import Turns

LARGEST = 6
"""A part larger than this share (one in …) of its view is painted in parts where it has some."""
LEAST = 400
"""Px that the views have at least beside the tree."""
SMALLEST = 100
"""Parts smaller than this share (one in …) are painted with the ground."""


class ViewStack(QStackedWidget):
    """Shows one view; one that was in front before comes back part by part, a part a turn of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("views")
        self._laid_out: WeakSet[QWidget] = WeakSet()
        self._turns = Turns(self)

    def minimumSizeHint(self) -> QSize:
        """What a view holds, a long name or sentence, moves nothing beside it: the tree's width is the user's."""
        return QSize(px(LEAST), super().minimumSizeHint().height())

    def setCurrentWidget(self, view: QWidget) -> None:
        """Bring ``view`` to the front: its ground at once, its parts at the next turns of the loop."""
        if view is self.currentWidget():
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
    """What ``view`` is painted of, in the order it was put together; what is too small is left out."""
    whole = view.width() * view.height()
    waiting = _shown_in(view)
    while waiting:
        part = waiting.pop(0)
        area = part.width() * part.height()
        inner = _shown_in(part) if area * LARGEST > whole else []
        if inner:
            waiting[:0] = inner
        elif area * SMALLEST > whole:
            yield part


def _shown_in(part: QWidget) -> list[QWidget]:
    """The children that are painted apart; a table or plot is one picture."""
    if isinstance(part, QScrollArea):
        held = part.widget()
        return [held] if held is not None else []
    if isinstance(part, QAbstractScrollArea):
        return []
    return [
        one
        for one in part.children()
        if isinstance(one, QWidget) and not one.isHidden() and not one.isWindow() and one.updatesEnabled()
    ]


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
