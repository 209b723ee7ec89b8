"""What every table answers: copying, exporting and stepping; and the equal command of the terminal for a row."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from viewer.models.columns import Record
from viewer.panes import Pane
from viewer.panes.exporting import ask_export
from viewer.widgets.record_view import RecordView


def command_copier(table: RecordView, path: str) -> Callable[[str, Record], str | None]:
    """For ``RecordView.copier``: the row's command with the store's ``path`` in the place of ``STORE``."""

    def text(what: str, record: Record) -> str | None:
        command = table.kind.command
        if what != "cli" or command is None:
            return None
        return shlex.join([path if word == "STORE" else word for word in command(record)])

    return text


def table_commands(pane: Pane, table: Callable[[], RecordView], name: str) -> dict[str, Callable[[], object]]:
    """The commands that act on the table in front; ``name`` is the file that an export proposes."""
    return {
        "copy.cell": lambda: table().copy_current("cell"),
        "copy.row": lambda: table().copy_current("row"),
        "copy.json": lambda: table().copy_current("json"),
        "copy.cli": lambda: table().copy_current("cli"),
        "export.table": lambda: ask_export(pane, table(), name),
        "list.next": lambda: table().choose_next(1),
        "list.previous": lambda: table().choose_next(-1),
        "go.first": lambda: table().first_row(),
        "go.last": lambda: table().last_row(),
    }
