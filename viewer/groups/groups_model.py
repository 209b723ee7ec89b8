"""The state of the Groups view: offsets of groups, the grouping of the rows, and which of them is chosen. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.pane.group_rows import OFFSETS, GroupRow, GroupSum, GroupTable, order, sentence, sum_sentence, sums
from viewer.widgets.table_state import TableState

Grouping = Literal["queues", "topics", "groups"]
MAX_PINS = 200
MAX_CHARACTERS = 48
"""Maximum letters of a name in the sentence below the table; the tooltip has the full name."""


@dataclass
class GroupsModel:
    """Progress of the consumer groups of one store."""

    queue_rows: list[GroupRow] = field(default_factory=list)
    """A row for each group and queue, the most urgent first."""
    grouping: Grouping = "queues"
    """Rows for queues, or their sums for topics or groups."""
    pending_group: str = ""
    """The group that a place names. It is chosen whenever the queues are shown."""
    error: str = ""
    _groups: GroupTable | None = None

    def forget_store(self) -> None:
        """Forget the tables, for another store."""
        self.queue_rows, self.error, self._groups = [], "", None

    def take(self, groups: GroupTable) -> None:
        """Take the newest offsets."""
        self._groups, self.error = groups, ""
        self.queue_rows = order(groups.rows)

    def fail(self, error: str) -> None:
        """Note why the tables could not be read. Older tables stay."""
        self.error = error

    @property
    def rows(self) -> Sequence[GroupRow] | Sequence[GroupSum]:
        """The rows to show."""
        if self.grouping == "queues":
            return self.queue_rows
        return sums(self._groups, by_topic=self.grouping == "topics") if self._groups is not None else ()

    def row_to_choose(self, previous: GroupRow | None) -> int:
        """Return the row of the queue that was chosen before, or else of the pending or the previous group."""
        if previous is not None and self.pending_group in {"", previous.progress.group}:
            key = _key(previous)
            index = next((number for number, row in enumerate(self.queue_rows) if _key(row) == key), None)
            if index is not None:
                return index
        group = self.pending_group or (previous.progress.group if previous is not None else "")
        return next((number for number, row in enumerate(self.queue_rows) if row.progress.group == group), 0)

    def pinned_rows(self) -> list[tuple[int, GroupRow]]:
        """Return the rows that are pinned on the log, each with the offset that its group reads next."""
        return [(row.unread, row) for row in self.queue_rows[:MAX_PINS] if row.unread is not None]

    # ---- what the view says ------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return how many groups there are and how far they are behind."""
        if self._groups is None:
            return ""
        if self._groups.unknown is not None and not self.queue_rows:
            return tr("The progress of groups: {why}", why=engine_words(self._groups.unknown))
        progress_list = [row.progress for row in self.queue_rows]
        return tr_plural(
            "{groups}, {offsets}, {n:,} message behind",
            "{groups}, {offsets}, {n:,} messages behind",
            n=sum(progress.behind for progress in progress_list),
            groups=tr_plural("{n:,} group", "{n:,} groups", n=len({progress.group for progress in progress_list})),
            offsets=tr_plural("{n:,} offset", "{n:,} offsets", n=len(progress_list)),
        )

    def head_note(self) -> str:
        """Return what was compared and when retention deletes, for the head of the table."""
        groups = self._groups
        source = tr("config/{file} against the queues", file=groups.file if groups is not None else OFFSETS)
        if groups is None:
            return source
        rule = tr(
            "retention: files older than {hours:,} h, at {when} h",
            hours=groups.reserved_hours,
            when=groups.delete_when,
        )
        rule_source = tr("as the broker is configured") if groups.configured else tr("by RocketMQ's defaults")
        broker_note = "" if groups.running else tr("; no broker runs, nothing is deleted before one does")
        return f"{source} · {rule}, {rule_source}{broker_note}"

    def table_state(self) -> TableState | None:
        """Return the message of the table: loading, error, empty. None if its rows need no message."""
        if self.error:
            return TableState("error", self.error)
        if self._groups is None or self.queue_rows:
            return None
        if self._groups.unknown is not None:
            return TableState("unread", self.summary())
        text = tr("No group has an offset in this store. Looked at: consumerOffset.json and its .bak")
        return TableState("empty", text)


def sentences(row: GroupRow | GroupSum | None) -> tuple[str, str]:
    """Return the sentence of a row, with short names and with full ones."""
    if row is None:
        return "", ""
    if isinstance(row, GroupSum):
        return sum_sentence(row), sum_sentence(row)
    return sentence(row, MAX_CHARACTERS), sentence(row)


def _key(row: GroupRow) -> tuple[str, str, int]:
    return row.progress.group, row.progress.topic, row.progress.queue_id
