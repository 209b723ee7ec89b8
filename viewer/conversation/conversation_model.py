"""The state of the Conversation view: question, steps, and what is shown while a search runs. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from viewer.conversation.conversation_work import ConversationQuery, ConversationRow
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import moment, plain, span
from viewer.pane.event_words import CHIPS, message_text
from viewer.pane.message_columns import entry_place
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    RowAppearance,
    chip_column,
    gutter,
    number_column,
    time_column,
    topic_column,
)
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from viewer.conversation.conversation_work import ConversationAnswer

SEARCHING = words("Following the conversation")
EMPTY_HINT = words(
    "A key, a unique key, an id, an offset, or topic/queue/offset. All units of its messages are shown in the order of "
    "the log, with what happened between them."
)
STEPS = {
    "plain": Chip("ok", words("stored")),
    "delayed": Chip("chat", words("waits for its time")),
    "timer": Chip("chat", words("in the timer wheel")),
    "recall": Chip("note", words("taken back")),
    "half": Chip("chat", words("half message")),
    "committed": Chip("ok", words("committed")),
    "givenUp": Chip("warn", words("given up")),
    "retryWaiting": Chip("warn", words("waits for a retry")),
    "retry": Chip("warn", words("delivered again")),
    "dead": Chip("error", words("dead letter")),
    "other": Chip("note", words("in a system topic")),
    "op": Chip("note", words("op message")),
}
TRACES = {
    "messageSent": words("sent"),
    "messageConsumed": words("received"),
    "transactionEnded": words("transaction ended"),
    "messageRecalled": words("recalled"),
}
MAX_VALUE_LETTERS = 80


def step_chip(row: ConversationRow) -> Chip:
    """Return what the step is, as mark and word."""
    if row.event is not None:
        if row.step == "trace":
            has_failed = row.event.evidence.get("success") is False
            return Chip("error" if has_failed else "note", tr(TRACES.get(row.event.kind, row.event.kind)))
        chip = CHIPS[row.event.kind]
    else:
        chip = STEPS[row.step]
    return Chip(chip.kind, tr(chip.word))


def change_texts(row: ConversationRow) -> list[str]:
    """Return the properties that differ from the message's unit before, each as ``NAME = value``."""
    return [
        tr("{name} removed", name=change.name) if change.after is None else f"{change.name} = {_short(change.after)}"
        for change in row.changes
    ]


def statement_text(row: ConversationRow) -> str:
    """Return the sentence of an op message, a trace or an event, in the language of the window."""
    return message_text(row.event) if row.event is not None else engine_words(row.statement)


def _short(value: str) -> str:
    text = plain(value)
    return text if len(text) <= MAX_VALUE_LETTERS else f"{text[: MAX_VALUE_LETTERS - 1]}…"


def _note(row: ConversationRow) -> str:
    return " · ".join(part for part in (statement_text(row), *change_texts(row)) if part)


def gap_text(row: ConversationRow) -> str:
    """Return the time since the step before, with its sign."""
    if row.gap_ms is None:
        return ""
    return f"+{span(row.gap_ms)}" if row.gap_ms >= 0 else f"−{span(-row.gap_ms)}"


def _to_unit(row: ConversationRow) -> Place | None:
    return places.log(row.physical_offset) if row.physical_offset is not None else None


def _record(row: ConversationRow) -> dict[str, Any]:
    return {
        "type": "conversationStep",
        "step": row.step,
        "message": row.message or None,
        "time": row.time,
        "afterMs": row.gap_ms,
        "physicalOffset": row.physical_offset,
        "topic": row.topic or None,
        "queueId": row.queue_id,
        "queueOffset": row.queue_offset,
        "statement": row.statement,
        "changes": [
            {"property": change.name, "before": change.before, "after": change.after} for change in row.changes
        ],
    }


STEP = RecordKind(
    "conversationStep",
    (
        gutter(12),
        time_column("time", words("Time"), 104, filterable=False),
        Column("afterMs", words("After"), 76, gap_text, lambda row: row.gap_ms, right=True, filterable=False),
        Column(
            "message",
            words("Message"),
            66,
            lambda row: str(row.message) if row.message and row.shows_message else "",
            lambda row: row.message,
            right=True,
            hides=True,
            filterable=False,
        ),
        chip_column("step", words("Step"), 140, step_chip, filterable=False),
        number_column("physicalOffset", words("Physical offset"), 108, jump=_to_unit, elide="never"),
        topic_column("topic", words("Topic"), 150),
        Column(
            "queueOffset",
            words("Place"),
            76,
            lambda row: "" if row.queue_id is None else f"{row.queue_id} / {row.queue_offset:,}",
            lambda row: row.queue_offset,
            mono=True,
            jump=entry_place,
            elide="never",
            filterable=False,
        ),
        Column("changes", words("What changed"), 220, _note, _note, tip=_note, filterable=False),
    ),
    lambda row: RowAppearance(fill="sunken") if row.step == "event" else None,
    lambda row: step_chip(row).word,
    _record,
    lambda row: ["storescope", "units", "STORE", "--from", str(row.physical_offset or 0), "--limit", "1", "--json"],
)


