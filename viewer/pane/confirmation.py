"""The dialog that asks before something is written, and who has a store open for writing.

The title names the action and its place, the body says in numbers what goes and what stays, the default is
Cancel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from engine import system
from engine.mapped.store_lock import holder_of
from viewer.look.assets import tr
from viewer.look.theme import px
from viewer.widgets.basics import Button, ElidedLine, Label
from viewer.widgets.boxes import row

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

MAX_NAME_CHARACTERS = 80


class Confirmation(QDialog):
    """Emits ``confirmed()`` when the action's button is pressed; Cancel is the default."""

    confirmed = Signal()

    def __init__(self, parent: QWidget, name: str, title: str, place: str, agree: str) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.cancel = Button(tr("Cancel"))
        self.cancel.setObjectName(f"{name}.cancel")
        self.cancel.setDefault(True)
        self.cancel.clicked.connect(self.reject)
        self.agree = Button(agree, "danger")
        self.agree.setObjectName(f"{name}.deed")
        self.agree.clicked.connect(lambda: (self.confirmed.emit(), self.accept()))
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(px(20), px(16), px(20), px(14))
        self.box.setSpacing(px(10))
        self.box.addWidget(Label(title, 18, "text", 600))
        if place:
            self.box.addWidget(ElidedLine(place, 12, "text2", code=True, middle=True))

    def finish(self) -> None:
        """Add the buttons below the body."""
        self.box.addWidget(row(None, self.cancel, self.agree, gap=8))
        self.cancel.setFocus()


def holder(session: StoreSession) -> str:
    """Return who has the store open for writing, in words; empty if nobody. Takes no lock, writes nothing."""
    paths = session.snapshot.paths
    if paths is None or session.snapshot.lock_state != "held":
        return ""
    pid = holder_of(paths.lock)
    if pid is None:
        return tr("Another process has the store open for writing.")
    name = process_name(pid)
    return tr("Process {pid}{name} has the store open for writing.", pid=pid, name=f" ({name})" if name else "")


def process_name(pid: int) -> str:
    """Return the command of a process as the system reports it; empty if it does not."""
    try:
        words = (system.PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words[:3]).decode("utf-8", "replace").strip()[:MAX_NAME_CHARACTERS]
