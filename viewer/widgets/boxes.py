"""Rows, columns, splitters and scroll areas of widgets."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from viewer.look.theme import px
from viewer.widgets.flow import WrappedRow

Part = QWidget | int | None
"""A part of a row or column: a widget, a gap in px, or None for a stretching gap."""


def fill(layout: QBoxLayout | WrappedRow, parts: Iterable[Part]) -> None:
    """Add ``parts`` to ``layout``."""
    for part in parts:
        if part is None:
            layout.addStretch(1)
        elif isinstance(part, int):
            layout.addSpacing(px(part))
        else:
            layout.addWidget(part)


class BoxWidget(QWidget):
    """A widget with a row or column of parts; ``box`` is its layout."""

    def __init__(self, box: QBoxLayout) -> None:
        super().__init__()
        self.box = box
        self.setLayout(box)


def empty(layout: QLayout) -> None:
    """Remove everything from ``layout``. Its widgets are hidden at once and deleted later."""
    while (item := layout.takeAt(0)) is not None:
        part = item.widget()
        if part is not None:
            part.hide()
            part.deleteLater()


def row(*parts: Part, gap: int = 8, margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> BoxWidget:
    """Put ``parts`` side by side."""
    return _box(QHBoxLayout(), parts, gap, margins)


def fixed_row(*parts: Part, gap: int = 8) -> BoxWidget:
    """Put ``parts`` side by side, at their preferred width; other parts get the remaining width."""
    fixed = row(*parts, gap=gap)
    fixed.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
    return fixed


class Wrapped(QWidget):
    """A widget with a row of parts that wraps; ``box`` is its layout."""

    def __init__(self, gap: int = 8) -> None:
        super().__init__()
        self.box = WrappedRow(gap, line_gap=4)
        self.setLayout(self.box)


def wrapped_row(*parts: Part, gap: int = 8, margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Wrapped:
    """Put ``parts`` side by side, on two or more lines where they do not fit."""
    wrapped = Wrapped(gap)
    wrapped.box.setContentsMargins(*(px(m) for m in margins))
    fill(wrapped.box, parts)
    return wrapped


def column(*parts: Part, gap: int = 8, margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> BoxWidget:
    """Put ``parts`` one below the other."""
    return _box(QVBoxLayout(), parts, gap, margins)


def _box(layout: QBoxLayout, parts: Iterable[Part], gap: int, margins: tuple[int, int, int, int]) -> BoxWidget:
    box = BoxWidget(layout)
    layout.setContentsMargins(*(px(m) for m in margins))
    layout.setSpacing(px(gap))
    fill(layout, parts)
    return box


def stacked(*parts: QWidget, room: int = 1) -> QWidget:
    """Put parts one below the other without gaps. The part with number ``room`` takes the remaining height."""
    stack = QWidget()
    box = QVBoxLayout(stack)
    box.setContentsMargins(0, 0, 0, 0)
    box.setSpacing(0)
    fill(box, parts)
    box.setStretch(room, 1)
    return stack


def beside(wide_part: QWidget, narrow_part: QWidget) -> BoxWidget:
    """Put two parts side by side without a gap. ``wide_part`` takes the remaining width."""
    pair = row(wide_part, narrow_part, gap=0)
    pair.box.setStretch(0, 1)
    return pair


def splitter(vertical: bool, *parts: tuple[QWidget, int]) -> QSplitter:
    """Panes with a hairline between them. They start at the given sizes; the user may drag the hairline."""
    panes = QSplitter(Qt.Orientation.Vertical if vertical else Qt.Orientation.Horizontal)
    panes.setHandleWidth(1)
    panes.setChildrenCollapsible(False)
    for number, (part, size) in enumerate(parts):
        panes.addWidget(part)
        panes.setStretchFactor(number, size)
    panes.setSizes([size for _, size in parts])
    return panes


def scrolling(part: QWidget) -> QScrollArea:
    """Put a column into a vertical scroll area."""
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(part)
    return area
