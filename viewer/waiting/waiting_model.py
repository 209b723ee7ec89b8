"""The waiting messages of a store as ``storescope waiting`` lists them, and the columns of their tables. No Qt.

Reading follows queue entries into the log and belongs into a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.inspection import records
from engine.inspection.waiting import KINDS, ServiceProgress, WaitingMessage, WaitingMessages, find_waiting
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import moment, number, span
from viewer.pane.message_columns import queue_columns, translated_chip
from viewer.runtime import places
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    RowAppearance,
    chip_column,
    gutter,
    moment_column,
    number_column,
    text_column,
    topic_column,
)
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_ROWS = 20_000
"""Messages that are listed, the first ones by due time; ``storescope waiting --limit`` lists more."""
MAX_TOTALS = 1_000
KIND_WORDS: dict[str, str] = {
    "delay": words("delay level"),
    "timer": words("timer"),
    "half": words("half message"),
    "pop": words("popped"),
    "retry": words("retry"),
}
KIND_CHOICES: dict[str, str] = {
    "delay": words("Delay levels"),
    "timer": words("Timers"),
    "half": words("Half messages"),
    "pop": words("Popped, not acknowledged"),
    "retry": words("Retries"),
}
STATES = {
    "waiting": Chip("chat", words("waits")),
    "overdue": Chip("warn", words("overdue")),
    "again": Chip("note", words("comes again")),
    "ready": Chip("ok", words("ready")),
    "open": Chip("chat", words("undecided")),
    "passedOver": Chip("error", words("passed over")),
}
SERVICE_WORDS = {
    "level": words("Delay level"),
    "timer": words("Timer"),
    "transactions": words("Transaction check"),
    "revive": words("Revive"),
}
UNKNOWN_WORDS = KIND_CHOICES | {"services": words("Services"), "permissions": words("Permissions")}


@dataclass(frozen=True, slots=True)
class WaitingTotal:
    """The number of waiting messages for a topic, or of a group."""

    of: str
    """``topic`` or ``group``."""
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class WaitingChoice:
    """The messages that the user wants to see: of a kind and of a group; empty for all."""

    kind: str = ""
    group: str = ""


def read_waiting(store: StoreSnapshot, choice: WaitingChoice, check_stop: Callable[[], None]) -> WaitingMessages:
    """Read the chosen messages, and the totals of all of them. ``check_stop`` may raise to stop."""
    if store.kind != "store":
        return WaitingMessages(0)
    kinds = tuple(kind for kind in KINDS if choice.kind in {"", kind})
    return find_waiting(store, MAX_ROWS, kinds=kinds, group=choice.group or None, check_stop=check_stop)


@dataclass
class WaitingModel:
    """The state of the view: what the user chose, and what was read."""

    choice: WaitingChoice = field(default_factory=WaitingChoice)
    waiting: WaitingMessages | None = None
    error: str = ""
    is_stopped: bool = False
    kind_counts: Counter[str] = field(default_factory=Counter)
    """The kinds of the last read without a choice of a kind."""
    group_counts: Counter[str] = field(default_factory=Counter)
    """The groups of the last read without a choice of a group."""

    def forget_store(self) -> None:
        """Forget what was read, and the choice."""
        self.choice, self.waiting, self.error, self.is_stopped = WaitingChoice(), None, "", False
        self.kind_counts, self.group_counts = Counter(), Counter()

    def take(self, waiting: WaitingMessages) -> None:
        """Take what was read for the present choice."""
        self.waiting, self.error, self.is_stopped = waiting, "", False
        if not self.choice.kind:
            self.kind_counts = Counter(waiting.kinds)
        if not self.choice.group:
            self.group_counts = Counter(waiting.groups)

    def fail(self, error: str) -> None:
        """Take the error that ended the read."""
        self.waiting, self.error = None, error

    def stop(self) -> None:
        """The user stopped the read."""
        self.waiting, self.is_stopped = None, True

    @property
    def rows(self) -> list[WaitingMessage]:
        return [] if self.waiting is None else self.waiting.rows

    @property
    def services(self) -> list[ServiceProgress]:
        """The services; those that are stalled first."""
        services = [] if self.waiting is None else self.waiting.services
        return sorted(services, key=lambda service: not service.stalled)

    @property
    def totals(self) -> list[WaitingTotal]:
        """Topics, then groups, those with the most messages first."""
        if self.waiting is None:
            return []
        sums = (("topic", self.waiting.topics), ("group", self.waiting.groups))
        return [WaitingTotal(of, name, count) for of, names in sums for name, count in names.most_common(MAX_TOTALS)]

    def kind_choices(self) -> list[tuple[str, str]]:
        """Kinds to choose from, each with the number of its messages."""
        known = bool(self.kind_counts) or self.waiting is not None
        total = f" ({self.kind_counts.total():,})" if known else ""
        choices = [("", tr("All that wait") + total)]
        for kind in KINDS:
            count = f" ({self.kind_counts[kind]:,})" if known else ""
            choices.append((kind, tr(KIND_CHOICES[kind]) + count))
        return choices

    def group_choices(self) -> list[tuple[str, str]]:
        """Groups to choose from; the chosen one is always among them."""
        names = [name for name, _ in self.group_counts.most_common(MAX_TOTALS)]
        if self.choice.group and self.choice.group not in names:
            names.append(self.choice.group)
        return [("", tr("All groups")), *((name, f"{name} ({self.group_counts[name]:,})") for name in sorted(names))]

    def head_note(self) -> str:
        """The time to which the states refer, and whether all messages are listed."""
        waiting = self.waiting
        if waiting is None or not waiting.newest:
            return tr("what a broker will still deliver, check or revive")
        note = tr("due times compare with the newest message, of {time}", time=moment(waiting.newest))
        if waiting.total > len(waiting.rows):
            note += " · " + tr("the first {n:,} are listed, all are counted", n=len(waiting.rows))
        return note

    def summary(self) -> str:
        """The counts for the status bar."""
        waiting = self.waiting
        if waiting is None:
            return ""
        text = tr_plural("{n:,} message waits", "{n:,} messages wait", n=waiting.total)
        parts = [
            f"{tr(chip.word)} {waiting.states[state]:,}" for state, chip in STATES.items() if waiting.states[state]
        ]
        stalled = sum(bool(service.stalled) for service in waiting.services)
        if stalled:
            parts.append(tr_plural("{n:,} service stands still", "{n:,} services stand still", n=stalled))
        return ": ".join((text, ", ".join(parts))) if parts else text

    def unknown_words(self) -> str:
        """Say what cannot be told, and why; empty if everything was read."""
        unknown = {} if self.waiting is None else self.waiting.unknown
        return " · ".join(
            tr("Not known: {what}: {why}", what=tr(UNKNOWN_WORDS[what]), why=engine_words(why))
            for what, why in unknown.items()
        )

    def table_state(self) -> TableState | None:
        """Return the message that replaces the rows. None if there are rows."""
        if self.error:
            return TableState("error", engine_words(self.error))
        if self.is_stopped:
            return TableState("hint", tr("Reading was stopped."))
        if self.waiting is None or self.waiting.rows:
            return None
        if self.waiting.unknown:
            return TableState("unread", self.unknown_words())
        if self.choice != WaitingChoice():
            return TableState("empty", tr("No message of this choice waits."))
        return TableState("empty", tr("No message waits in this store."))

    def services_state(self) -> TableState | None:
        """Return the message that replaces the services. None if there are some."""
        if self.waiting is None:
            return self.table_state()
        if self.waiting.services:
            return None
        if "services" in self.waiting.unknown:
            return TableState("unread", self.unknown_words())
        return TableState("empty", tr("No queue of a service is in this store."))

    def totals_state(self) -> TableState | None:
        """Return the message that replaces the totals. None if there are some."""
        return self.table_state() if not self.totals else None

    def row_like(self, previous: WaitingMessage | None) -> int:
        """The number of the row that was chosen before, in the new rows; the first one if it is gone."""
        if previous is None:
            return 0
        numbers = (n for n, row in enumerate(self.rows) if _identity(row) == _identity(previous))
        return next(numbers, 0)


def _identity(row: WaitingMessage) -> tuple[object, ...]:
    return row.kind, row.topic, row.queue_id, row.queue_offset, row.physical_offset, row.group


_state = translated_chip(STATES, "state")


def _to_unit(row: WaitingMessage) -> object | None:
    return places.log(row.physical_offset) if row.physical_offset is not None else None


def _appearance(row: WaitingMessage) -> RowAppearance | None:
    return RowAppearance(tone="text3") if row.state == "again" else None


def _overdue_column() -> Column:
    return Column(
        "overdueMs",
        words("Overdue"),
        96,
        lambda row: span(row.overdue_ms) if row.overdue_ms is not None else "",
        lambda row: row.overdue_ms,
        right=True,
        filterable=False,
    )


def _why_column(why: Callable[[Any], Any]) -> Column:
    def translated(row: Any) -> str:
        return engine_words(why(row))

    return Column("why", words("Why"), 260, translated, why, tip=translated, filterable=False)


def _kind_column() -> Column:
    title = words("Kind")
    return Column("kind", title, 100, lambda row: tr(KIND_WORDS[row.kind]), lambda row: row.kind, filterable=False)


def _keys_column() -> Column:
    title = words("Keys")
    return Column("keys", title, 130, lambda row: " ".join(row.keys), lambda row: list(row.keys), filterable=False)


def command(row: WaitingMessage) -> list[str]:
    """Return the command that lists the messages of this kind and group; ``STORE`` stands for the store's path."""
    group = ["--group", row.group] if row.group else []
    return ["storescope", "waiting", "STORE", "--kind", row.kind, *group]


