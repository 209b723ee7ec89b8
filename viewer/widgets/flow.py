"""Layouts that wrap: parts from left to right, the next line below where the width ends."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QSizePolicy, QSpacerItem, QWidget, QWidgetItem

from viewer.look.theme import px


class Flow(QLayout):
    """Layout that places its parts from left to right and wraps lines; each part has its preferred width."""

    def __init__(self, gap: int = 8, line_gap: int = 2) -> None:
        super().__init__()
        self._gap, self._line_gap = gap, line_gap
        self._parts: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        """Append a part."""
        self._parts.append(item)

    def count(self) -> int:
        """Return the number of parts."""
        return len(self._parts)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return the part with this index, or None."""
        return self._parts[index] if 0 <= index < len(self._parts) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove and return the part with this index, or return None."""
        return self._parts.pop(index) if 0 <= index < len(self._parts) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Expand in no direction: the space after the last part of a line stays empty."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Return True: wider layouts need fewer lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines at this width."""
        return self._place(QRect(0, 0, width, 0), apply=False)

    def sizeHint(self) -> QSize:
        """Return the minimum size: the layout takes whatever width it gets."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the height of one line."""
        return QSize(0, max((part.sizeHint().height() for part in self._parts), default=0))

    def setGeometry(self, rect: QRect) -> None:
        """Lay the parts out within ``rect``."""
        super().setGeometry(rect)
        self._place(rect, apply=True)

    def _place(self, rect: QRect, *, apply: bool) -> int:
        """Lay out the lines, moving the parts if ``apply``; return the height of all lines."""
        position, line_height = QPoint(rect.topLeft()), 0
        for part in self._parts:
            part_size = part.sizeHint().boundedTo(QSize(max(1, rect.width()), 1 << 20))
            if position.x() > rect.x() and position.x() + part_size.width() > rect.x() + rect.width():
                position, line_height = QPoint(rect.x(), position.y() + line_height + px(self._line_gap)), 0
            if apply:
                part.setGeometry(QRect(position, part_size))
            position.setX(position.x() + part_size.width() + px(self._gap))
            line_height = max(line_height, part_size.height())
        return position.y() + line_height - rect.y()


class WrappedRow(Flow):
    """A row that becomes two or more lines where its parts do not fit at their minimum width.

    Parts grow up to their preferred width; those that expand, and stretching gaps, share what is left of a line.
    ``line_height`` is in px at 100 %; without one a line is as high as its highest part. The widget gets the height of
    its lines.
    """

    def __init__(self, gap: int = 8, line_gap: int = 2, line_height: int = 0) -> None:
        super().__init__(gap, line_gap)
        self._line_height = line_height

    def addStretch(self, _stretch: int = 1) -> None:
        """Append a gap that takes the remaining width of the line."""
        self.addItem(QSpacerItem(0, 0, QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum))

    def addSpacing(self, width: int) -> None:
        """Append a gap. It is left out at the beginning of a line."""
        self.addItem(QSpacerItem(width, 0, QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Minimum))

    def insertWidget(self, index: int, part: QWidget) -> None:
        """Add a part before the part with this index."""
        self.addChildWidget(part)
        self._parts.insert(index, QWidgetItem(part))
        self.invalidate()

    def sizeHint(self) -> QSize:
        """Return the size of all parts on one line."""
        shown = self._shown()
        width = sum(part.sizeHint().width() for part in shown) + self._gaps(shown)
        return self._with_margins(width, self._height(shown))

    def minimumSize(self) -> QSize:
        """Return the size of the widest part."""
        shown = self._shown()
        return self._with_margins(max((_least(part) for part in shown), default=0), self._height(shown))

    def setGeometry(self, rect: QRect) -> None:
        """Lay the parts out within ``rect``, and give the widget the height of the lines."""
        super().setGeometry(rect)
        widget, height = self.parentWidget(), self.heightForWidth(rect.width())
        if widget is not None and not (widget.minimumHeight() == widget.maximumHeight() == height):
            widget.setFixedHeight(height)

    def _with_margins(self, width: int, height: int) -> QSize:
        margins = self.contentsMargins()
        return QSize(width + margins.left() + margins.right(), height + margins.top() + margins.bottom())

    def _shown(self) -> list[QLayoutItem]:
        return [part for part in self._parts if part.spacerItem() is not None or not part.isEmpty()]

    def _height(self, line: list[QLayoutItem]) -> int:
        return px(self._line_height) or max((part.sizeHint().height() for part in line), default=0)

    def _gaps(self, line: list[QLayoutItem]) -> int:
        return px(self._gap) * max(0, sum(part.spacerItem() is None for part in line) - 1)

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        """Return the parts of each line: as many as fit at their minimum width."""
        lines: list[list[QLayoutItem]] = [[]]
        for part in self._shown():
            line = [*lines[-1], part]
            if lines[-1] and sum(_least(widget) for widget in line) + self._gaps(line) > width:
                lines.append([])
            if lines[-1] or part.spacerItem() is None or len(lines) == 1:
                lines[-1].append(part)
        return lines

    def _place(self, rect: QRect, *, apply: bool) -> int:
        margins = self.contentsMargins()
        inner = rect.marginsRemoved(margins)
        y = inner.y()
        for number, line in enumerate(self._lines(inner.width())):
            y += px(self._line_gap) if number else 0
            height = self._height(line)
            if apply:
                self._place_line(line, QRect(inner.x(), y, inner.width(), height))
            y += height
        return y + margins.bottom() - rect.y()

    def _place_line(self, line: list[QLayoutItem], rect: QRect) -> None:
        widths = [_least(part) for part in line]
        spare = rect.width() - sum(widths) - self._gaps(line)
        for number, part in enumerate(line):
            growth = max(0, min(spare, part.sizeHint().width() - widths[number]))
            widths[number] += growth
            spare -= growth
        growing = [number for number, part in enumerate(line) if _expands(part)]
        for turn, number in enumerate(growing):
            share = max(0, spare) // (len(growing) - turn)
            share = min(share, line[number].maximumSize().width() - widths[number])
            widths[number] += share
            spare -= share
        x, follows = rect.x(), False
        for part, width in zip(line, widths, strict=True):
            if part.spacerItem() is None:
                x += px(self._gap) if follows else 0
                follows = True
                part.setGeometry(QRect(x, rect.y(), width, rect.height()))
            x += width


def _least(part: QLayoutItem) -> int:
    return int(part.minimumSize().width())


def _expands(part: QLayoutItem) -> bool:
    return bool(part.expandingDirections() & Qt.Orientation.Horizontal)