@dataclass
class ConversationModel:
    """A question and its steps."""

    question: ConversationQuery = field(default_factory=lambda: ConversationQuery(""))
    answer: ConversationAnswer | None = None
    running: bool = False
    error: str = ""

    @property
    def rows(self) -> tuple[ConversationRow, ...]:
        return () if self.answer is None else self.answer.rows

    def forget_store(self) -> None:
        """Forget question and answer, for another store."""
        self.question, self.answer, self.running, self.error = ConversationQuery(""), None, False, ""

    def is_new(self, question: ConversationQuery) -> bool:
        """Return True if ``question`` is still to be answered."""
        return question != self.question or self.answer is None

    def begin(self, text: str, topic: str = "") -> ConversationQuery | None:
        """Begin a search and return its question. None while one runs, and without a text."""
        if self.running or not text.strip():
            return None
        self.question, self.answer, self.error = ConversationQuery(text.strip(), topic.strip()), None, ""
        self.running = True
        return self.question

    def end(self, answer: ConversationAnswer) -> None:
        """Take an answer."""
        self.running, self.answer, self.error = False, answer, ""

    def fail(self, error: str) -> None:
        """Note why there is no answer."""
        self.running, self.error = False, error

    def summary(self) -> str:
        """Return messages, units and duration in one line; empty without an answer."""
        answer = self.answer
        if answer is None:
            return ""
        units = sum(row.size is not None for row in answer.rows)
        parts = [
            tr_plural("{n:,} message", "{n:,} messages", n=len({row.message for row in answer.rows if row.message})),
            tr_plural("{n:,} unit", "{n:,} units", n=units),
            span(answer.duration_ms),
        ]
        if answer.is_truncated:
            parts.append(tr("only the newest messages of this key; name a topic to see others"))
        if answer.has_unread:
            parts.append(tr("parts of the store could not be read: other steps may be in them"))
        return " · ".join(parts)

    def table_state(self) -> TableState | None:
        """Return the message that replaces the steps. None if there are some."""
        if self.running:
            return TableState("loading", tr(SEARCHING))
        if self.error:
            return TableState("error", self.error, tr("Try again"))
        if self.answer is None:
            return TableState("hint", tr(EMPTY_HINT))
        if self.answer.rows:
            return None
        if self.answer.has_unread:
            return TableState("unread", tr("No unit with this name is in what could be read."))
        return TableState("empty", tr("No unit of this store has this name."), tr("Where is my message…"))

    def place(self) -> Place:
        """Return the place of the question."""
        return Place("conversation", topic=self.question.topic, key=self.question.text)

    def command(self) -> list[str]:
        """Return the command that shows the same. Empty without a question."""
        if not self.question.text:
            return []
        topic = ["--topic", self.question.topic] if self.question.topic else []
        return ["storescope", "conversation", "STORE", *topic, "--events", "--", self.question.text]


def step_heading(row: ConversationRow) -> str:
    """Return the heading of a step in the text: number, time, time since the step before, and what it is."""
    parts = [str(row.number), moment(row.time), gap_text(row), step_chip(row).word]
    return " · ".join(part for part in parts if part)


def step_facts(row: ConversationRow) -> list[str]:
    """Return the lines between the heading and the body: keys of the message, its sentence, what changed."""
    lines = []
    if row.size is not None:
        names = [" ".join(row.keys), row.tags, row.unique_key]
        lines.append(plain(" · ".join(name for name in names if name)))
    lines.append(statement_text(row))
    lines += change_texts(row)
    if row.has_bad_crc:
        lines.append(tr("The body's CRC does not match: the body is damaged."))
    return [line for line in lines if line]


def body_lines(row: ConversationRow) -> str:
    """Return the body as the text shows it, or a sentence that stands for it."""
    if row.same_body:
        return tr("the same body as in step {n}", n=row.same_body)
    return row.text
