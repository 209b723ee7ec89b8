"""The state of the Where view: question, results, and progress of the search. No Qt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from viewer.look.assets import tr, tr_plural, words
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.where.words import verdict_chip, without_absence_verdicts
from viewer.where.work import WhereAnswer, WhereQuery
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.inspection.where.evidence import WhereResult

SEARCHING = words("Looking for the message")
EMPTY_HINT = words(
    "An id, a unique key, a key, T# and tags, an offset, or topic/queue/offset. Storescope searches the whole store "
    "for it."
)
NO_TAG_ENTRY = words(
    "The index has no entry for these tags. RocketMQ before 5.4 does not index tags: filter the commit log instead."
)


@dataclass
class WhereModel:
    """A question and its answer."""

    question: WhereQuery = field(default_factory=lambda: WhereQuery(""))
    results: tuple[WhereResult, ...] = ()
    running: bool = False
    error: str = ""
    """Why the last search ended without an answer."""
    summary: str = ""
    """The verdict of the chosen message in one sentence."""
    _answered: bool = False
    _is_truncated: bool = False

    def forget_store(self) -> None:
        """Forget question and answer, for another store. A search under way is dropped."""
        self.question, self.summary, self.running = WhereQuery(""), "", False
        self._forget_answer()

    def _forget_answer(self) -> None:
        self.results, self.error = (), ""
        self._answered = self._is_truncated = False

    # ---- the search --------------------------------------------------------------------------------------------------

    def is_new(self, question: WhereQuery) -> bool:
        """Return True if ``question`` is still to be answered."""
        return question != self.question or not self.results

    def begin(self, text: str, topic: str = "", group: str = "") -> WhereQuery | None:
        """Begin a search and return its question. None while one runs, and without a text."""
        if self.running or not text.strip():
            return None
        self._forget_answer()
        self.question, self.running = WhereQuery(text.strip(), topic.strip(), group.strip()), True
        return self.question

    def end(self, answer: WhereAnswer, *, has_unread: bool) -> None:
        """Take an answer. Where files are unread, nothing is called absent."""
        self.running, self._answered, self._is_truncated = False, True, answer.is_truncated
        self.results = tuple(without_absence_verdicts(result) if has_unread else result for result in answer.results)

    def fail(self, error: str) -> None:
        """Note why there is no answer."""
        self.running, self.error = False, error

    def describe(self, result: WhereResult, meaning: str) -> str:
        """Keep the verdict of the chosen message as the summary, and return it."""
        self.summary = tr(
            "{text}: {verdict}. {meaning}", text=self.question.text, verdict=verdict_chip(result).word, meaning=meaning
        )
        return self.summary

    # ---- what the view says ------------------------------------------------------------------------------------------

    def head_note(self) -> str:
        """Return how many messages have this name, for the head of the table. Empty for a single one."""
        count = len(self.results)
        return tr("{n:,} with this name", n=count) if count > 1 else ""

    @property
    def lacks_tags(self) -> bool:
        """True if the search found no message at all: the index has no entry for these tags."""
        return self._answered and not self.results

    def table_state(self) -> TableState | None:
        """Return the message of the table of messages: loading, error, empty. None if its rows need no message."""
        if self.running:
            return TableState("loading", tr(SEARCHING))
        if self.error:
            return TableState("error", self.error, tr("Try again"))
        if self.lacks_tags:
            return TableState("empty", tr(NO_TAG_ENTRY), tr("Filter the log"))
        if not self.results:
            return TableState("hint", tr(EMPTY_HINT))
        if self._is_truncated:
            count = len(self.results)
            return TableState(
                "cut",
                tr_plural(
                    "The first {n:,} message of this key. Name a topic to see others.",
                    "The first {n:,} messages of this key. Name a topic to see others.",
                    n=count,
                ),
            )
        return None

    def detail_state(self) -> TableState | None:
        """Return the message of the tables of evidence and routes. None if their rows need no message."""
        if self.running or self.results:
            return None
        if self.error:
            return TableState("hint", tr("There are no details."))
        if self.lacks_tags:
            return TableState("empty", tr("No message was found for these tags."))
        return TableState("hint", tr("Nothing was searched yet."))

    # ---- where it leads ----------------------------------------------------------------------------------------------

    def place(self) -> Place:
        """Return the place of the question."""
        return Place("where", topic=self.question.topic, key=self.question.text, name=self.question.group)

    def filter_of_tags(self) -> Place:
        """Return the place that shows the units of the log with these tags."""
        return places.filtered("only", f"tags = {json.dumps(self.question.tags, ensure_ascii=False)}")

    def command(self) -> list[str]:
        """Return the command that asks the same. Empty without a question."""
        if not self.question.text:
            return []
        parts = ["storescope", "where", "STORE"]
        for option, value in (("--topic", self.question.topic), ("--group", self.question.group)):
            parts += [option, value] if value else []
        if self.question.tags:
            parts.append("--tag")
        return [*parts, "--json", "--", self.question.tags or self.question.text]
