"""The state of the view SQL: the question, its answer, and what is said about both. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock
from viewer.sql.answers import MORE_ROWS, ROW_LIMIT, Answer, Question, Refusal, Vocabulary, plan_text
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.patching.patches import Patch

HINT = words("Ctrl+Enter asks. The examples at the top right are questions to begin with.")
STOPPED = words("The question was stopped.")


@dataclass
class SqlModel:
    """The state of the sheet. ``answer`` stays while the next question runs."""

    vocabulary: Vocabulary | None = None
    answer: Answer | None = None
    plan: str = ""
    refusal: Refusal | None = None
    error: str = ""
    is_running: bool = False
    is_stopped: bool = False
    patches: tuple[Patch, ...] = field(default=())
    """The patches with which the store was read for the answer."""
    used_index: int = -1
    """Which of the earlier questions is in the editor; −1: none of them."""
    draft: str = ""
    """The text that was in the editor before an earlier question."""

    def forget_store(self) -> None:
        """Forget the answer; the vocabulary is that of all stores."""
        self.answer, self.plan, self.refusal, self.error = None, "", None, ""
        self.is_running = self.is_stopped = False
        self.patches = ()

    def begin(self) -> None:
        """A question was asked."""
        self.is_running, self.is_stopped, self.refusal, self.error = True, False, None, ""

    def take(self, answer: Answer | Refusal, patches: tuple[Patch, ...]) -> None:
        """Take what came back."""
        self.is_running = False
        if isinstance(answer, Refusal):
            self.refusal = answer
        elif answer.is_plan:
            self.plan = plan_text(answer)
        else:
            self.answer, self.patches = answer, patches

    def fail(self, error: str) -> None:
        """Take an error that is not about the question."""
        self.is_running, self.error = False, error

    def stop(self) -> None:
        """The user stopped the question."""
        self.is_running, self.is_stopped = False, True

    def older(self, used: list[str], step: int, current: str) -> str:
        """Return the question that was used before the one in the editor (``step`` 1), or after it (−1)."""
        if self.used_index < 0:
            self.draft = current
        earlier = [text for text in used if text != self.draft.strip()]
        self.used_index = max(-1, min(len(earlier) - 1, self.used_index + step))
        return earlier[self.used_index] if self.used_index >= 0 else self.draft

    def fault(self) -> str:
        """Say in one line why there is no answer; empty if there is nothing to say."""
        if self.refusal is not None:
            return engine_words(self.refusal.reason)
        return engine_words(self.error) if self.error else ""

    def head_note(self) -> str:
        """Say how many rows the answer has, how long it took, and of when it is."""
        answer = self.answer
        if answer is None:
            return ""
        parts = [
            self.summary(),
            tr("{seconds:.2f} s", seconds=answer.seconds),
            tr("read at {time}", time=clock(answer.read_at_ms)[:8]),
        ]
        if not answer.is_complete:
            parts.append(tr("not complete: a part of the store could not be read"))
        return " · ".join(parts)

    def summary(self) -> str:
        """Say how many rows there are."""
        answer = self.answer
        if answer is None:
            return ""
        if answer.is_cut:
            return tr_plural("the first {n:,} row", "the first {n:,} rows", n=answer.row_count)
        return tr_plural("{n:,} row", "{n:,} rows", n=answer.row_count)

    def next_limit(self) -> int:
        """Return how many rows are fetched if the user wants to see more."""
        return self.answer.question.row_limit * MORE_ROWS if self.answer is not None else ROW_LIMIT

    def next_question(self) -> Question | None:
        """Return the same question with more rows; None if all are there."""
        answer = self.answer
        if answer is None or not answer.is_cut:
            return None
        return replace(answer.question, row_limit=self.next_limit())

    def cut_words(self) -> str:
        """Say that there are more rows; empty if not."""
        if self.answer is None or not self.answer.is_cut:
            return ""
        return tr_plural(
            "First {n:,} row. An export writes all of them.",
            "First {n:,} rows. An export writes all of them.",
            n=self.answer.row_count,
        )

    def stale_words(self, log_end: int, patches: tuple[Patch, ...]) -> str:
        """Say that the store is another than that of the answer; empty if it is the same."""
        if self.answer is None:
            return ""
        time = clock(self.answer.read_at_ms)[:8]
        if patches != self.patches:
            return tr("As of {time}; other patches are shown since.", time=time)
        if log_end != self.answer.log_end:
            return tr("As of {time}; the store has grown since.", time=time)
        return ""

    def table_state(self) -> TableState | None:
        """Return the message that replaces the rows. None if there are rows."""
        if self.answer is not None:
            return None if self.answer.row_count else TableState("empty", tr("No row answers this question."))
        if self.vocabulary is not None and self.vocabulary.missing:
            return TableState("hint", engine_words(self.vocabulary.missing))
        if self.is_running:
            return TableState("loading", tr("Asking the store…"))
        if self.is_stopped:
            return TableState("hint", tr(STOPPED))
        return TableState("hint", tr(HINT))
