"""State of a pipeline job, folded from the JSON lines that it writes; no Qt, no clock: times are given.

A job's process says ``progress`` a few times a second, then its results record by record, then ``jobSummary``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from viewer.pipeline.request import LOCAL, JobRequest

JobStatus = Literal["running", "done", "failed", "cancelled"]
CardState = Literal["waits", "running", "done", "failed", "cancelled"]
MAX_ROWS = 20_000
"""Maximum rows of one kind of record for a table; further ones are only counted."""
MAX_TEXT_LINES = 60
"""Maximum number of text lines that are stored."""
START = "start"
"""Key of the first card, and its step while Spark is started: Java and a session."""
LOCAL_START = "start here"
"""Step of the first card of a job on this machine: its process answers without Spark."""
FOUND, BAD_USE, CANNOT, INTERRUPTED = 1, 2, 3, 130
Record = dict[str, Any]


@dataclass(slots=True)
class Card:
    """A stage: ``done`` of ``tasks`` have ended, ``running`` are running, ``retried`` were retried.

    ``step`` is the job's name for it, ``name`` Spark's; ``seconds`` from the start of its first task to its end.
    """

    key: str
    step: str
    name: str = ""
    done: int = 0
    tasks: int = 0
    running: int = 0
    retried: int = 0
    state: CardState = "running"
    begun: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class RuleCount:
    """Findings of one rule: how many, and the first of them."""

    id: str
    severity: str
    group: str
    count: int
    first_finding: Record


@dataclass(slots=True)
class JobState:
    """A job of this session. ``began`` is s since the epoch, ``clock_s`` the monotonic clock at the same moment."""

    number: int
    request: JobRequest
    began: float
    clock_s: float
    status: JobStatus = "running"
    code: int | None = None
    seconds: float = 0.0
    log_file: str = ""
    stopping: bool = False
    progress: Record = field(default_factory=dict)
    summary: Record = field(default_factory=dict)
    cards: list[Card] = field(default_factory=list)
    rows: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    rules: dict[str, RuleCount] = field(default_factory=dict)
    severities: Counter[str] = field(default_factory=Counter)
    spark_lines: list[str] = field(default_factory=list)
    version: int = 0
    """Grows with every row, so that a table knows that it is out of date."""
    _step: int = 0

    def __post_init__(self) -> None:
        first_step = LOCAL_START if self.request.master == LOCAL else START
        self.cards.append(Card(START, first_step, begun=self.clock_s, tasks=1, running=1))

    # ---- what the process says ---------------------------------------------------------------------------------------

    def take_all(self, records: Iterable[Record], now: float) -> None:
        """Several records, in order."""
        for record in records:
            self.take(record, now)

    def take(self, record: Record, now: float) -> None:
        """Take one record of the process."""
        kind = str(record.get("type", ""))
        if kind == "progress":
            self._take_progress(record, now)
            return
        self._session_stands(now)
        if kind == "jobSummary":
            self.summary = record
            self.cards[0].seconds = float(record.get("sessionSeconds") or self.cards[0].seconds)
            return
        self.version += 1
        self.counts[kind] += 1
        if kind == "finding":
            self._take_finding(record)
        if len(self.rows[kind]) < MAX_ROWS:
            self.rows[kind].append(record)

    def say(self, line: str) -> None:
        """Take one line for people, from the process's standard error."""
        if line:
            self.spark_lines = [*self.spark_lines, line][-MAX_TEXT_LINES:]

    def end(self, code: int, now: float) -> None:
        """Note the end of the process. Exit code 1 means findings, which is a result."""
        self.code, self.seconds = code, now - self.clock_s
        if code in {0, FOUND} and (self.summary or code == 0):
            self.status = "done"
        else:
            self.status = "cancelled" if self.stopping or code == INTERRUPTED else "failed"
        for card in self.cards:
            if card.state == "running":
                self._end_card(card, now, self.status)

    def _take_progress(self, record: Record, now: float) -> None:
        self._session_stands(now)
        step = str(record.get("step", ""))
        if not self.progress or step != self.progress.get("step"):
            self._step += 1
            for card in self.cards:
                if card.state == "running":
                    self._end_card(card, now, "done")
        self.progress = record
        cards_by_key = {card.key: card for card in self.cards}
        for stage in record.get("stages", ()):
            key = f"{self._step}.{stage['stage']}"
            if key not in cards_by_key:
                cards_by_key[key] = Card(key, step, str(stage.get("name", "")), begun=now)
                self.cards.append(cards_by_key[key])
            card = cards_by_key[key]
            card.done, card.tasks = int(stage["done"]), int(stage["tasks"])
            card.running, card.retried = int(stage.get("running", 0)), int(stage.get("triedAgain", 0))
            if card.state == "running":
                card.seconds = now - card.begun
                if card.tasks and card.done >= card.tasks:
                    card.state = "done"
                elif not card.done and not card.running and self._earlier_runs(card):
                    card.state, card.begun = "waits", now
            elif card.state == "waits" and (card.done or card.running or not self._earlier_runs(card)):
                card.state, card.begun = "running", now

    def _earlier_runs(self, card: Card) -> bool:
        """Return whether an earlier stage of the same step has tasks that have not ended."""
        step = card.key.partition(".")[0]
        for earlier in self.cards:
            if earlier is card:
                return False
            if earlier.key.partition(".")[0] == step and earlier.done < earlier.tasks:
                return True
        return False

    def _session_stands(self, now: float) -> None:
        session_card = self.cards[0]
        if session_card.state == "running":
            session_card.done, session_card.running = 1, 0
            self._end_card(session_card, now, "done")

    def _end_card(self, card: Card, now: float, state: CardState) -> None:
        if state == "done" and (card.done or card.running):
            card.done = card.tasks  # the last look was a moment before the end
        card.seconds, card.state, card.running = now - card.begun, state, 0

    def _take_finding(self, record: Record) -> None:
        rule, severity = str(record.get("id", "")), str(record.get("severity", "note"))
        self.severities[severity] += 1
        rule_count = self.rules.get(rule)
        if rule_count is None:
            self.rules[rule] = RuleCount(rule, severity, str(record.get("group", "")), 1, record)
        else:
            rule_count.count += 1

    # ---- what is asked about it --------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """True while its process runs."""
        return self.status == "running"

    def lasted(self, now: float) -> float:
        """Seconds from its start until now, or until its end."""
        return now - self.clock_s if self.running else self.seconds

    @property
    def part(self) -> float | None:
        """Progress of the step, 0 to 1; None while unknown."""
        if not self.running:
            return 1.0 if self.status == "done" else self._share()
        return self._share() if self.progress else None

    def _share(self) -> float:
        tasks = self.progress.get("tasks") or 0
        return min(1.0, self.progress.get("done", 0) / tasks) if tasks else 0.0

    def figure(self, name: str) -> Any:
        """Return a figure of the summary, before that one of the last progress; None if neither has it."""
        figure = self.summary.get(name)
        return self.progress.get(name) if figure is None else figure

    @property
    def tasks(self) -> tuple[int, int]:
        """Tasks that have ended and tasks known so far, of all steps."""
        cards = [card for card in self.cards if card.key != START]
        return sum(card.done for card in cards), sum(card.tasks for card in cards)

    @property
    def tried_again(self) -> int:
        """Tasks that failed and were tried again."""
        return int(self.summary.get("triedAgain") or sum(card.retried for card in self.cards))

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the step will still take at its present pace; None while unknown."""
        share, seconds = self._share(), float(self.progress.get("seconds") or 0.0)
        return seconds * (1 - share) / share if self.running and share >= 0.05 and seconds >= 1 else None

    @property
    def why(self) -> str:
        """The last words of a job that failed, without the program's name."""
        for line in reversed(self.spark_lines):
            if line.startswith("storescope: "):
                return line.removeprefix("storescope: ")
        return self.spark_lines[-1] if self.spark_lines else ""
