"""Facts about the chosen thing: a quiet name, the value as it stands in the store, a quiet remark; places are links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from viewer.look.theme import px
from viewer.widgets.basics import Boxed, Elided, Label, Link, empty, row

UNBROKEN = 44
"""Letters of a value without a blank that still fit beside its name.

Longer ones are cut, the tool tip has them whole.
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: ``place`` makes the value a link; ``role`` colours it; ``code`` is False for words."""

    name: str
    value: str
    note: str = ""
    role: str = "text"
    place: object = None
    code: bool = True


class Facts(QWidget):
    """Lines of facts, names in one column. ``placeRequested(place)`` when a link is followed."""

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
        """Value and note of each line: where only texts change, and they may ten times a second, the lines stay."""

    def show_facts(self, facts: Sequence[Fact]) -> None:
        """Show these instead."""
        if tuple(facts) == self._shown:
            return
        before, self._shown = self._shown, tuple(facts)
        if not self._notes_below and [_shape(fact) for fact in before] == [_shape(fact) for fact in facts]:
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
        """What is shown, line by line."""
        return [f"{fact.name}: {fact.value} {fact.note}".strip() for fact in self._shown]

    def _line(self, fact: Fact) -> QWidget:
        name = Label(fact.name, 12, "text3", wrap=True)
        name.setFixedWidth(px(self._name_width) if fact.name else 0)
        name.setAlignment(Qt.AlignmentFlag.AlignTop)
        if fact.place is not None:
            link = Link(fact.value, 12, code=fact.code)
            link.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
            link.clicked.connect(lambda place=fact.place: self.placeRequested.emit(place))
            return self._row(name, link, fact)
        if len(fact.value) > UNBROKEN and " " not in fact.value:
            long = Elided(fact.value, 12, fact.role, code=True)
            long.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            line = self._row(name, long, replace(fact, code=False))  # it has all the room: nothing stretches behind it
            line.box.setStretch(1, 1)
            return line
        wrap = not fact.code and not fact.note
        value = Label(fact.value, 12, fact.role, code=fact.code, wrap=wrap, select=True)
        if not wrap:
            value.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        made = self._row(name, value, fact)
        if wrap:
            made.box.setStretch(1, 1)
        return made

    def _row(self, name: Label, value: Label, fact: Fact) -> Boxed:
        notes = self._note(fact)
        self._labels.append((value, *(note for note in notes if isinstance(note, Label))))
        return row(name, value, *notes)

    def _note(self, fact: Fact) -> tuple[QWidget | None, ...]:
        if not fact.note:
            return () if not fact.code and fact.place is None else (None,)
        note = Elided(fact.note, 12, "text3")
        note.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        return (note,)


def _shape(fact: Fact) -> tuple[object, ...]:
    """What a line is made by, whatever its texts are."""
    long = len(fact.value) > UNBROKEN and " " not in fact.value
    return fact.name, fact.role, fact.place, fact.code, bool(fact.note), long
