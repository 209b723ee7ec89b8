"""The question of a trace: topic, key, window of time, how many matches at most; wrong input is said at its field."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCompleter, QHBoxLayout, QLineEdit, QSizePolicy

from viewer.index.trace_lanes import Question
from viewer.look.assets import tr
from viewer.look.theme import follow, px
from viewer.runtime.places import parse_number, parse_time
from viewer.widgets.basics import Button, Field, Label, Paper, fill


class TraceForm(Paper):
    """``asked(question)`` on the button and on Enter in any field; ``copyAsked()`` for the equal command."""

    asked = Signal(object)
    copyAsked = Signal()

    def __init__(self) -> None:
        super().__init__("pane", ("bottom",))
        self.topic = self._field("trace.topic", tr("Topic"), 136)
        self.key = self._field("trace.key", tr("Key or unique key"), 0)
        self.key.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.key.setMinimumWidth(px(96))
        self.begin = self._field("trace.begin", tr("any time"), 130)
        self.end = self._field("trace.end", tr("now"), 130)
        self.most = self._field("trace.max", "32", 48)
        names = {self.begin: tr("From"), self.end: tr("to"), self.most: tr("At most")}
        for field, name in names.items():
            field.setAccessibleName(name)
        button = Button(tr("Trace"), "primary")
        button.setObjectName("trace.start")
        button.clicked.connect(self.ask)
        command = Button(tr("Copy as command"), "flat")
        command.clicked.connect(self.copyAsked)
        lay = QHBoxLayout(self)
        lay.setContentsMargins(px(12), 0, px(8), 1)
        lay.setSpacing(px(8))
        fill(lay, (
            _name(tr("Topic")), self.topic, _name(tr("Key")), self.key, _name(tr("From")), self.begin, _name(tr("to")),
            self.end,
            _name(tr("At most")), self.most, button, command,
        ))  # fmt: skip
        self._fit()
        follow(self, self._fit)

    def offer_topics(self, topics: list[str]) -> None:
        """Complete these while a topic is typed."""
        completer = QCompleter(topics, self.topic)
        completer.setCaseSensitivity(completer.caseSensitivity().CaseInsensitive)
        self.topic.setCompleter(completer)

    def show_question(self, topic: str, key: str) -> None:
        """Put a topic and key into the fields; the window is opened wide."""
        self.topic.setText(topic)
        self.key.setText(key)
        self.begin.clear()
        self.end.clear()

    def show_window(self, begin: int, end: int) -> None:
        """Put the window into the fields, in ms."""
        self.begin.setText(str(begin))
        self.end.setText(str(end))

    def clear(self) -> None:
        """Another store: nothing is asked, nothing is marked."""
        for field in (self.topic, self.key, self.begin, self.end, self.most):
            field.clear()
            _mark(field, "")

    def ask(self) -> None:
        """Emit the question, or mark the field that cannot be understood."""
        question = self.question()
        if question is not None:
            self.asked.emit(question)

    def question(self) -> Question | None:
        """What the fields ask; None where one of them cannot be understood (it is marked and says why)."""
        for field in (self.topic, self.key, self.begin, self.end, self.most):
            _mark(field, "")
        try:
            return self._read()
        except _Wrong as wrong:
            _mark(wrong.field, wrong.complaint)
            return None

    def _read(self) -> Question:
        topic, key = self.topic.text().strip(), self.key.text().strip()
        if not topic or not key:
            raise _Wrong(self.topic if not topic else self.key, tr("Expected a text: RocketMQ hashes topic#key."))
        begin, end = _time(self.begin), _time(self.end)
        if begin is not None and end is not None and begin > end:
            raise _Wrong(self.end, tr("Expected a time that is not before the first one."))
        most = parse_number(self.most.text()) if self.most.text().strip() else 32
        if most is None or not 1 <= most <= 1_000_000:
            raise _Wrong(self.most, tr("Expected a number from 1 to 1,000,000."))
        return Question(topic, key, begin, end, most)

    def _field(self, name: str, hint: str, width: int) -> Field:
        made = Field(hint, code=True, width=width)
        made.setObjectName(name)
        made.returnPressed.connect(self.ask)
        return made

    def _fit(self) -> None:
        self.setFixedHeight(px(42))


class _Wrong(Exception):
    """A field cannot be understood."""

    def __init__(self, field: QLineEdit, complaint: str) -> None:
        super().__init__(complaint)
        self.field = field
        self.complaint = complaint


def _time(field: QLineEdit) -> int | None:
    """Milliseconds; None for an empty field, which leaves the window open."""
    text = field.text().strip()
    if not text:
        return None
    found = parse_time(text)
    if found is None:
        found = parse_number(text)
    if found is None:
        raise _Wrong(field, tr("Expected a time such as 2026-11-20 09:41:07, or milliseconds."))
    return found


def _name(text: str) -> Label:
    return Label(text, 12, "text3")


def _mark(field: QLineEdit, complaint: str) -> None:
    """Frame a field that cannot be understood; its tool tip says what was expected."""
    field.setProperty("state", "error" if complaint else "")
    field.setToolTip(complaint)
    field.setAccessibleDescription(complaint)
    field.style().unpolish(field)
    field.style().polish(field)
    if complaint:
        field.setFocus()
