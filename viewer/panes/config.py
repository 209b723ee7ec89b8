"""The tables below config/: which file of each a broker would load and why, and what is in it, value by value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QVBoxLayout

from viewer.assets import tr, words
from viewer.bridge.places import Place
from viewer.models.columns import Chip, RecordKind, chip_column, gutter, text_column
from viewer.panes import Pane
from viewer.panes.copying import command_copier, table_commands
from viewer.panes.table_reading import read_into
from viewer.widgets.kit import PaneHead, splitter, stacked
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.codec.tables import Table
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.bridge.store_session import StoreSession

MOST_VALUES = 200_000
DEEPEST = 32
USED = {
    "main": Chip("ok", words("loads")),
    "bak": Chip("warn", words("the .bak counts")),
    "defaults": Chip("warn", words("defaults count")),
    "nothing": Chip("error", words("broker does not start")),
}


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a table by its path."""

    path: str
    value: Any


def values(tree: Any, path: str = "", depth: int = 0) -> Iterator[Value]:
    """Every leaf of a parsed table, in its order, with its path."""
    if isinstance(tree, dict) and tree and depth < DEEPEST:
        for key, value in tree.items():
            yield from values(value, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(tree, list) and tree and depth < DEEPEST:
        for number, value in enumerate(tree):
            yield from values(value, f"{path}[{number}]", depth + 1)
    else:
        yield Value(path, tree)


def _used(table: Table) -> Chip:
    chip = USED[table.used]
    return Chip(chip.kind, tr(chip.word))


TABLES = RecordKind(
    "config",
    (
        gutter(12),
        text_column("name", words("Table"), 220, mono=True),
        chip_column("used", words("A broker"), 190, _used),
        text_column("why", words("Why"), 300),
    ),
    verdict=lambda table: _used(table).word,
    record=lambda table: {"type": "config", "table": table.name.removesuffix(".json"), "file": table.file,
                          "used": table.used, "why": table.why, "value": table.value},
    command=lambda _row: ["storescope", "config", "STORE"],
)  # fmt: skip
VALUES = RecordKind(
    "configValue",
    (
        gutter(12),
        text_column("path", words("Name"), 420, mono=True, elide="middle"),
        text_column("value", words("Value"), 360, mono=True),
    ),
    record=lambda row: {row.path: row.value},
)


class ConfigPane(Pane):
    """Tables on top, the chosen table's values below."""

    view_id = "config"
    title = "Config"

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("config.pane")
        self._wanted = ""
        self._tables: list[Table] = []
        self.head = PaneHead(tr("Config"), tr("the tables below config/, as a broker would load them"))
        self.table = RecordView("config.tables", TABLES)
        self.table.setAccessibleName(tr("Configuration tables"))
        self.values = RecordView("config.values", VALUES)
        self.values.setAccessibleName(tr("Values of the table"))
        self.values_head = PaneHead(tr("Values"))
        self.table.rowChosen.connect(self._show_table)
        top = stacked(self.head, self.table, self.table.strip)
        below = stacked(self.values_head, self.values, self.values.strip)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter(True, (top, 300), (below, 500)))

    def set_session(self, session: StoreSession | None) -> None:
        """Read the tables of another store when they are asked for."""
        super().set_session(session)
        self._tables = []
        self.table.copier = None if session is None else command_copier(self.table, str(session.path))
        self.table.set_rows([])
        self.values.set_rows([])

    def show_place(self, place: Place) -> None:
        """All tables, one of them chosen."""
        self._wanted = place.name
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again."""
        read_into(self, self.table, _read, self._fill)

    def _fill(self, tables: list[Table]) -> None:
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
            self.values.set_rows([])
            self.values.set_state(State("empty", tr("No table, no values.")))

    def _show_table(self, table: Table | None) -> None:
        if table is None:
            self.values.set_rows([])
            return
        rows: list[Value] = []
        for value in values(table.value):
            if len(rows) >= MOST_VALUES:
                break
            rows.append(Value(value.path, _text(value.value)))
        self.values_head.set_title(table.file or table.name)
        self.values_head.set_note(tr("{n:,} values", n=len(rows)))
        self.values.set_rows(rows)
        if table.main.complaint:
            self.values.set_state(State("error", f"{table.main.name}: {table.main.complaint}"))
        elif len(rows) >= MOST_VALUES:
            self.values.set_state(State("cut", tr("The first {n:,} values", n=MOST_VALUES)))
        else:
            self.values.set_state(None if table.value else State("empty", tr("The table is empty.")))

    def retheme(self) -> None:
        """Fonts and colours."""
        self.table.refresh_look()
        self.values.refresh_look()

    def status(self) -> str:
        """How many tables there are."""
        return tr("{n:,} tables", n=len(self._tables)) if self._tables else ""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying and stepping, in the table that has the focus."""
        return table_commands(self, lambda: self.values if self.values.hasFocus() else self.table, "config.jsonl")


def _read(store: StoreSnapshot) -> list[Table]:
    from engine.inspection.tables import read_tables

    return list(read_tables(store))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
