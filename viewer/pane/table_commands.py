"""What every table answers: copying, exporting and stepping; and the equal command of the terminal for a row."""

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
    """For ``RecordView.copier``: the row's command, of whose words ``line`` makes a command line."""

    def text(what: str, record: Record) -> str | None:
        command = table.kind.command
        if what != "cli" or command is None:
            return None
        return line(command(record))

    return text


def use_cell(pane: Pane, shown: Callable[[], RecordView], how: str) -> None:
    """Use the chosen cell of the table in front as a condition for the log."""
    table = shown()
    row, at = table.current_row(), table.currentIndex().column()
    term = None
    if row is not None and 0 <= at < len(table.kind.columns):
        term = cell_term(table.kind.name, table.kind.columns[at], row)
    if term is None:
        pane.statusMessage.emit(tr("This value cannot be asked for in a filter."))
    else:
        use_term(table, how, term)


def table_commands(pane: Pane, table: Callable[[], RecordView], name: str) -> dict[str, Callable[[], object]]:
    """The commands that act on the table in front; ``name`` is the file that an export proposes."""
    return {
        "copy.cell": lambda: table().copy_current("cell"),
        "copy.row": lambda: table().copy_current("row"),
        "copy.json": lambda: table().copy_current("json"),
        "copy.cli": lambda: table().copy_current("cli"),
        **{name: partial(use_cell, pane, table, how) for name, how in CELL_COMMANDS.items()},
        **find_commands(pane, table),
        "frequency.open": lambda: table_frequency(pane, table()),
        "export.table": lambda: ask_export(pane, table(), name),
        "list.next": lambda: table().choose_next(1),
        "list.previous": lambda: table().choose_next(-1),
        "go.first": lambda: table().first_row(),
        "go.last": lambda: table().last_row(),
    }
