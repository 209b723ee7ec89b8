"""The form of a trace: key, topic, time window, maximum number of matches; errors appear below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCompleter, QLineEdit, QSizePolicy, QVBoxLayout

from engine.codec.index_keys import KEY, TAG, TAG_PREFIX, UNIQUE_KEY, key_text
from viewer.index.trace_lanes import TraceQuery
from viewer.look.assets import tr
from viewer.look.theme import follow, px
from viewer.pane.view_tabs import CHAIN, MESSAGE, SearchTabs
from viewer.runtime.places import parse_number, parse_time
from viewer.widgets.basics import Button, ElidedLine, Field, Label, ThemedPanel
from viewer.widgets.boxes import fill, fixed_row, wrapped_row
from viewer.widgets.choices import ChoiceField

DEFAULT_MATCHES = 32
"""Maximum matches of a trace if the field is empty."""


WIDE = 1180
"""Px at 100 % from which the form has room for the number of matches, and the button that copies the command."""


class TraceForm(ThemedPanel):
    """The form.

    Emits ``traceRequested(question)`` on the button and on Enter in a field, ``copyRequested()`` for the same command,
    ``messageRequested()`` to search the text of the field as a message, ``conversationRequested()`` to follow it.
    """

    traceRequested = Signal(object)
    copyRequested = Signal()
    messageRequested = Signal()
    conversationRequested = Signal()

    def __init__(self) -> None:
        super().__init__("pane", ("bottom",))
        self.topic = self._field("trace.topic", tr("Topic"), 136)
        self.key = self._field("trace.key", tr("Key or unique key"), 0)
        self.index_type = ChoiceField()
        self.index_type.setObjectName("trace.type")
        self.index_type.setAccessibleName(tr("What is looked for"))
        for words, index_type in (
            (tr("Any key"), None),
            (tr("Key"), KEY),
            (tr("Unique key"), UNIQUE_KEY),
            (tr("Tag"), TAG),
        ):
            self.index_type.addItem(words, index_type)
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
        self._command = Button(tr("Copy as command"), "flat")
        self._command.clicked.connect(self.copyRequested)
        tabs = SearchTabs("trace.tabs", CHAIN)
        tabs.otherViewChosen.connect(self._open_other_tab)
        self.index_type.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToContents)
        max_label = _name(tr("At most"))
        line = wrapped_row(
            tabs,
            self.index_type,
            self.key,
            fixed_row(_name(tr("Topic")), self.topic),
            fixed_row(_name(tr("From")), self.begin),
            fixed_row(_name(tr("to")), self.end),
            max_label,
            self.most,
            button,
            self._command,
        )
        self._where_wide = (max_label, self.most, self._command)
        self._fault = ElidedLine("", 12, "error")
        self._fault.setObjectName("trace.fault")
        self._fault.hide()
        lay = QVBoxLayout(self)
        lay.setContentsMargins(px(12), px(7), px(8), px(7))
        lay.setSpacing(px(3))
        fill(lay, (line, self._fault))
        self._fit()
        follow(self, self._fit)

    def _open_other_tab(self, key: str) -> None:
        (self.messageRequested if key == MESSAGE else self.conversationRequested).emit()

    def offer_topics(self, topics: list[str]) -> None:
        """Complete these while a topic is typed."""
        completer = QCompleter(topics, self.topic)
        completer.setCaseSensitivity(completer.caseSensitivity().CaseInsensitive)
        self.topic.setCompleter(completer)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrow form leaves the command to the menu, and the number of matches as it was."""
        super().resizeEvent(event)
        for part in self._where_wide:
            part.setVisible(self.width() >= px(WIDE))

    def show_question(self, topic: str, key: str) -> None:
        """Put a topic and a key, or ``T#`` and tags, into the fields; the window is opened wide."""
        if key != key_text(self.key.text().strip(), self.index_type.currentData()):
            is_tag = key.startswith(TAG_PREFIX)
            self.index_type.setCurrentIndex(self.index_type.findData(TAG) if is_tag else 0)
            self.key.setText(key.removeprefix(TAG_PREFIX) if is_tag else key)
        self.topic.setText(topic)
        self.begin.clear()
        self.end.clear()

    def show_window(self, begin: int, end: int) -> None:
        """Put the window into the fields, in ms."""
        self.begin.setText(str(begin))
        self.end.setText(str(end))

    def clear(self) -> None:
        """Clear the fields and their errors, for another store."""
        for field in self._fields:
            field.clear()
        self.index_type.setCurrentIndex(0)
        self._show_faults([])

    def ask(self) -> None:
        """Emit the question, or mark the field that cannot be understood."""
        question = self.question()
        if question is not None:
            self.traceRequested.emit(question)

    def question(self) -> TraceQuery | None:
        """Return the question in the fields. None if a field cannot be understood: it is marked, and the reason is
        shown below.
        """
        faults = list(self._faults())
        self._show_faults(faults)
        if faults:
            return None
        max_matches = parse_number(self.most.text()) if self.most.text().strip() else DEFAULT_MATCHES
        assert max_matches is not None
        return TraceQuery(
            self.topic.text().strip(),
            self.key.text().strip(),
            _time_of(self.begin),
            _time_of(self.end),
            max_matches,
            index_type=self.index_type.currentData(),
        )

    def _faults(self) -> Iterator[tuple[QLineEdit, str]]:
        """Yield each invalid field, and what was expected there."""
        if not self.key.text().strip():
            yield self.key, tr("Type a key or tags.")
        if not self.topic.text().strip():
            yield self.topic, tr("Name the topic: the index holds hashes of topic#key.")
        for field in (self.begin, self.end):
            if field.text().strip() and _time_of(field) is None:
                expected = tr("Expected a time such as 2026-11-20 09:41:07, or milliseconds.")
                yield field, f"{field.accessibleName()}: {expected}"
        begin, end = _time_of(self.begin), _time_of(self.end)
        if begin is not None and end is not None and begin > end:
            yield self.end, tr("Expected a time that is not before the first one.")
        max_matches = parse_number(self.most.text()) if self.most.text().strip() else DEFAULT_MATCHES
        if max_matches is None or not 1 <= max_matches <= 1_000_000:
            yield self.most, tr("Expected a number from 1 to 1,000,000.")

    def _show_faults(self, faults: Sequence[tuple[QLineEdit, str]]) -> None:
        complaints = dict(faults)
        for field in self._fields:
            _mark(field, complaints.get(field, ""))
        self._fault.setText(" ".join(complaints.values()))
        self._fault.setVisible(bool(complaints))
        if faults:
            faults[0][0].setFocus()

    @property
    def _fields(self) -> tuple[Field, ...]:
        return self.topic, self.key, self.begin, self.end, self.most

    def focus_key(self) -> None:
        """Move the focus into the field for the key and select its text."""
        self.key.setFocus()
        self.key.selectAll()

    def _field(self, name: str, hint: str, width: int) -> Field:
        field = Field(hint, code=True, width=width)
        field.setObjectName(name)
        field.returnPressed.connect(self.ask)
        return field

    def _fit(self) -> None:
        self.setMinimumHeight(px(42))


def _time_of(field: QLineEdit) -> int | None:
    """Return milliseconds; None for an empty field, which leaves the window open, and for an invalid time."""
    text = field.text().strip()
    time = parse_time(text) if text else None
    return parse_number(text) if time is None and text else time


def _name(text: str) -> Label:
    return Label(text, 12, "text3")


def _mark(field: QLineEdit, complaint: str) -> None:
    """Frame an invalid field; its tool tip names the expected value."""
    field.setProperty("state", "error" if complaint else "")
    field.setToolTip(complaint)
    field.setAccessibleDescription(complaint)
    field.style().unpolish(field)
    field.style().polish(field)
