"""The tables below config/: which file of each a broker would load and why, and what is in it, value by value.

Beside its values a table has what differs between it and its ``.bak``, the file that it was before its last change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QStackedWidget, QVBoxLayout

from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime.places import Place
from viewer.widgets.basics import PaneHead, WordTabs, splitter, stacked
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, gutter, text_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.tree_values import MOST_VALUES, Change, Value, changes, value_text, values

if TYPE_CHECKING:
    from engine.codec.config_tables import Table, TableFile
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.runtime.store_session import StoreSession

USED = {
    "main": Chip("ok", words("loads")),
    "bak": Chip("warn", words("the .bak counts")),
    "defaults": Chip("warn", words("defaults count")),
    "nothing": Chip("error", words("broker does not start")),
}
CHANGES = {
    "differs": Chip("note", words("changed")),
    "here": Chip("ok", words("added")),
    "there": Chip("warn", words("removed")),
}


@dataclass(frozen=True, slots=True)
class Told:
    """A table, the ``.bak`` beside it (None: there is none), and what differs (None: one of both cannot be read)."""

    table: Table
    bak: TableFile | None
    changes: tuple[Change, ...] | None

    @property
    def name(self) -> str:
        """The table's file."""
        return self.table.name

    @property
    def differing(self) -> str:
        """How many values are not those of the ``.bak``, in words."""
        if self.changes is not None:
            return tr("{n:,} values", n=len(self.changes)) if self.changes else tr("the same")
        return "" if self.bak is None else tr("not comparable")


def _used(told: Told) -> Chip:
    chip = USED[told.table.used]
    return Chip(chip.kind, tr(chip.word))


def _change(change: Change) -> Chip:
    chip = CHANGES[change.kind]
    return Chip(chip.kind, tr(chip.word))


TABLES = RecordKind(
    "config",
    (
        gutter(12),
        text_column("name", words("Table"), 220, mono=True),
        chip_column("used", words("A broker"), 190, _used),
        Column(
            "bak",
            words("Against its .bak"),
            130,
            lambda told: told.differing,
            lambda told: None if told.changes is None else len(told.changes),
        ),
        Column("why", words("Why"), 300, lambda told: engine_words(told.table.why), lambda told: told.table.why),
    ),
    verdict=lambda told: _used(told).word,
    record=lambda told: {
        "type": "config",
        "table": told.name.removesuffix(".json"),
        "file": told.table.file,
        "used": told.table.used,
        "why": told.table.why,
        "value": told.table.value,
    },
    command=lambda _row: ["storescope", "config", "STORE"],
)
VALUES = RecordKind(
    "configValue",
    (
        gutter(12),
        text_column("path", words("Name"), 420, mono=True, elide="middle"),
        text_column("value", words("Value"), 360, mono=True),
    ),
    record=lambda row: {row.path: row.value},
)
DIFFERENCES = RecordKind(
    "configChange",
    (
        gutter(12),
        chip_column("kind", words("Change"), 110, _change, filterable=False),
        text_column("path", words("Name"), 420, mono=True, elide="middle", filterable=False),
        text_column("other", words("In the .bak"), 260, mono=True, filterable=False),
        text_column("one", words("In the .json"), 260, mono=True, filterable=False),
    ),
    verdict=lambda row: _change(row).word,
    record=lambda row: {"path": row.path, "change": row.kind, "bak": row.other, "json": row.one},
)


