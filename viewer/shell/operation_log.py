"""The operation log: every command with its parameters and the equal command line; and the box that shows it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.theme import px
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row
from viewer.widgets.columns import RecordKind, text_column, time_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

MAX_OPERATIONS = 2000
"""Largest number of operations in the log. Older ones are dropped."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A command that ran: time (ms), id, words, parameters, and the equal command line ("" if there is none)."""

    at: int
    id: str
    words: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    cli: str = ""

    @property
    def shown(self) -> str:
        """The parameters as text: ``filter=size > 3 · rows=12``."""
        return " · ".join(f"{name}={value}" for name, value in self.parameters.items() if value not in ("", None))


class Operations(QObject):
    """The log of a window. ``operationAdded()`` is emitted for each new operation.

    ``command_line`` makes a command line from words in which ``STORE`` is the open store; "" if none is open.
    """

    operationAdded = Signal()

    def __init__(self, command_line: Callable[[Sequence[str]], str]) -> None:
        super().__init__()
        self._command_line = command_line
        self.list: deque[Operation] = deque(maxlen=MAX_OPERATIONS)

    def listen(self, action: QAction, line: Sequence[str] = (), name_in_words: Callable[[], str] | None = None) -> None:
        """Note the command of ``action`` each time it runs.

        ``line`` is the words of the equal command line, with ``STORE`` for the store. ``name_in_words`` is
        the command's name if it differs from the action's text.
        """
        name, called = action.objectName(), name_in_words or action.text
        action.triggered.connect(lambda _on=False: self._note_action(name, called(), line))

    def note(self, name: str, words: str, parameters: object, cli: str) -> None:
        """Add an operation. ``parameters`` is a dictionary."""
        noted_parameters = dict(parameters) if isinstance(parameters, Mapping) else {}
        self.list.append(Operation(time.time_ns() // 1_000_000, name, words, noted_parameters, cli))
        self.operationAdded.emit()

    def note_go_to(self, text: str, words: str) -> None:
        """Note a use of the go-to box."""
        line = self._command_line(["storescope", "view", "STORE", "--at", text])
        if text.strip() and line:
            self.note("go.to", words, {"place": text}, line)

    def clear(self) -> None:
        """Delete all entries."""
        self.list.clear()
        self.operationAdded.emit()

    def script(self) -> str:
        """Return all command lines in order, without immediate repetitions."""
        lines: list[str] = []
        for operation in self.list:
            if operation.cli and (not lines or lines[-1] != operation.cli):
                lines.append(operation.cli)
        return "\n".join(lines)

    def _note_action(self, name: str, words: str, line: Sequence[str]) -> None:
        command = self._command_line(["storescope", *line]) if line else ""
        self.note(name, words.replace("&&", "&"), {}, command)


KIND = RecordKind(
    "operation",
    (
        time_column("at", words("Time")),
        text_column("words", words("Command"), 190),
        text_column("shown", words("Parameters"), 250, mono=True),
        text_column("cli", words("Command line"), 300, mono=True),
    ),
    record=lambda o: {"at": o.at, "id": o.id, "parameters": dict(o.parameters), "cli": o.cli},
)


class OperationsBox(QDialog):
    """Shows the log and updates while it is open."""

    def __init__(self, log: Operations, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("operations.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Operation log"))
        self.setAccessibleName(tr("Operation log"))
        self.resize(px(980), px(460))
        self._log = log
        self.table = RecordView("operations.table", KIND)
        self.table.setAccessibleName(tr("Operation log"))
        copy_current, copy_all, clear, close = (
            Button(tr("Copy this command line")),
            Button(tr("Copy all command lines")),
            Button(tr("Clear"), "flat"),
            Button(tr("Close")),
        )
        for button, name in ((copy_current, "one"), (copy_all, "all"), (clear, "clear"), (close, "close")):
            button.setObjectName(f"operations.{name}")
        copy_current.clicked.connect(self._copy_one)
        copy_all.clicked.connect(lambda: QGuiApplication.clipboard().setText(log.script()))
        clear.clicked.connect(log.clear)
        close.clicked.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        explanation = tr("Every command with its parameters, and its command line if the terminal can do it too.")
        layout.addWidget(Label(explanation, 12, "text3"))
        layout.addWidget(self.table, 1)
        layout.addWidget(row(copy_current, copy_all, None, clear, close))
        log.operationAdded.connect(self._fill)
        self._fill()

    def _fill(self) -> None:
        rows = list(self._log.list)
        self.table.set_state(None if rows else State("hint", tr("Nothing was done yet.")))
        self.table.set_rows(rows)
        self.table.last_row()

    def _copy_one(self) -> None:
        operation = self.table.current_row()
        if operation is not None and operation.cli:
            QGuiApplication.clipboard().setText(operation.cli)
