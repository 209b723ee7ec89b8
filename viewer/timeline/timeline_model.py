"""The events of a store as ``storescope timeline`` lists them, and the columns of their table. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.inspection.timeline.events import TRACE_KINDS, Kind, TimelineEvent
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import full_moment, moment, span
from viewer.pane.event_words import CHIPS, message_text
from viewer.runtime import places
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    chip_column,
    gutter,
    number_column,
)
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.inspection.timeline.timeline import Timeline

TROUBLE = "trouble"
"""The choice of all events that are marked as an error or a warning."""
LAST_RUN_WORDS = {
    "closed": words("the last run was closed cleanly"),
    "notClosed": words("the last run was not closed"),
    "running": words("a process holds the store"),
}
CERTAINTY_WORDS = {"certain": words("certain"), "likely": words("likely")}
UNKNOWN_WORDS = {"index": words("Index"), "state": words("Last run"), "queues": words("Queues")}


@dataclass
class TimelineModel:
    """The state of the view: the events of the store, and which of them the user wants to see."""

    choice: str = ""
    """A kind, :data:`TROUBLE`, or empty for all."""
    timeline: Timeline | None = None
    error: str = ""
    is_stopped: bool = False
    rows: list[TimelineEvent] = field(default_factory=list)

    def forget_store(self) -> None:
        """Forget what was read, and the choice."""
        self.choice, self.timeline, self.error, self.is_stopped, self.rows = "", None, "", False, []

    def take(self, timeline: Timeline) -> None:
        """Take what was read."""
        self.timeline, self.error, self.is_stopped = timeline, "", False
        self.choose(self.choice)

    def fail(self, error: str) -> None:
        """Take the error that ended the read."""
        self.timeline, self.error, self.rows = None, error, []

    def stop(self) -> None:
        """The user stopped the read."""
        self.is_stopped = self.timeline is None

    def choose(self, choice: str) -> None:
        """Show only events of a kind, of trouble, or all of them."""
        self.choice = choice
        events = [] if self.timeline is None else self.timeline.events
        self.rows = [event for event in events if event.kind not in TRACE_KINDS and self._is_chosen(event.kind)]

    def _is_chosen(self, kind: Kind) -> bool:
        return self.choice in {"", kind} or (self.choice == TROUBLE and CHIPS[kind].kind in {"error", "warn"})

    def choices(self) -> list[tuple[str, str]]:
        """(choice, text) of the field above the table: the kinds that the store has, each with its number."""
        if self.timeline is None:
            return [("", tr("All events"))]
        kinds = self.timeline.kinds
        counts = [(kind, tr(chip.word), kinds[kind]) for kind, chip in CHIPS.items() if kinds[kind]]
        trouble = sum(kinds[kind] for kind, chip in CHIPS.items() if chip.kind in {"error", "warn"})
        total = sum(count for _, _, count in counts)
        listed = [("", tr("All events"), total), (TROUBLE, tr("Trouble"), trouble), *counts]
        return [(choice, f"{text} ({count:,})") for choice, text, count in listed]

    def row_like(self, previous: TimelineEvent | None) -> int:
        """The number of the row that was chosen before, in the new rows; the first one if it is gone."""
        return self.rows.index(previous) if previous is not None and previous in self.rows else 0

    def head_note(self) -> str:
        """Say which time the log covers, and how its last run ended."""
        timeline = self.timeline
        if timeline is None or timeline.first_stored is None:
            return ""
        first, last = moment(timeline.first_stored), moment(timeline.last_stored)
        parts = [tr("messages stored from {first} to {last}", first=first, last=last)]
        if timeline.state is not None:
            parts.append(tr(LAST_RUN_WORDS[timeline.state]))
        if timeline.p50 is not None and timeline.p99 is not None:
            times = {"p50": span(timeline.p50), "p99": span(timeline.p99)}
            parts.append(tr("born to stored: half within {p50}, 99 % within {p99}", **times))
        return " · ".join(parts)

    def summary(self) -> str:
        """The counts for the status bar."""
        if self.timeline is None:
            return ""
        return tr_plural("{n:,} event", "{n:,} events", n=len(self.rows))

    def unknown_words(self) -> str:
        """Say what cannot be told, and why; empty if everything was read."""
        timeline = self.timeline
        if timeline is None:
            return ""
        parts = [
            tr("Not known: {what}: {why}", what=tr(UNKNOWN_WORDS[what]), why=engine_words(why))
            for what, why in timeline.unknown.items()
        ]
        lost = timeline.damage + timeline.unread
        if lost:
            parts.append(
                tr_plural(
                    "{n:,} byte of the log is no message: events can be missing",
                    "{n:,} bytes of the log are no messages: events can be missing",
                    n=lost,
                )
            )
        return " · ".join(parts)

    def table_state(self) -> TableState | None:
        """Return the message that replaces the rows. None if there are rows."""
        if self.error:
            return TableState("error", engine_words(self.error))
        if self.is_stopped:
            return TableState("hint", tr("Reading was stopped."))
        if self.timeline is None or self.rows:
            return None
        if self.choice:
            return TableState("empty", tr("No event of this choice."))
        if self.timeline.unknown or self.timeline.unread:
            return TableState("unread", self.unknown_words())
        return TableState("empty", tr("The files of this store show no event."))


def _chip(event: TimelineEvent) -> Chip:
    chip = CHIPS[event.kind]
    return Chip(chip.kind, tr(chip.word))


def _to_unit(event: TimelineEvent) -> object | None:
    return places.log(event.physical_offset) if event.physical_offset is not None else None


def _duration(event: TimelineEvent) -> int | None:
    return event.end - event.start if event.start is not None and event.end is not None else None


def _duration_text(event: TimelineEvent) -> str:
    duration = _duration(event)
    return span(duration) if duration else ""


def _duration_column() -> Column:
    return Column("duration", words("Duration"), 90, _duration_text, _duration, right=True, filterable=False)


def _time_column() -> Column:
    return Column(
        "from",
        words("From"),
        186,
        lambda event: moment(event.time or None),
        lambda event: event.start,
        mono=True,
        tip=lambda event: full_moment(event.time or None),
        elide="never",
        filterable=False,
    )


def evidence_text(event: TimelineEvent) -> str:
    """Return where an event is seen, and the values that show it, as the command prints them."""
    values = [f"{name} {value}" for name, value in event.evidence.items() if value not in {None, 0, ""}]
    return " · ".join([event.source, *values])


def _message_column() -> Column:
    return Column(
        "message",
        words("What the files show"),
        560,
        message_text,
        lambda event: event.message,
        tip=message_text,
        filterable=False,
    )


def _certainty_column() -> Column:
    title = words("Sure")
    return Column(
        "certainty",
        title,
        74,
        lambda event: tr(CERTAINTY_WORDS[event.certainty]),
        lambda event: event.certainty,
        filterable=False,
    )


def command(event: TimelineEvent) -> list[str]:
    """Return the command that lists the events of this kind; ``STORE`` stands for the store's path."""
    return ["storescope", "timeline", "STORE", "--kind", event.kind]


EVENT = RecordKind(
    "timelineEvent",
    (
        gutter(12),
        chip_column("kind", words("Event"), 132, _chip, filterable=False),
        _time_column(),
        _duration_column(),
        number_column("physicalOffset", words("Physical offset"), 124, jump=_to_unit, elide="never"),
        _certainty_column(),
        _message_column(),
    ),
    verdict=lambda event: _chip(event).word,
    record=lambda event: event.record(),
    command=command,
)
