"""Commands of every table: copy, export, step; and the equal command line for a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from viewer.look.assets import tr
from viewer.pane import Pane
from viewer.pane.exporting import ask_export
from viewer.pane.frequency import table_frequency
from viewer.pane.table_find import find_commands
from viewer.widgets.cell_filter import CELL_COMMANDS, cell_term
from viewer.widgets.columns import Record
from viewer.widgets.record_menu import use_term
from viewer.widgets.record_view import RecordView


def command_copier(table: RecordView, line: Callable[[Sequence[str]], str]) -> Callable[[str, Record], str | None]:
    """Return a function for ``RecordView.copier`` that makes a row's command line with ``line``."""

    def text(form: str, record: Record) -> str | None:
        command = table.kind.command
        if form != "cli" or command is None:
            return None
        return line(command(record))

    return text


def use_cell(pane: Pane, shown: Callable[[], RecordView], action_name: str) -> None:
    """Use the selected cell of the current table as a condition for the log."""
    table = shown()
    row, column_index = table.current_row(), table.currentIndex().column()
    term = None
    if row is not None and 0 <= column_index < len(table.kind.columns):
        term = cell_term(table.kind.name, table.kind.columns[column_index], row)
    if term is None:
        pane.statusMessage.emit(tr("A filter cannot search for this value."))
    else:
        use_term(table, action_name, term)


def table_commands(pane: Pane, table: Callable[[], RecordView], name: str) -> dict[str, Callable[[], object]]:
    """Return the commands of the current table. ``name`` is the file name that an export proposes."""

    def open_columns() -> None:
        table().fitting.open_menu()

    return {
        "copy.cell": lambda: table().copy_current("cell"),
        "copy.row": lambda: table().copy_current("row"),
        "copy.json": lambda: table().copy_current("json"),
        "copy.cli": lambda: table().copy_current("cli"),
        **{name: partial(use_cell, pane, table, action_name) for name, action_name in CELL_COMMANDS.items()},
        **find_commands(pane, table),
        "columns.choose": open_columns,
        "frequency.open": lambda: table_frequency(pane, table()),
        "export.table": lambda: ask_export(pane, table(), name),
        "list.next": lambda: table().choose_next(1),
        "list.previous": lambda: table().choose_next(-1),
        "go.first": lambda: table().first_row(),
        "go.last": lambda: table().last_row(),
    }
