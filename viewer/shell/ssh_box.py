"""The box that asks for the address of a store on another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout

from engine.errors import UsageError
from engine.ssh.address import is_ssh_address, parse_address
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row

if TYPE_CHECKING:
    from viewer.shell.main_window import MainWindow

EXAMPLE = "ssh://ops@broker-a/data/rocketmq/store"


class SshBox(QDialog):
    """Asks for an address, and opens the store that it names."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.setObjectName("ssh.box")
        self.setWindowTitle(tr("Open a store on another machine"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._window = window
        self.address = Field(EXAMPLE, code=True)
        self.address.setObjectName("ssh.address")
        self.address.setAccessibleName(tr("Address of the store"))
        self.address.setMinimumWidth(px(420))
        recent = next((store.path for store in window.settings.recent if is_ssh_address(store.path)), "")
        self.address.setText(str(parse_address(recent)) if recent else "")
        self.problem = Label("", 12, "error", wrap=True, select=True)
        self.problem.setObjectName("ssh.problem")
        self.problem.hide()
        self.open_button = Button(tr("Open"), "primary")
        self.open_button.setObjectName("ssh.open")
        cancel = Button(tr("Cancel"))
        cancel.setObjectName("ssh.cancel")
        hint = Label(
            tr(
                "The store is read through ssh with the user's key. The server needs a Python; nothing is installed or "
                "written there."
            ),
            12,
            "text2",
            wrap=True,
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(px(16),) * 4)
        layout.setSpacing(px(10))
        layout.addWidget(Label(tr("Address: ssh://USER@HOST:PORT/path of the store"), 13))
        layout.addWidget(self.address)
        layout.addWidget(hint)
        layout.addWidget(self.problem)
        layout.addWidget(row(None, cancel, self.open_button, gap=8))
        cancel.clicked.connect(self.reject)
        self.open_button.clicked.connect(self._open)
        self.address.returnPressed.connect(self._open)
        self.address.textChanged.connect(self.problem.hide)

    def _open(self) -> None:
        """Open the store; an address that is none is named here."""
        text = self.address.text().strip()
        if text and "://" not in text and "@" in text:
            host, _, path = text.partition(":")  # as scp names a folder
            text = f"ssh://{host}{path}"
        try:
            address = parse_address(text)
        except UsageError as error:
            self.problem.setText(engine_words(str(error)))
            self.problem.show()
            return
        self.accept()
        self._window.ask_open(address.root)
