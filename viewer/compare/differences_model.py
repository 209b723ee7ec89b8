"""The state of the table of differences: what was compared, which kind is shown, and how the run stands. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.inspection.difference_rows import MAX_ROWS, Differences, MissingEnd, Row, Side, UnitRange
from viewer.look.assets import plural_words, tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import size
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.table_state import TableState

RowTest = Callable[[Row], bool]
FILTERS: tuple[tuple[str, str, RowTest], ...] = (
    ("all", words("All differences"), lambda _row: True),
    ("units.here", words("Units only here"), lambda row: row.kind == "unit" and row.side == "here"),
    ("units.there", words("Units only there"), lambda row: row.kind == "unit" and row.side == "there"),
    ("units.differ", words("Units that differ"), lambda row: row.kind == "unit" and row.side == "differs"),
    ("queues", words("Queues"), lambda row: row.kind == "queue"),
    ("index", words("Index"), lambda row: row.kind == "index"),
    ("config", words("Config"), lambda row: row.kind == "config"),
    ("dataVersion", words("Data versions of tables"), lambda row: row.kind == "dataVersion"),
    ("checkpoint", words("Checkpoint"), lambda row: row.kind == "checkpoint"),
    ("state", words("State and sizes"), lambda row: row.kind == "state"),
)


TOTALS = "totals"
"""The choice that shows the sums by topic and queue in place of the differences."""


@dataclass(frozen=True, slots=True)
class QueueTotal:
    """Units of a queue that differ, by side."""

    topic: str
    queue_id: int
    sides: Mapping[Side, UnitRange]

    def count(self, side: Side) -> int | None:
        """Return the number of units; None without one."""
        units = self.sides.get(side)
        return units.count if units is not None else None

    def place(self, side: Side) -> Place | None:
        """Return the first queue entry of these units, in the store that has it."""
        units = self.sides.get(side)
        return places.queue(self.topic, self.queue_id, units.min_offset) if units is not None else None

    def offsets(self) -> str:
        """Return the range of queue offsets in which units differ."""
        first = min(units.min_offset for units in self.sides.values())
        last = max(units.max_offset for units in self.sides.values())
        return f"{first:,}" if first == last else f"{first:,} … {last:,}"


@dataclass
class DifferencesModel:
    """Differences of two stores as the user chose to see them."""

    differences: Differences | None = None
    """The last result; also one of a run that was stopped."""
    kind: str = "all"
    """A key of :data:`FILTERS`."""
    running: bool = False
    is_stopped: bool = False
    error: str = ""
    """Why the last run ended early."""

    def begin(self) -> bool:
        """Begin to compare. Return False if that runs already."""
        if self.running:
            return False
        self.running, self.differences = True, None
        self.is_stopped, self.error = False, ""
        return True

    def end(self, differences: Differences, *, is_stopped: bool = False, error: str = "") -> None:
        """Take the compared files; the run may have been stopped, or have failed."""
        self.running, self.differences = False, differences
        self.is_stopped, self.error = is_stopped, error

    @property
    def rows(self) -> list[Row]:
        """The rows of the chosen kind."""
        test = next((test for key, _, test in FILTERS if key == self.kind), None)
        if test is None:
            return []
        return [row for row in self.differences.rows if test(row)] if self.differences is not None else []

    @property
    def totals(self) -> list[QueueTotal]:
        """The sums of units by topic and queue."""
        queues = self.differences.queues if self.differences is not None else {}
        return [QueueTotal(*place, sides) for place, sides in sorted(queues.items())]

    def kinds(self) -> list[tuple[str, str]]:
        """Return the kinds to choose from, each with its number of differences in words."""
        counts = self.differences.counts if self.differences is not None else {}
        choices = [
            (key, f"{tr(text)} ({sum(n for (kind, side), n in counts.items() if test(Row(kind, side, ''))):,})")
            for key, text, test in FILTERS
        ]
        choices.insert(1, (TOTALS, f"{tr('Units by topic and queue')} ({len(self.totals):,})"))
        return choices

    @property
    def can_export(self) -> bool:
        """True if there is a table to export."""
        return not self.running and self.differences is not None

    def table_state(self) -> TableState | None:
        """Return the message of the table: loading, error, empty. None if its rows need no message."""
        if self.running:
            return TableState("loading", tr("Comparing two stores…"))
        if self.differences is None:
            return TableState("hint", tr("Nothing was compared yet."))
        if self.totals if self.kind == TOTALS else self.rows:
            return None
        if self.is_stopped or self.error:
            return TableState("empty", self.note(is_complete=False))
        if self.differences.total:
            return TableState("empty", tr("No difference of this kind."))
        return TableState("empty", tr("Both stores are equal."))

    def note(self, *, is_complete: bool) -> str:
        """Return how the last run ended. ``is_complete`` is False where a part of a store could not be read."""
        if self.is_stopped:
            return tr("Stopped before the end: the table is not complete.")
        if self.error or self.differences is None:
            return engine_words(self.error)
        return verdict_words(self.differences, is_complete=is_complete)


def place_of(row: Row | None, side: str) -> Place | None:
    """Return where a difference is in this store (``here``) or in the other one (``there``)."""
    if row is None:
        return None
    is_shown = row.side in {"differs", side} or row.kind == "checkpoint" or (row.kind == "unit" and not row.is_beyond)
    if not is_shown:
        return None
    match row.kind:
        case "unit":
            is_elsewhere = side == "there" and row.offset_there is not None
            return places.log(row.offset_there if is_elsewhere else row.offset, row.fields.partition(", ")[0])
        case "queue":
            return places.queue(*row.queue) if row.queue is not None else None
        case "index":
            entry = row.index_here if side == "here" else row.index_there
            return places.index(entry.file, "entry", entry.number) if entry is not None else None
        case "config" | "dataVersion":
            return Place("config", name=row.table)
        case "checkpoint":
            return Place("checkpoint")
    return Place("abort") if row.subject == "abort" else None


def verdict_words(differences: Differences, *, is_complete: bool = True) -> str:
    """Summarize how much was compared, how much differs, and whether the table is cut.

    ``is_complete`` is False where a part of a store could not be read; the stores are then never called equal.
    """
    compared = _compared_words(differences)
    if not differences.total:
        return (
            (tr("Both stores are equal.") if is_complete else tr("No difference in what can be read.")) + " " + compared
        )
    sentence = tr_plural("{n:,} difference.", "{n:,} differences.", n=differences.total)
    sentence = " ".join([sentence, *(end_words(missing) for missing in differences.ends.values()), compared])
    if differences.is_truncated:
        sentence += " " + tr_plural(
            "The table has the first {n:,} row; all are counted.",
            "The table has the first {n:,} rows; all are counted.",
            n=MAX_ROWS,
        )
    return sentence


def _compared_words(differences: Differences) -> str:
    compared = size(differences.compared_bytes)
    if differences.alignment == "messages":
        return tr("{size} of log compared message by message: the physical offsets differ.", size=compared)
    if differences.alignment == "both":
        return tr(
            "{size} of log compared at the same physical offsets up to {offset:,}, from there message by message.",
            size=compared,
            offset=differences.shared_until or 0,
        )
    return tr("{size} of log compared at the same physical offsets.", size=compared)


def end_words(missing: MissingEnd) -> str:
    """Say plainly that one store ends earlier or begins later."""
    forms: dict[tuple[str, str], tuple[str, str]] = {
        ("here", "tail"): plural_words(
            "The other store ends earlier: {n:,} message of this one is behind its end.",
            "The other store ends earlier: {n:,} messages of this one are behind its end.",
        ),
        ("there", "tail"): plural_words(
            "This store ends earlier: {n:,} message of the other one is behind its end.",
            "This store ends earlier: {n:,} messages of the other one are behind its end.",
        ),
        ("here", "head"): plural_words(
            "The other store begins later: {n:,} message of this one is before its beginning.",
            "The other store begins later: {n:,} messages of this one are before its beginning.",
        ),
        ("there", "head"): plural_words(
            "This store begins later: {n:,} message of the other one is before its beginning.",
            "This store begins later: {n:,} messages of the other one are before its beginning.",
        ),
    }
    return tr_plural(*forms[missing.side, missing.end], n=missing.units)