class ConfigPane(Pane):
    """Tables on top, the chosen table's values below."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("config.pane")
        self._wanted = ""
        self._tables: list[Told] = []
        self.head = PaneHead(tr("Config"), tr("the tables below config/, as a broker would load them"))
        self.table = RecordView("config.tables", TABLES)
        self.table.setAccessibleName(tr("Configuration tables"))
        self.values = RecordView("config.values", VALUES)
        self.values.setAccessibleName(tr("Values of the table"))
        self.changes = RecordView("config.changes", DIFFERENCES)
        self.changes.setAccessibleName(tr("What differs between the table and its .bak"))
        self.tabs = WordTabs("config.tabs", (("values", tr("Values")), ("changes", tr("Against its .bak"))))
        self._pages = QStackedWidget()
        for page in (self.values, self.changes):
            self._pages.addWidget(stacked(page, page.strip, room=0))
        self.tabs.chosen.connect(lambda key: self._pages.setCurrentIndex(int(key == "changes")))
        self.values_head = PaneHead(tr("Values"), "", self.tabs)
        self.table.rowChosen.connect(self._show_table)
        top = stacked(self.head, self.table, self.table.strip)
        below = stacked(self.values_head, self._pages)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter(True, (top, 300), (below, 500)))

    def set_session(self, session: StoreSession | None) -> None:
        """Read the tables of another store when they are asked for."""
        super().set_session(session)
        self._tables = []
        self.table.copier = None if session is None else command_copier(self.table, str(session.path))
        for table in (self.table, self.values, self.changes):
            table.set_rows([])

    def show_place(self, place: Place) -> None:
        """All tables, one of them chosen."""
        self._wanted = place.name
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again, where somebody looks; for the store that is still open then."""
        session = self.session
        if session is None or not self.isVisible():
            return

        def done(tables: list[Told]) -> None:
            if session is self.session:
                self._fill(tables)

        def failed(error: Exception) -> None:
            self.table.set_state(State("error", str(error)))

        session.jobs.read(lambda: _read(session.snapshot), done, failed)

    def _fill(self, tables: list[Told]) -> None:
        self._tables = tables
        self.table.set_rows(list(tables))
        self.table.set_state(None if tables else State("empty", tr("The store has no tables below config/.")))
        self.statusMessage.emit(self.status())
        names = [table.name for table in tables]
        at = names.index(self._wanted) if self._wanted in names else 0
        if tables:
            self.table.go_to_row(at)
            self._show_table(tables[at])
        else:
            self._show_table(None)

    def _show_table(self, told: Told | None) -> None:
        if told is None:
            for table in (self.values, self.changes):
                table.set_rows([])
                table.set_state(State("empty", tr("No table, no values.")))
            return
        self._show_values(told.table)
        self._show_changes(told)

    def _show_values(self, table: Table) -> None:
        rows = [Value(value.path, value_text(value.value)) for value in islice(values(table.value), MOST_VALUES)]
        self.values_head.set_title(table.file or table.name)
        self.values_head.set_note(tr("{n:,} values", n=len(rows)))
        self.values.set_rows(rows)
        if table.used != "main":
            self.values.set_state(State("note" if rows and table.value else "error", engine_words(table.why)))
        elif len(rows) >= MOST_VALUES:
            self.values.set_state(State("cut", tr("The first {n:,} values", n=MOST_VALUES)))
        else:
            self.values.set_state(None if table.value else State("empty", tr("The table is empty.")))

    def _show_changes(self, told: Told) -> None:
        self.changes.set_rows(list(told.changes or ()))
        main, bak = told.table.main, told.bak
        if bak is None:
            state = State("empty", tr("There is no {name}.", name=f"{told.name}.bak"))
        elif told.changes is None:
            bad = main if main.state != "ok" else bak
            said = tr(
                "{file} cannot be read ({why}): there is nothing to compare.",
                file=bad.name,
                why=engine_words(bad.complaint or ""),
            )
            state = State("error", said)
        elif not told.changes:
            state = State("empty", tr("{name} says the same as its .bak.", name=told.name))
        elif main.state != "ok":
            state = State("note", engine_words(told.table.why))
        else:
            state = None
        self.changes.set_state(state)

    def retheme(self) -> None:
        """Fonts and colours."""
        for table in (self.table, self.values, self.changes):
            table.refresh_look()

    def status(self) -> str:
        """How many tables there are."""
        return tr("{n:,} tables", n=len(self._tables)) if self._tables else ""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying and stepping, in the table that has the focus."""
        return table_commands(self, self._in_front, "config.jsonl")

    def _in_front(self) -> RecordView:
        return next((table for table in (self.values, self.changes) if table.hasFocus()), self.table)


def _read(store: StoreSnapshot) -> list[Told]:
    from engine.inspection.tables import read_backup, read_tables

    return [_told(table, read_backup(store, table.name)) for table in read_tables(store)]


def _told(table: Table, bak: TableFile | None) -> Told:
    main = table.main.parsed
    if bak is None or main is None or bak.parsed is None or main.fault is not None or bak.parsed.fault is not None:
        return Told(table, bak, None)
    return Told(table, bak, tuple(changes(main.value, bak.parsed.value)))
