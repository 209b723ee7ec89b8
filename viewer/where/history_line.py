"""History of a message in one line; every step is a link to where it can be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

from viewer.look.assets import tr, words
from viewer.look.formats import clock, day, full_moment, moment, number
from viewer.look.theme import px
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.where.work import place_of_route
from viewer.widgets.basics import Label, Link
from viewer.widgets.boxes import empty, row

if TYPE_CHECKING:
    from engine.inspection.where.evidence import WhereResult
    from engine.rules.where import LifeStep


STEP_WORDS = {
    "born": words("born"),
    "stored": words("stored"),
    "delayed": words("waits for its time"),
    "timer": words("in the timer wheel"),
    "recall": words("taken back"),
    "half": words("half message"),
    "committed": words("committed"),
    "givenUp": words("given up"),
    "retryWaiting": words("waits for a retry"),
    "retry": words("delivered again"),
    "dead": words("dead letter"),
    "other": words("in a system topic"),
    "dispatched": words("in its queue"),
    "indexed": words("in the index"),
    "consumed": words("read past by"),
}
MAX_GROUPS = 6
"""Maximum number of named groups; the evidence lists all."""


@dataclass(frozen=True, slots=True)
class HistoryPiece:
    """A piece of the line: its text, the place it leads to, a tooltip with all details."""

    text: str
    place: Place | None = None
    tip: str = ""


def history_steps(result: WhereResult) -> list[list[HistoryPiece]]:
    """Return the steps in order, each as one piece or, for groups that have read it, a word and their names."""
    steps, shown_day = [], ""
    for step in result.life:
        today = day(step.timestamp)
        time_text = clock(step.timestamp) if today == shown_day else moment(step.timestamp)
        shown_day = today or shown_day
        steps.append(list(_pieces(step, time_text, result)))
    return steps


def _pieces(step: LifeStep, time_text: str, result: WhereResult) -> Iterator[HistoryPiece]:
    word = tr(STEP_WORDS.get(step.step, step.step))
    yield HistoryPiece(f"{word} {time_text}".strip(), _place(step, result), _tip(step))
    for group in step.who[:MAX_GROUPS]:
        yield HistoryPiece(group, Place("groups", name=group))
    if len(step.who) > MAX_GROUPS:
        yield HistoryPiece(tr("and {n:,} more", n=len(step.who) - MAX_GROUPS), Place("groups"))


def _place(step: LifeStep, result: WhereResult) -> Place | None:
    if step.offset is not None:
        return places.log(step.offset)
    if step.step == "dispatched":
        return _route_place(result, "queue")
    return _route_place(result, "uniqueKey", "key") if step.step == "indexed" else None


def _route_place(result: WhereResult, *kinds: str) -> Place | None:
    """Return the place of the first route of these kinds that leads to the message, else of the first one."""
    routes = [route for route in result.routes if route.by in kinds]
    best_route = next((route for route in routes if route.verdict == "found"), routes[0] if routes else None)
    return place_of_route(best_route, result) if best_route is not None else None


def _tip(step: LifeStep) -> str:
    offset_text = "" if step.offset is None else f"@ {number(step.offset)}"
    return " ".join(part for part in (full_moment(step.timestamp), offset_text) if part)


class HistoryLine(QWidget):
    """The steps with arrows between them. Emits ``placeRequested(place)`` when a step is clicked."""

    placeRequested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("where.life")
        self.setAccessibleName(tr("Its history"))
        self._line = Flow(6)
        self.setLayout(self._line)

    def show_result(self, result: WhereResult | None) -> None:
        """Show the history of another message; hide if there is none."""
        empty(self._line)
        steps = history_steps(result) if result is not None else []
        for index, pieces in enumerate(steps):
            arrow = [Label("→", 12, "text3")] if index else []
            self._line.addWidget(
                row(*arrow, *map(self._part, pieces[:2]), gap=6)
            )  # keeps the arrow together with its first word, so that no line ends with an arrow
            for piece in pieces[2:]:
                self._line.addWidget(self._part(piece))
        self.setAccessibleDescription(" → ".join(" ".join(piece.text for piece in pieces) for pieces in steps))
        self.setVisible(bool(steps))
        self.updateGeometry()

    def _part(self, piece: HistoryPiece) -> Label:
        if piece.place is None:
            label = Label(piece.text, 12, "text2")
        else:
            label = Link(piece.text)
            label.clicked.connect(partial(self.placeRequested.emit, piece.place))
        label.setToolTip(piece.tip)
        return label


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