WAITING = RecordKind(
    "waiting",
    (
        gutter(12),
        chip_column("state", words("State"), 112, _state, filterable=False),
        _kind_column(),
        moment_column("due", words("Due"), 186, filterable=False),
        _overdue_column(),
        topic_column("forTopic", words("For topic"), 150, filterable=False),
        text_column("group", words("Group"), 130, elide="middle", filterable=False),
        number_column("tries", words("Tries"), 58, filterable=False),
        number_column("physicalOffset", words("Physical offset"), 124, jump=_to_unit, elide="never"),
        _why_column(lambda row: row.why),
        moment_column("since", words("Since"), 186, slim=True, filterable=False),
        *(replace(column, slim=True) for column in queue_columns(words("Waits in"))),
        text_column("uniqueKey", words("Unique key"), 230, mono=True, elide="middle"),
        _keys_column(),
    ),
    _appearance,
    lambda row: _state(row).word,
    records.waiting_message,
    command,
)


def _service_name(service: ServiceProgress) -> str:
    name = tr(SERVICE_WORDS[service.service])
    numbers = {"level": service.queue_id + 1, "revive": service.queue_id}
    number_text = f" {numbers[service.service]}" if service.service in numbers else ""
    return name + number_text


def _progress_chip(service: ServiceProgress) -> Chip:
    return Chip("warn", tr("stands still")) if service.stalled else Chip("ok", tr("no stall seen"))


