"""History of a message in one line; every step is a link to where it can be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from viewer.look.assets import tr, words
from viewer.look.formats import clock, day, full_moment, moment, number
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.where.work import place_of_route
from viewer.widgets.basics import Label, Link
from viewer.widgets.boxes import empty, row
from viewer.widgets.flow import Flow

if TYPE_CHECKING:
    from engine.inspection.where.evidence import WhereResult
    from engine.rules.where import HistoryStep


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


def _pieces(step: HistoryStep, time_text: str, result: WhereResult) -> Iterator[HistoryPiece]:
    word = tr(STEP_WORDS.get(step.step, step.step))
    yield HistoryPiece(f"{word} {time_text}".strip(), _place(step, result), _tip(step))
    for group in step.who[:MAX_GROUPS]:
        yield HistoryPiece(group, Place("groups", name=group))
    if len(step.who) > MAX_GROUPS:
        yield HistoryPiece(tr("and {n:,} more", n=len(step.who) - MAX_GROUPS), Place("groups"))


def _place(step: HistoryStep, result: WhereResult) -> Place | None:
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


def _tip(step: HistoryStep) -> str:
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
