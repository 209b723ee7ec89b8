"""The focus frame for widgets that paint none of their own: trees, canvases, side columns.

Tab goes through a view in reading order: by its layouts and splitters, not by the order in which widgets were
created.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractScrollArea, QLayout, QScrollArea, QSplitter, QStackedWidget, QWidget

from viewer.look.theme import C

BY_KEY = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason)


class FocusRing(QWidget):
    """A frame over ``part`` while it has the focus and a key brought it there. Clicks pass through it."""

    def __init__(self, part: QWidget) -> None:
        super().__init__(part)
        self.setObjectName("focus.ring")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        part.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the frame with the focus, hide it without."""
        part = self.parentWidget()
        if watched is part and event.type() == QEvent.Type.FocusIn and isinstance(event, QFocusEvent):
            self.setGeometry(part.rect())
            self.setVisible(event.reason() in BY_KEY)
            self.raise_()
        elif watched is part and event.type() in {QEvent.Type.FocusOut, QEvent.Type.MouseButtonPress}:
            self.hide()
        elif watched is part and event.type() == QEvent.Type.Resize:
            self.setGeometry(part.rect())
        return False

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setPen(QPen(C("accent"), 2))
        p.drawRect(self.rect().adjusted(1, 1, -1, -1))


def set_reading_order(root: QWidget) -> None:
    """Let Tab go through the parts of ``root`` in reading order. Scroll areas get a focus frame."""
    parts = list(in_reading_order(root))
    for part_before, next_part in pairwise(parts):
        QWidget.setTabOrder(part_before, next_part)
    for part in parts:
        if isinstance(part, QScrollArea):
            FocusRing(part)


def in_reading_order(root: QWidget) -> Iterator[QWidget]:
    """Yield every part below ``root`` that Tab stops at."""
    for part in _children(root):
        if part.focusPolicy() & Qt.FocusPolicy.TabFocus and part.focusProxy() is None:
            yield part
        if not isinstance(part, QAbstractScrollArea) or isinstance(part, QScrollArea):
            yield from in_reading_order(part)


def _children(widget: QWidget) -> Iterator[QWidget]:
    if isinstance(widget, (QSplitter, QStackedWidget)):
        children = [widget.widget(n) for n in range(widget.count())]
    elif isinstance(widget, QScrollArea):
        children = [widget.widget()]
    else:
        children = list(_laid_out(widget.layout()))
    yield from (part for part in children if part is not None)


def _laid_out(layout: QLayout | None) -> Iterator[QWidget]:
    items = [layout.itemAt(number) for number in range(layout.count())] if layout is not None else []
    for item in items:
        if item is None:
            continue
        part = item.widget()
        if part is not None:
            yield part
        else:
            yield from _laid_out(item.layout())
