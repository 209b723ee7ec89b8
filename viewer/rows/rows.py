"""Rows of a RocksDB that stand for messages, as ``storescope rows`` lists them, and the columns of their table. No Qt.

Reading follows each row into the log and belongs into a job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from engine.errors import CannotRead
from engine.inspection import records
from engine.inspection.rocksdb_rows import FAMILIES, MessageRow, RowSubject
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
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
)
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

MAX_ROWS = 20_000
"""Rows of one subject that are read; ``storescope rows`` lists all."""
SUBJECTS: tuple[RowSubject, ...] = tuple(FAMILIES)
TITLES: dict[RowSubject, str] = {
    "timer": words("Timers"),
    "transactions": words("Transactions"),
    "pop": words("Popped messages"),
    "index": words("Index entries"),
}
NONE: dict[RowSubject, str] = {
    "timer": words("No timer waits in the RocksDB."),
    "transactions": words("No transaction is open in the RocksDB."),
    "pop": words("No popped message waits for its acknowledgement in the RocksDB."),
    "index": words("The RocksDB of the index has no entry."),
}
STATES = {
    "waiting": Chip("chat", words("waiting")),
    "delivered": Chip("ok", words("delivered")),
    "open": Chip("chat", words("undecided")),
    "popped": Chip("chat", words("popped")),
    "indexed": Chip("ok", words("indexed")),
    "unreadable": Chip("error", words("unreadable")),
}
VERDICTS = {
    "match": Chip("ok", words("found in the log")),
    "deleted": Chip("out", words("deleted from the log")),
    "missing": Chip("error", words("not in the log")),
    "other": Chip("error", words("another message")),
    "unknown": Chip("unread", words("not known")),
}
TIMES: dict[RowSubject, str] = {
    "timer": words("Due"),
    "transactions": words("Time"),
    "pop": words("Visible again"),
    "index": words("Stored"),
}
COUNTS: dict[RowSubject, str] = {"transactions": words("Checks"), "pop": words("Failed revives")}


@dataclass(frozen=True, slots=True)
class RowLine:
    """A row of the table. ``key``: the key of an index entry, else the unique key."""

    number: int
    row: MessageRow
    file: str | None

    @property
    def subject(self) -> RowSubject:
        return self.row.subject

    @property
    def topic(self) -> str | None:
        return self.row.topic

    @property
    def queue_id(self) -> int | None:
        return self.row.queue_id

    @property
    def queue_offset(self) -> int | None:
        return self.row.queue_offset

    @property
    def group(self) -> str | None:
        return self.row.group

    @property
    def unique_key(self) -> str | None:
        return self.row.unique_key

    @property
    def key(self) -> str | None:
        return self.row.key_text if self.row.key_text is not None else self.row.unique_key

    @property
    def time(self) -> int | None:
        return self.row.time

    @property
    def count(self) -> int | None:
        return self.row.count

    @property
    def physical_offset(self) -> int | None:
        return self.row.physical_offset

    @property
    def state(self) -> str:
        return self.row.state

    @property
    def verdict(self) -> str:
        return self.row.verdict


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows of one subject. ``why``: why they cannot be read; ``folder``: that of the RocksDB, below the store."""

    subject: RowSubject
    lines: tuple[RowLine, ...] = ()
    exists: bool = True
    is_complete: bool = True
    folder: str = ""
    why: str = ""


def subjects_of(store: StoreSnapshot) -> tuple[RowSubject, ...]:
    """The subjects of which the store has rows in a RocksDB."""
    if store.kind != "store":
        return ()
    return tuple(subject for subject in SUBJECTS if store.rocksdb_rows.exist(subject))


def read_rows(store: StoreSnapshot, subject: RowSubject) -> RowsRead:
    """Read the first rows of a subject, each with its unit."""
    if store.kind != "store" or not store.rocksdb_rows.exist(subject):
        return RowsRead(subject, exists=False)
    folder = (store.rocksdb_rows.folder(subject) or "").removeprefix(f"{store.path}/")
    try:
        rows = list(islice(store.rocksdb_rows.rows(subject), MAX_ROWS + 1))
    except CannotRead as error:
        return RowsRead(subject, folder=folder, why=error.what)
    lines = tuple(RowLine(number, row, _file(store, row)) for number, row in enumerate(rows[:MAX_ROWS]))
    return RowsRead(subject, lines, is_complete=len(rows) <= MAX_ROWS, folder=folder)


