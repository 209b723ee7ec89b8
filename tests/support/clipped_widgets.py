"""Buttons, labels and fields of a window that are not completely visible: narrower than their words, or cut off by a
parent.
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
from viewer.widgets.basics import Chip, ElidedLine
from viewer.widgets.record_state import ElidedSentence
from viewer.widgets.word_tabs import WordTabs

LOOKED_AT = (QAbstractButton, QLabel, QLineEdit, QComboBox, WordTabs, Chip)
SLACK = 1
"""Px by which a rounded place may be off."""


def clipped_widgets(window: QWidget) -> list[str]:
    """Return a line for each part that is cut, with the missing px; none if everything is visible."""
    texts = []
    for part in window.findChildren(QWidget):
        if not isinstance(part, LOOKED_AT) or not part.isVisible() or part.size().isEmpty():
            continue
        if isinstance(part.parentWidget(), (QComboBox, QLineEdit)):
            continue
        width, height = _shown(part, window)
        missing_width, missing_height, missing_for_words = (
            part.width() - width,
            part.height() - height,
            _needed_width(part) - part.width(),
        )
        if missing_width > SLACK:
            texts.append(f"{_name(part)}: {missing_width} px lie outside of {_name(_cutter(part, window))}")
        elif missing_for_words > SLACK:
            texts.append(f"{_name(part)}: {missing_for_words} px narrower than its words")
        elif missing_height > SLACK and not _scrolls(part, window):
            texts.append(f"{_name(part)}: {missing_height} px lie below {_name(_cutter(part, window))}")
    return texts


def _needed_width(part: QWidget) -> int:
    """Return the px that its words need; 0 for parts that shorten their text visibly."""
    if isinstance(part, (ElidedLine, CheckList, ElidedSentence)) or (isinstance(part, QLabel) and part.wordWrap()):
        return 0
    if isinstance(part, (QLineEdit, QComboBox)) or (isinstance(part, QAbstractButton) and not part.text()):
        return 0
    return part.sizeHint().width()


def _shown(part: QWidget, window: QWidget) -> tuple[int, int]:
    """Return width and height of the part that is inside all of its parents."""
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
    """Return the innermost parent that is too small for the part."""
    position = part.parentWidget()
    while position is not None and position is not window:
        if not position.rect().contains(QRect(part.mapTo(position, QPoint(0, 0)), part.size())):
            return position
        position = position.parentWidget()
    return window


def _scrolls(part: QWidget, window: QWidget) -> bool:
    """Return True if the user can scroll vertically to the rest of it."""
    position = part.parentWidget()
    while position is not None and position is not window:
        if isinstance(position, QScrollArea | QAbstractScrollArea):
            return True
        position = position.parentWidget()
    return False


def _name(part: QWidget) -> str:
    """Return its object name, its words, its class and its position."""
    output = getattr(part, "text", lambda: "")
    text = str(output()) if callable(output) else ""
    inside, position = "", part
    while position is not None and not inside:
        inside, position = position.objectName(), position.parentWidget()
    return f"{type(part).__name__} {text!r} in {inside}"
