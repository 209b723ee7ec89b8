"""What a table's context menu copies beyond its texts: the equal command of the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from viewer.models.columns import Record
from viewer.widgets.record_view import RecordView


def command_copier(table: RecordView, path: str) -> Callable[[str, Record], str | None]:
    """For ``RecordView.copier``: the row's command with the store's ``path`` in the place of ``STORE``."""

    def text(what: str, record: Record) -> str | None:
        command = table.kind.command
        if what != "cli" or command is None:
            return None
        return shlex.join([path if word == "STORE" else word for word in command(record)])

    return text