def _file(store: StoreSnapshot, row: MessageRow) -> str | None:
    return (
        store.log.file_name(row.physical_offset) if row.unit is not None and row.physical_offset is not None else None
    )


@dataclass
class RowsModel:
    """The state of the view: the chosen subject and its rows."""

    subject: RowSubject = "timer"
    is_chosen: bool = False
    """True once the user has chosen a subject; before that the first one with rows is shown."""
    error: str = ""
    rows_read: RowsRead | None = field(default=None)

    def forget_store(self) -> None:
        """Forget what was read, and the choice."""
        self.rows_read, self.error, self.is_chosen, self.subject = None, "", False, "timer"

    def take(self, rows_read: RowsRead) -> None:
        """Take the newest rows."""
        self.rows_read, self.subject, self.error = rows_read, rows_read.subject, ""

    @property
    def lines(self) -> tuple[RowLine, ...]:
        return () if self.rows_read is None else self.rows_read.lines

    def line_like(self, previous: RowLine | None) -> int:
        """The number of the row that was chosen before, in the new rows; the first one if it is gone."""
        if previous is None:
            return 0
        numbers = (number for number, line in enumerate(self.lines) if line.row.key == previous.row.key)
        return next(numbers, 0)

    def head_note(self) -> str:
        """The place of the rows; it says if these are not all."""
        rows_read = self.rows_read
        if rows_read is None or not rows_read.folder:
            return tr("what a broker keeps in a RocksDB and not in files")
        if rows_read.is_complete:
            return rows_read.folder
        return tr("{folder} · the first {n:,}; the command rows lists all", folder=rows_read.folder, n=MAX_ROWS)

    def summary(self) -> str:
        """The counts for the status bar."""
        if self.rows_read is None or not self.lines:
            return ""
        wrong = sum(line.verdict in {"missing", "other"} for line in self.lines)
        return tr_plural(
            "{subject}: {n:,} row, {wrong}",
            "{subject}: {n:,} rows, {wrong}",
            n=len(self.lines),
            subject=tr(TITLES[self.subject]),
            wrong=tr_plural("{n:,} without its message", "{n:,} without their message", n=wrong)
            if wrong
            else tr("all lead to their message or to a deleted one"),
        )

    def table_state(self) -> TableState | None:
        """Return the message that replaces the rows. None if there are rows."""
        rows_read = self.rows_read
        if self.error:
            return TableState("error", self.error)
        if rows_read is None or rows_read.lines:
            return None
        if rows_read.why:
            return TableState("unread", engine_words(rows_read.why))
        if not rows_read.exists:
            return TableState("empty", tr("This store has no such rows in a RocksDB: its broker keeps them in files."))
        return TableState("empty", tr(NONE[rows_read.subject]))


_state, _verdict = translated_chip(STATES, "state"), translated_chip(VERDICTS, "verdict")


def _to_unit(line: RowLine) -> object | None:
    return places.log(line.physical_offset) if line.row.unit is not None else None


def _appearance(line: RowLine) -> RowAppearance | None:
    return RowAppearance(tone="text3") if line.verdict == "deleted" or line.state == "delivered" else None


def rows_kind(subject: RowSubject) -> RecordKind:
    """The columns for the rows of a subject, without those that it leaves empty."""
    columns: list[Column] = [gutter(12), chip_column("state", words("State"), 110, _state, filterable=False)]
    if subject != "transactions":
        columns.append(moment_column("time", TIMES[subject], 196))
    columns += queue_columns(has_offset=subject in {"pop", "index"})
    if subject in {"pop", "transactions"}:
        title = words("Group") if subject == "pop" else words("Producer group")
        columns.append(text_column("group", title, 150, elide="middle", filterable=False))
    columns.append(
        text_column("key", words("Key") if subject == "index" else words("Unique key"), 230, mono=True, elide="middle")
    )
    if subject in COUNTS:
        columns.append(number_column("count", COUNTS[subject], 110))
    columns += [
        number_column("physicalOffset", words("Physical offset"), 124, jump=_to_unit, elide="never"),
        chip_column("verdict", words("Message"), 170, _verdict, filterable=False),
    ]
    return RecordKind("row", tuple(columns), _appearance, lambda line: _verdict(line).word, record, command)


def record(line: RowLine) -> dict[str, Any]:
    """Return the row as ``rows --json`` prints it."""
    return records.message_row(line.row, line.file)


def command(line: RowLine) -> list[str]:
    """Return the command that prints the rows of this subject; ``STORE`` stands for the store's path."""
    return ["storescope", "rows", "STORE", "--of", line.subject, "--json"]
