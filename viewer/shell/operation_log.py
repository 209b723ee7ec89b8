"""The operation log: every command that was given, with its parameters and the command line that does the same; and the
box that shows it.
"""

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
from viewer.widgets.basics import Button, Label, row
from viewer.widgets.columns import RecordKind, text_column, time_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

LONGEST = 2000
"""Operations that are kept; older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One: when (ms), the command's id, its words, its parameters, the equal command line ("" for none)."""

    at: int
    id: str
    words: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    cli: str = ""

    @property
    def shown(self) -> str:
        """``filter=size > 3 · rows=12``."""
        return " · ".join(f"{name}={value}" for name, value in self.parameters.items() if value not in ("", None))


class Operations(QObject):
    """``noted()`` when one was added. ``command_line`` makes one of words of which ``STORE`` is the open store; ""
    where none is open.
    """

    noted = Signal()

    def __init__(self, command_line: Callable[[Sequence[str]], str]) -> None:
        super().__init__()
        self._command_line = command_line
        self.list: deque[Operation] = deque(maxlen=LONGEST)

    def listen(self, action: QAction, line: Sequence[str] = (), name_in_words: Callable[[], str] | None = None) -> None:
        """Note the command of ``action`` each time it is given.

        ``line``: what the command line says for the same, ``STORE`` stands for the store. ``name_in_words``: what the
        command is called, where that is not the action's text.
        """
        name, called = action.objectName(), name_in_words or action.text
        action.triggered.connect(lambda _on=False: self._given(name, called(), line))

    def note(self, name: str, words: str, parameters: object, cli: str) -> None:
        """Add one; ``parameters`` is a dictionary."""
        made = dict(parameters) if isinstance(parameters, Mapping) else {}
        self.list.append(Operation(time.time_ns() // 1_000_000, name, words, made, cli))
        self.noted.emit()

    def went(self, text: str, words: str) -> None:
        """The go-to box was used."""
        line = self._command_line(["storescope", "view", "STORE", "--at", text])
        if text.strip() and line:
            self.note("go.to", words, {"place": text}, line)

    def clear(self) -> None:
        """Forget all."""
        self.list.clear()
        self.noted.emit()

    def script(self) -> str:
        """The command lines of all that have one, in order, each once in a row."""
        lines: list[str] = []
        for one in self.list:
            if one.cli and (not lines or lines[-1] != one.cli):
                lines.append(one.cli)
        return "\n".join(lines)

    def _given(self, name: str, words: str, line: Sequence[str]) -> None:
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
    """Shows the log, and follows it while it is open."""

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
        one, every, clear, close = (
            Button(tr("Copy this command line")),
            Button(tr("Copy all command lines")),
            Button(tr("Clear"), "flat"),
            Button(tr("Close")),
        )
        for button, name in ((one, "one"), (every, "all"), (clear, "clear"), (close, "close")):
            button.setObjectName(f"operations.{name}")
        one.clicked.connect(self._copy_one)
        every.clicked.connect(lambda: QGuiApplication.clipboard().setText(log.script()))
        clear.clicked.connect(log.clear)
        close.clicked.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        said = tr("Every command with its parameters; what the terminal can do too has its command line.")
        layout.addWidget(Label(said, 12, "text3"))
        layout.addWidget(self.table, 1)
        layout.addWidget(row(one, every, None, clear, close))
        log.noted.connect(self._fill)
        self._fill()

    def _fill(self) -> None:
        rows = list(self._log.list)
        self.table.set_state(None if rows else State("empty", tr("Nothing was done yet.")))
        self.table.set_rows(rows)
        self.table.last_row()

    def _copy_one(self) -> None:
        one = self.table.current_row()
        if one is not None and one.cli:
            QGuiApplication.clipboard().setText(one.cli)
