"""The operation log as a table: when, what, with which parameters, and the command line that does the same."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.theme import px
from viewer.widgets.basics import Button, Label, row
from viewer.widgets.columns import RecordKind, text_column, time_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

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
    """Follows the log while it is open. ``log`` is a :class:`viewer.shell.operation_log.Operations`."""

    def __init__(self, log: object, parent: QWidget | None = None) -> None:
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
            Button(tr("Copy this command line")), Button(tr("Copy all command lines")), Button(tr("Clear"), "flat"),
            Button(tr("Close")),
        )  # fmt: skip
        for button, name in ((one, "one"), (every, "all"), (clear, "clear"), (close, "close")):
            button.setObjectName(f"operations.{name}")
        one.clicked.connect(self._copy_one)
        every.clicked.connect(lambda: QGuiApplication.clipboard().setText(log.script()))  # type: ignore[attr-defined]
        clear.clicked.connect(lambda: log.clear())  # type: ignore[attr-defined]  # noqa: PLW0108
        close.clicked.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        said = tr("Every command with its parameters; what the terminal can do too has its command line.")
        layout.addWidget(Label(said, 12, "text3"))
        layout.addWidget(self.table, 1)
        layout.addWidget(row(one, every, None, clear, close))
        log.noted.connect(self._fill)  # type: ignore[attr-defined]
        self._fill()

    def _fill(self) -> None:
        rows = list(self._log.list)  # type: ignore[attr-defined]
        self.table.set_state(None if rows else State("empty", tr("Nothing was done yet.")))
        self.table.set_rows(rows)
        self.table.last_row()

    def _copy_one(self) -> None:
        one = self.table.current_row()
        if one is not None and one.cli:
            QGuiApplication.clipboard().setText(one.cli)
