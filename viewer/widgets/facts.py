"""Facts about the selection, one a line: a grey name, the value as stored, a grey note. Places are links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from viewer.look.theme import px
from viewer.widgets.basics import ElidedLine, Label, Link
from viewer.widgets.boxes import BoxWidget, empty, row

MAX_UNBROKEN_CHARACTERS = 44
"""Longest value without spaces that is shown in full. A longer one is shortened, and its tool tip has all of it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of facts. ``place`` makes the value a link, ``role`` is its colour, ``code`` selects the monospaced
    font.
    """

    name: str
    value: str
    note: str = ""
    role: str = "text"
    place: object = None
    code: bool = True


class Facts(QWidget):
    """Lines of facts with their names in one column. A clicked link emits ``placeRequested(place)``."""

    placeRequested = Signal(object)

    def __init__(self, name_width: int = 84, *, notes_below: bool = False) -> None:
        super().__init__()
        self._name_width = name_width
        self._notes_below = notes_below
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(px(3))
        self._shown: tuple[Fact, ...] = ()
        self._labels: list[tuple[Label, ...]] = []
        """Value and note of each line. The lines stay if only texts change, which happens up to ten times a second."""

    def show_facts(self, facts: Sequence[Fact]) -> None:
        """Replace the facts. The labels are reused if only texts differ."""
        if tuple(facts) == self._shown:
            return
        previous, self._shown = self._shown, tuple(facts)
        if not self._notes_below and [_shape(fact) for fact in previous] == [_shape(fact) for fact in facts]:
            for line, fact in zip(self._labels, facts, strict=True):
                for label, text in zip(line, (fact.value, fact.note), strict=False):
                    label.setText(text)
            self.setAccessibleDescription("; ".join(self.texts()))
            return
        self._labels.clear()
        empty(self._lines)
        for fact in facts:
            below = self._notes_below and bool(fact.note)
            self._lines.addWidget(self._line(replace(fact, note="") if below else fact))
            if below:
                note = Label(fact.note, 12, "text3", wrap=True)
                note.setContentsMargins(px(self._name_width + 8), 0, 0, px(3))
                self._lines.addWidget(note)
        self.setAccessibleDescription("; ".join(self.texts()))

    def texts(self) -> list[str]:
        """Return the displayed texts, line by line."""
        return [f"{fact.name}: {fact.value} {fact.note}".strip() for fact in self._shown]

    def _line(self, fact: Fact) -> QWidget:
        name = Label(fact.name, 12, "text3", wrap=True)
        name.setFixedWidth(px(self._name_width) if fact.name else 0)
        name.setAlignment(Qt.AlignmentFlag.AlignTop)
        if fact.place is not None:
            wrap = not fact.code and not fact.note
            link = Link(fact.value, 12, code=fact.code, wrap=wrap)
            link.clicked.connect(lambda place=fact.place: self.placeRequested.emit(place))
            line_row = self._row(name, link, fact)
            if wrap:
                line_row.box.setStretch(1, 1)
            else:
                link.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
            return line_row
        if len(fact.value) > MAX_UNBROKEN_CHARACTERS and " " not in fact.value:
            long = ElidedLine(fact.value, 12, fact.role, code=True)
            long.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            line = self._row(name, long, replace(fact, code=False))  # the value takes the whole width
            line.box.setStretch(1, 1)
            return line
        wrap = not fact.code and not fact.note
        value = Label(fact.value, 12, fact.role, code=fact.code, wrap=wrap, select=True)
        if not wrap:
            value.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        line_row = self._row(name, value, fact)
        if wrap:
            line_row.box.setStretch(1, 1)
        return line_row

    def _row(self, name: Label, value: Label, fact: Fact) -> BoxWidget:
        notes = self._note(fact)
        self._labels.append((value, *(note for note in notes if isinstance(note, Label))))
        return row(name, value, *notes)

    def _note(self, fact: Fact) -> tuple[QWidget | None, ...]:
        if not fact.note:
            return (None,) if fact.code else ()
        note = ElidedLine(fact.note, 12, "text3")
        note.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        return (note,)


def _shape(fact: Fact) -> tuple[object, ...]:
    """Return what decides the widgets of a line, apart from its texts."""
    long = len(fact.value) > MAX_UNBROKEN_CHARACTERS and " " not in fact.value
    return fact.name, fact.role, fact.place, fact.code, bool(fact.note), long
