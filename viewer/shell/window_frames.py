"""Sizes and positions of windows on the screen: inside it, and beside each other."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QRect
from PySide6.QtWidgets import QWidget

SMALLEST = (900, 600)
TIED_SMALLEST = (600, 480)
"""Minimum size of tied windows, which fit side by side on any screen."""
STEP = 32
"""Shift (px) to the right and down of a window that has no room beside the first."""


def inside(frame: QRect, room: QRect) -> QRect:
    """Return ``frame``, shrunk to fit into ``room`` and moved inside it."""
    fitted = QRect(frame)
    fitted.setSize(frame.size().boundedTo(room.size()))
    fitted.moveLeft(min(max(fitted.left(), room.left()), room.right() + 1 - fitted.width()))
    fitted.moveTop(min(max(fitted.top(), room.top()), room.bottom() + 1 - fitted.height()))
    return fitted


def margins_of(window: QWidget) -> QMargins:
    """Return how far a window's frame extends around it."""
    frame, inner = window.frameGeometry(), window.geometry()
    return QMargins(
        inner.left() - frame.left(),
        inner.top() - frame.top(),
        frame.right() - inner.right(),
        frame.bottom() - inner.bottom(),
    )


def beside(frame: QRect, room: QRect, *, tied: bool) -> tuple[QRect, QRect]:
    """Return the frames of a window and of a second one beside it.

    Tied windows share the screen: side by side, or one above the other if the screen is higher than wide.
    Otherwise the first window stays, and the second takes the free side. If that is too narrow, it is shifted a
    step, inside the screen.
    """
    frame = inside(frame, room)
    if tied and room.width() >= 2 * TIED_SMALLEST[0]:
        half = room.width() // 2
        left_half = QRect(room.left(), room.top(), half, room.height())
        return left_half, left_half.translated(half, 0)
    if tied and room.height() >= 2 * TIED_SMALLEST[1]:
        half = room.height() // 2
        upper_half = QRect(room.left(), room.top(), room.width(), half)
        return upper_half, upper_half.translated(0, half)
    space_right = room.right() - frame.right()
    space_left = frame.left() - room.left()
    if max(space_right, space_left) >= SMALLEST[0]:
        width = min(max(space_right, space_left), frame.width())
        left_edge = frame.right() + 1 if space_right >= space_left else frame.left() - width
        return frame, QRect(left_edge, frame.top(), width, frame.height())
    second = QRect(frame.topLeft(), frame.size()).translated(STEP, STEP)
    shrunk = second.intersected(room)
    if shrunk.width() >= SMALLEST[0] and shrunk.height() >= SMALLEST[1]:
        return frame, shrunk
    return frame, inside(second, room)