def _remaining(service: ServiceProgress) -> int | None:
    return None if service.next_offset is None else max(0, service.end_offset - service.next_offset)


def _to_next(service: ServiceProgress) -> object | None:
    if service.next_offset is None or service.next_offset >= service.end_offset:
        return None
    return places.queue(service.topic, service.queue_id, service.next_offset)


def _service_record(service: ServiceProgress) -> dict[str, Any]:
    return {"type": "waitingService", **records.waiting_service(service)}


SERVICE = RecordKind(
    "waitingService",
    (
        gutter(12),
        chip_column("standsStill", words("State"), 118, _progress_chip, filterable=False),
        Column(
            "service",
            words("Service"),
            140,
            _service_name,
            lambda service: service.service,
            elide="never",
            filterable=False,
        ),
        number_column("nextOffset", words("Next"), 92, jump=_to_next, filterable=False),
        number_column("endOffset", words("End"), 92, filterable=False),
        Column(
            "remaining",
            words("Still to read"),
            96,
            lambda service: number(_remaining(service)),
            _remaining,
            right=True,
            mono=True,
            filterable=False,
        ),
        moment_column("readTo", words("Delivered up to"), 186, filterable=False),
        _why_column(lambda service: service.stalled),
        topic_column("topic", words("Topic"), 180, filterable=False),
        number_column("queueId", words("Queue"), 64, filterable=False),
    ),
    verdict=lambda service: _progress_chip(service).word,
    record=_service_record,
)
TOTAL = RecordKind(
    "waitingTotal",
    (
        gutter(12),
        Column(
            "of",
            words("Of"),
            64,
            lambda total: tr("topic") if total.of == "topic" else tr("group"),
            lambda total: total.of,
            filterable=False,
        ),
        text_column("name", words("Name"), 190, elide="middle", filterable=False),
        number_column("count", words("Messages"), 90, filterable=False),
    ),
)
