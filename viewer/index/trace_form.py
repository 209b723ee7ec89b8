"""The question of a trace: topic, key, window of time, how many matches at most; wrong input is said at its field.

Then what was found, in words: topic and key → key text → hash → slot → first byte of the slot, window and result as one
readable line, counts as chips, the status bar's sentence, the equal command.
"""

from __future__ import annotations

import shlex

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCompleter, QHBoxLayout, QLineEdit, QSizePolicy

from viewer.index.hash_strip import StripPart
from viewer.index.trace_lanes import Answer, Question
from viewer.look.assets import tr
from viewer.look.formats import clock, day
from viewer.look.theme import follow, px
from viewer.runtime import places
from viewer.runtime.places import parse_number, parse_time
from viewer.widgets.basics import Button, Field, Label, Paper, fill
from viewer.widgets.row_commands import Mark, step_mark


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


_CHIPS = (
    ("match", "ok", "1 match", "{n:,} matches"),
    ("collision", "warn", "1 collision", "{n:,} collisions"),
    ("gone", "error", "1 gone", "{n:,} gone"),
    ("loop", "loop", "1 loop", "{n:,} loops"),
    ("beyondCount", "error", "1 beyond count", "{n:,} beyond count"),
)


def strip_parts(question: Question | None, answer: Answer | None = None) -> list[StripPart]:
    """The way from the key to its slot as far as it is known."""
    if question is None:
        return [StripPart(tr("key text"), tr("topic#key, as RocketMQ hashes it"), "text3", code=False)]
    parts = [
        StripPart(tr("key text"), question.text, mark=_trace_words_mark(question, "keyText", question.text)),
        StripPart(tr("Java hash, made positive"), f"{question.key_hash:,}", follows=True,
                  mark=_trace_words_mark(question, "javaHash", str(question.key_hash))),
    ]  # fmt: skip
    if answer is not None and answer.slots:
        slot = tr("slot {slot:,}", slot=question.key_hash % answer.slots)
        marks = [
            _trace_words_mark(question, "slot", str(question.key_hash % answer.slots), slot),
            _trace_words_mark(question, "slotPosition", str(answer.slot_position)),
        ]
        parts.append(StripPart(tr("mod {slots:,}", slots=answer.slots), slot, "accent", follows=True, mark=marks[0]))
        place = f"{answer.slot_position:,}"
        parts.append(StripPart(tr("first byte of the slot"), place, follows=True, mark=marks[1]))
    if question.begin is not None or question.end is not None:
        span = f"{_trace_words_time(question.begin)} – {_trace_words_time(question.end)}"
        parts.append(StripPart(tr("window"), span, mark=_trace_words_mark(question, "window", span)))
    if answer is not None:
        form = "1 match in {steps:,} steps" if len(answer.matches) == 1 else "{n:,} matches in {steps:,} steps"
        found = tr(form, n=len(answer.matches), steps=len(answer.steps))
        if answer.passed_over:
            found += tr(", {n:,} files left out", n=answer.passed_over)
        role = "ok" if answer.matches else "text"
        parts.append(
            StripPart(tr("found"), found, role, code=False, mark=_trace_words_mark(question, "matches", found))
        )
    return parts


def _trace_words_mark(question: Question, field: str, value: str, words: str = "") -> Mark:
    link = places.trace(question.topic, question.key)
    return step_mark(field, question.topic, question.key, link, value, words or value)


def verdict_links(answer: Answer) -> list[tuple[str, str, int]]:
    """(shape, words with the count, number of its first step) of every verdict that is worth a link."""
    found = []
    for verdict, shape, one, many in _CHIPS:
        steps = [step.step for step in answer.steps if step.verdict == verdict and step.kind == "entry"]
        if steps:
            found.append((shape, tr(one) if len(steps) == 1 else tr(many, n=len(steps)), steps[0]))
    return found


def sentence(answer: Answer) -> str:
    """The result for the status bar; says whether it is all."""
    parts = [
        tr("Trace of {topic} / {key}", topic=answer.question.topic, key=answer.question.key),
        tr("{n:,} steps", n=len(answer.steps)),
        tr("1 match") if len(answer.matches) == 1 else tr("{n:,} matches", n=len(answer.matches)),
    ]
    loops = [step.file for step in answer.steps if step.verdict == "loop"]
    if loops:
        parts.append(tr("chain in {file} runs in a circle: entries it once led to may be missing", file=loops[0]))
    complete = answer.end is not None and answer.end.complete and not answer.cut
    parts.append(tr("complete") if complete else tr("not complete"))
    return " · ".join(parts)


def command_of(question: Question, path: str) -> str:
    """The command that asks the same."""
    parts = ["storescope", "trace", path]
    if question.begin is not None:
        parts += ["--begin", str(question.begin)]
    if question.end is not None:
        parts += ["--end", str(question.end)]
    parts += ["--max", str(question.most), "--", question.topic, question.key]
    return shlex.join(parts)


def _trace_words_time(ms: int | None) -> str:
    return "…" if ms is None else f"{day(ms)[5:]} {clock(ms)[:8]}"
