"""Which buttons, labels and fields of a window are not wholly there: less wide than their words, or cut off by what is
around them.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QComboBox,
    QLabel,
    QLineEdit,
    QScrollArea,
    QWidget,
)

from viewer.queues.check_list import CheckList
from viewer.widgets.basics import Chip, Elided
from viewer.widgets.record_state import ElidedSentence
from viewer.widgets.word_tabs import WordTabs

LOOKED_AT = (QAbstractButton, QLabel, QLineEdit, QComboBox, WordTabs, Chip)
SLACK = 1
"""Px by which a rounded place may be off."""


def clipped_widgets(window: QWidget) -> list[str]:
    """A line for each part that is cut, with the px that are missing; none where everything is there."""
    texts = []
    for part in window.findChildren(QWidget):
        if not isinstance(part, LOOKED_AT) or not part.isVisible() or part.size().isEmpty():
            continue
        if isinstance(part.parentWidget(), (QComboBox, QLineEdit)):
            continue
        wide, high = _shown(part, window)
        missing, short, expected = part.width() - wide, part.height() - high, _needed_width(part) - part.width()
        if missing > SLACK:
            texts.append(f"{_name(part)}: {missing} px lie outside of {_name(_cutter(part, window))}")
        elif expected > SLACK:
            texts.append(f"{_name(part)}: {expected} px narrower than its words")
        elif short > SLACK and not _scrolls(part, window):
            texts.append(f"{_name(part)}: {short} px lie below {_name(_cutter(part, window))}")
    return texts


def _needed_width(part: QWidget) -> int:
    """Px that its words need; what may be shortened, and says so by itself, needs none."""
    if isinstance(part, (Elided, CheckList, ElidedSentence)) or (isinstance(part, QLabel) and part.wordWrap()):
        return 0
    if isinstance(part, (QLineEdit, QComboBox)) or (isinstance(part, QAbstractButton) and not part.text()):
        return 0
    return part.sizeHint().width()


def _shown(part: QWidget, window: QWidget) -> tuple[int, int]:
    """Width and height of what of it lies inside of everything that it lies in."""
    left, right, top, foot = 0, part.width(), 0, part.height()
    position: QWidget | None = part
    while position is not None and position is not window:
        x, y = position.x(), position.y()
        left, right, top, foot = left + x, right + x, top + y, foot + y
        position = position.parentWidget()
        if position is not None:
            left, right, top, foot = (
                max(left, 0),
                min(right, position.width()),
                max(top, 0),
                min(foot, position.height()),
            )
    return max(0, right - left), max(0, foot - top)


def _cutter(part: QWidget, window: QWidget) -> QWidget:
    """The first of its surroundings that is too small for it."""
    position = part.parentWidget()
    while position is not None and position is not window:
        if not position.rect().contains(QRect(part.mapTo(position, QPoint(0, 0)), part.size())):
            return position
        position = position.parentWidget()
    return window


def _scrolls(part: QWidget, window: QWidget) -> bool:
    """Whether one can scroll up and down to the rest of it."""
    position = part.parentWidget()
    while position is not None and position is not window:
        if isinstance(position, QScrollArea | QAbstractScrollArea):
            return True
        position = position.parentWidget()
    return False


def _name(part: QWidget) -> str:
    """Its object name, its words, its class and where it stands."""
    output = getattr(part, "text", lambda: "")
    text = str(output()) if callable(output) else ""
    inside, position = "", part
    while position is not None and not inside:
        inside, position = position.objectName(), position.parentWidget()
    return f"{type(part).__name__} {text!r} in {inside}"
