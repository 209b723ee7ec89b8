"""Where windows stand: beside each other and inside the screen, never over its edge."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QRect
from PySide6.QtWidgets import QWidget

SMALLEST = (900, 600)
TIED_SMALLEST = (600, 480)
"""Of two windows that are tied: they stand side by side on any screen."""
STEP = 32
"""Px by which a window that has no room beside the first stands right of and below it."""


def inside(frame: QRect, room: QRect) -> QRect:
    """``frame`` no larger than ``room``, and moved into it."""
    made = QRect(frame)
    made.setSize(frame.size().boundedTo(room.size()))
    made.moveLeft(min(max(made.left(), room.left()), room.right() + 1 - made.width()))
    made.moveTop(min(max(made.top(), room.top()), room.bottom() + 1 - made.height()))
    return made


def margins_of(window: QWidget) -> QMargins:
    """What the frame of a window takes around it."""
    frame, own = window.frameGeometry(), window.geometry()
    return QMargins(
        own.left() - frame.left(), own.top() - frame.top(), frame.right() - own.right(), frame.bottom() - own.bottom()
    )


def beside(first: QRect, room: QRect, *, tied: bool) -> tuple[QRect, QRect]:
    """The frames of the first window and of one beside it. Tied windows share the screen: side by side, or one over
    the other where it is higher than wide. Else the first stays, and the second takes the free side, or stands a step
    further, inside the screen.
    """
    first = inside(first, room)
    if tied and room.width() >= 2 * TIED_SMALLEST[0]:
        half = room.width() // 2
        left = QRect(room.left(), room.top(), half, room.height())
        return left, left.translated(half, 0)
    if tied and room.height() >= 2 * TIED_SMALLEST[1]:
        half = room.height() // 2
        upper = QRect(room.left(), room.top(), room.width(), half)
        return upper, upper.translated(0, half)
    after = room.right() - first.right()
    before = first.left() - room.left()
    if max(after, before) >= SMALLEST[0]:
        wide = min(max(after, before), first.width())
        left_edge = first.right() + 1 if after >= before else first.left() - wide
        return first, QRect(left_edge, first.top(), wide, first.height())
    second = QRect(first.topLeft(), first.size()).translated(STEP, STEP)
    shrunk = second.intersected(room)
    if shrunk.width() >= SMALLEST[0] and shrunk.height() >= SMALLEST[1]:
        return first, shrunk
    return first, inside(second, room)
