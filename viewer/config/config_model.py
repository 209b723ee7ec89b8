"""The state of the Config view: the tables, which of them is chosen, and what its two pages say. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from engine.inspection.tree_values import MAX_VALUES, Change, Value, changes, value_text, values
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from engine.codec.config_tables import Table, TableFile
    from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table, its ``.bak`` (None if absent), and the changes between them (None if one cannot be read)."""

    table: Table
    bak: TableFile | None
    changes: tuple[Change, ...] | None

    @property
    def name(self) -> str:
        """File name of the table."""
        return self.table.name

    @property
    def differing(self) -> str:
        """Number of values that differ from the ``.bak``, in words."""
        if self.changes is not None:
            return tr_plural("{n:,} value", "{n:,} values", n=len(self.changes)) if self.changes else tr("the same")
        return "" if self.bak is None else tr("not comparable")


@dataclass
class ConfigModel:
    """The tables below ``config/`` of one store."""

    rows: list[TableRow] = field(default_factory=list)
    chosen: TableRow | None = None
    pending_table: str = ""
    """The table that a place names. It is chosen when the tables have been read."""
    error: str = ""
    _was_read: bool = False

    def forget_store(self) -> None:
        """Forget the tables, for another store."""
        self.rows, self.chosen, self.error, self._was_read = [], None, "", False

    def take(self, rows: list[TableRow]) -> int | None:
        """Take the newest tables. Return the row to choose: the pending table, the one chosen before, or the first."""
        chosen_name = self.chosen.name if self.chosen is not None else ""
        self.rows, self.error, self._was_read = rows, "", True
        names = [row.name for row in rows]
        index = next((names.index(name) for name in (self.pending_table, chosen_name) if name in names), 0)
        self.pending_table = ""
        self.chosen = rows[index] if rows else None
        return index if rows else None

    def fail(self, error: str) -> None:
        """Note why the tables could not be read."""
        self.error = error

    # ---- what the view says ------------------------------------------------------------------------------------------

    def status(self) -> str:
        """Return the number of tables in words."""
        return tr_plural("{n:,} table", "{n:,} tables", n=len(self.rows)) if self.rows else ""

    def table_state(self) -> TableState | None:
        """Return the message of the list of tables: loading, error, empty. None if its rows need no message."""
        if self.error:
            return TableState("error", self.error)
        if self._was_read and not self.rows:
            return TableState("empty", tr("The store has no tables below config/."))
        return None

    def values(self) -> list[Value]:
        """Return the first values of the chosen table."""
        if self.chosen is None:
            return []
        return [
            Value(value.path, value_text(value.value)) for value in islice(values(self.chosen.table.value), MAX_VALUES)
        ]

    def values_state(self, count: int) -> TableState | None:
        """Return the message of the page that shows ``count`` values. None if it needs no message."""
        if self.chosen is None:
            return TableState("empty", tr("No table, no values."))
        table = self.chosen.table
        if table.used not in {"main", "rocksdb"}:
            return TableState("note" if count and table.value else "error", engine_words(table.why))
        if count >= MAX_VALUES:
            return TableState("cut", tr_plural("The first {n:,} value", "The first {n:,} values", n=MAX_VALUES))
        return None if table.value else TableState("empty", tr("The table is empty."))

    def changes_state(self) -> TableState | None:
        """Return the message of the comparison with the ``.bak``. None if its rows need no message."""
        row = self.chosen
        if row is None:
            return TableState("empty", tr("No table, no values."))
        main, bak = row.table.main, row.bak
        if bak is None:
            return TableState("empty", tr("There is no {name}.", name=f"{row.name}.bak"))
        if row.changes is None:
            unreadable_file = main if main.state != "ok" else bak
            text = tr(
                "{file} cannot be read ({why}): there is nothing to compare.",
                file=unreadable_file.name,
                why=engine_words(unreadable_file.complaint or ""),
            )
            return TableState("error", text)
        if not row.changes:
            return TableState("empty", tr("{name} is the same as its .bak.", name=row.name))
        return TableState("note", engine_words(row.table.why)) if main.state != "ok" else None


def read_rows(store: StoreSnapshot) -> list[TableRow]:
    """Read all tables and their ``.bak`` files."""
    from engine.inspection.tables import read_backup, read_tables

    return [_table_row(table, read_backup(store, table.name)) for table in read_tables(store)]


def _table_row(table: Table, bak: TableFile | None) -> TableRow:
    main = table.main.parsed
    if bak is None or main is None or bak.parsed is None or main.fault is not None or bak.parsed.fault is not None:
        return TableRow(table, bak, None)
    return TableRow(table, bak, tuple(changes(main.value, bak.parsed.value)))
