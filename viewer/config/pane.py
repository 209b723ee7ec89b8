"""The tables below config/: the file of each that a broker would load and why, and its values.

A second page compares a table with its ``.bak``, the file before its last change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from engine.inspection.tree_values import Change
from viewer.config.config_model import ConfigModel, TableRow, read_rows
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime.places import Place
from viewer.widgets.basics import PaneHead
from viewer.widgets.boxes import splitter, stacked
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, gutter, text_column
from viewer.widgets.record_state import state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

USED_CHIPS = {
    "main": Chip("ok", words("loads")),
    "bak": Chip("warn", words("the .bak is used")),
    "rocksdb": Chip("ok", words("in a RocksDB")),
    "defaults": Chip("warn", words("defaults are used")),
    "nothing": Chip("error", words("broker does not start")),
}
CHANGE_CHIPS = {
    "differs": Chip("note", words("changed")),
    "here": Chip("ok", words("added")),
    "there": Chip("warn", words("removed")),
}


def _used(row: TableRow) -> Chip:
    chip = USED_CHIPS[row.table.used]
    return Chip(chip.kind, tr(chip.word))


def _change(change: Change) -> Chip:
    chip = CHANGE_CHIPS[change.kind]
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
            lambda row: row.differing,
            lambda row: None if row.changes is None else len(row.changes),
        ),
        Column("why", words("Why"), 300, lambda row: engine_words(row.table.why), lambda row: row.table.why),
    ),
    verdict=lambda row: _used(row).word,
    record=lambda row: {
        "type": "config",
        "table": row.name.removesuffix(".json"),
        "file": row.table.file,
        "used": row.table.used,
        "why": row.table.why,
        "value": row.table.value,
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
        text_column("second_text", words("In the .bak"), 260, mono=True, filterable=False),
        text_column("first_text", words("In the .json"), 260, mono=True, filterable=False),
    ),
    verdict=lambda row: _change(row).word,
    record=lambda row: {"path": row.path, "change": row.kind, "bak": row.second_text, "json": row.first_text},
)


class ConfigPane(Pane):
    """View with the tables on top and the values of the selected table below."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("config.pane")
        self.model = ConfigModel()
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
        """Show another store; its tables are read when the view is opened."""
        super().set_session(session)
        self.model.forget_store()
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        for table in (self.table, self.values, self.changes):
            table.set_rows([])

    def show_place(self, place: Place) -> None:
        """Show all tables and select the named one."""
        self.model.pending_table = place.name
        self.refresh()

    def refresh(self) -> None:
        """Read the tables again if the view is visible."""
        session = self.session
        if session is None or not self.isVisible():
            return

        def done(rows: list[TableRow]) -> None:
            if session is self.session:
                self._fill(rows)

        def failed(error: Exception) -> None:
            if session is self.session:
                self.model.fail(str(error))
                self.table.set_state(state_of(self.model.table_state()))

        session.jobs.read(lambda: read_rows(session.snapshot), done, failed)

    def _fill(self, rows: list[TableRow]) -> None:
        index = self.model.take(rows)
        chosen = self.model.chosen
        self.table.set_rows(list(rows))
        self.table.set_state(state_of(self.model.table_state()))
        self.statusMessage.emit(self.status())
        if index is not None:
            self.table.go_to_row(index)
        self._show_table(chosen)

    def _show_table(self, row: TableRow | None) -> None:
        self.model.chosen = row
        rows = self.model.values()
        if row is not None:
            self.values_head.set_title(row.table.file or row.name)
            self.values_head.set_note(tr_plural("{n:,} value", "{n:,} values", n=len(rows)))
        self.values.set_rows(rows)
        self.values.set_state(state_of(self.model.values_state(len(rows))))
        self.changes.set_rows(list(row.changes or ()) if row is not None else [])
        self.changes.set_state(state_of(self.model.changes_state()))

    def retheme(self) -> None:
        """Apply fonts and colours."""
        for table in (self.table, self.values, self.changes):
            table.refresh_look()

    def status(self) -> str:
        """Return the number of tables in words."""
        return self.model.status()

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.table, self.values

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying and stepping in the focused table."""
        return table_commands(self, self._focused_table, "config.jsonl")

    def _focused_table(self) -> RecordView:
        return next((table for table in (self.values, self.changes) if table.hasFocus()), self.table)
