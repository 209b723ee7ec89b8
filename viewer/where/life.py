"""What has happened to a message so far, in one line: every step leads to where it is seen."""

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
from viewer.widgets.basics import Label, Link, empty, row

if TYPE_CHECKING:
    from engine.inspection.where.evidence import WhereResult
    from engine.rules.where import LifeStep


STEPS = {
    "born": words("born"),
    "stored": words("stored"),
    "delayed": words("waits for its time"),
    "timer": words("in the timing wheel"),
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
MOST_GROUPS = 6
"""Groups that are named; all of them stand in the evidence."""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the line: its words, where it leads, all that is known of it."""

    text: str
    place: Place | None = None
    tip: str = ""


def life_words(result: WhereResult) -> list[list[Said]]:
    """The steps in order, each of one piece or, where groups have read it, of a word and their names."""
    steps, shown = [], ""
    for one in result.life:
        today = day(one.timestamp)
        when = clock(one.timestamp) if today == shown else moment(one.timestamp)
        shown = today or shown
        steps.append(list(_pieces(one, when, result)))
    return steps


def _pieces(step: LifeStep, when: str, result: WhereResult) -> Iterator[Said]:
    said = tr(STEPS.get(step.step, step.step))
    yield Said(f"{said} {when}".strip(), _place(step, result), _tip(step))
    for group in step.who[:MOST_GROUPS]:
        yield Said(group, Place("groups", name=group))
    if len(step.who) > MOST_GROUPS:
        yield Said(tr("and {n:,} more", n=len(step.who) - MOST_GROUPS), Place("groups"))


def _place(step: LifeStep, result: WhereResult) -> Place | None:
    if step.offset is not None:
        return places.log(step.offset)
    if step.step == "dispatched":
        return _way(result, "queue")
    return _way(result, "uniqueKey", "key") if step.step == "indexed" else None


def _way(result: WhereResult, *ways: str) -> Place | None:
    """Where the first of these ways that leads to the message is walked on."""
    found = [one for one in result.routes if one.by in ways]
    leads = next((one for one in found if one.verdict == "found"), found[0] if found else None)
    return place_of_route(leads, result) if leads is not None else None


def _tip(step: LifeStep) -> str:
    at = "" if step.offset is None else f"@ {number(step.offset)}"
    return " ".join(one for one in (full_moment(step.timestamp), at) if one)


class LifeLine(QWidget):
    """The steps with arrows between them. ``placeRequested(place)`` where a step is followed."""

    placeRequested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("where.life")
        self.setAccessibleName(tr("Its life"))
        self._line = Flow(6)
        self.setLayout(self._line)

    def show_result(self, result: WhereResult | None) -> None:
        """The life of another message; nothing where none is told."""
        empty(self._line)
        steps = life_words(result) if result is not None else []
        for at, pieces in enumerate(steps):
            begin = [Label("→", 12, "text3")] if at else []
            self._line.addWidget(row(*begin, *map(self._part, pieces[:2]), gap=6))  # no line ends with an arrow
            for said in pieces[2:]:
                self._line.addWidget(self._part(said))
        self.setAccessibleDescription(" → ".join(" ".join(said.text for said in pieces) for pieces in steps))
        self.setVisible(bool(steps))
        self.updateGeometry()

    def _part(self, said: Said) -> Label:
        if said.place is None:
            made = Label(said.text, 12, "text2")
        else:
            made = Link(said.text)
            made.clicked.connect(partial(self.placeRequested.emit, said.place))
        made.setToolTip(said.tip)
        return made


class Flow(QLayout):
    """Lays its parts out from left to right, each as wide as it wants to be, at most as wide as a line."""

    def __init__(self, gap: int = 8, line_gap: int = 2) -> None:
        super().__init__()
        self._gap, self._line_gap = gap, line_gap
        self._parts: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        """One more part, the last."""
        self._parts.append(item)

    def count(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """The part of that number."""
        return self._parts[index] if 0 <= index < len(self._parts) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """The same, which is no part any more."""
        return self._parts.pop(index) if 0 <= index < len(self._parts) else None

    def expandingDirections(self) -> Qt.Orientation:
        """None: what is left of a line stays empty."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Fewer lines where there is more room."""
        return True

    def heightForWidth(self, width: int) -> int:
        """All lines at that width."""
        return self._place(QRect(0, 0, width, 0), really=False)

    def sizeHint(self) -> QSize:
        """As narrow as may be: it takes the width that it is given."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """One line."""
        return QSize(0, max((one.sizeHint().height() for one in self._parts), default=0))

    def setGeometry(self, rect: QRect) -> None:
        """Put the parts there."""
        super().setGeometry(rect)
        self._place(rect, really=True)

    def _place(self, rect: QRect, *, really: bool) -> int:
        """Go through the lines; their height together."""
        at, line = QPoint(rect.topLeft()), 0
        for part in self._parts:
            wanted = part.sizeHint().boundedTo(QSize(max(1, rect.width()), 1 << 20))
            if at.x() > rect.x() and at.x() + wanted.width() > rect.x() + rect.width():
                at, line = QPoint(rect.x(), at.y() + line + px(self._line_gap)), 0
            if really:
                part.setGeometry(QRect(at, wanted))
            at.setX(at.x() + wanted.width() + px(self._gap))
            line = max(line, wanted.height())
        return at.y() + line - rect.y()
