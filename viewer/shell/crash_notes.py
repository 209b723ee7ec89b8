"""Crash notes: the traceback of a run that crashed, which the next start shows to the user.

They stay on this machine; nothing is sent.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import mono, px
from viewer.widgets.about_box import facts
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row

NAME = "last-words.txt"
OLD = "last-words.old.txt"
MAX_NOTES_BYTES = 1 << 20
SIGNS = ("Fatal Python error", "Windows fatal exception", "uncaught at ")
"""Texts in the notes after a crash or an uncaught error."""


def take_crash_notes(folder: Path) -> str:
    """Return the crash notes in ``folder`` and rename their file. Return "" if the last run ended well."""
    file = folder / NAME
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - MAX_NOTES_BYTES))
            text = stream.read().decode("utf-8", "replace")
        if not any(sign in text for sign in SIGNS):
            return ""
        file.replace(folder / OLD)
    except OSError:
        return ""
    return text


class CrashNotesBox(QDialog):
    """Shows the crash notes, with the program's versions above them."""

    def __init__(self, parent: QWidget, text: str, folder: Path) -> None:
        super().__init__(parent)
        self.setObjectName("crashNotes.box")
        self.setWindowTitle(tr("The last run crashed"))
        self.setAccessibleName(tr("The last run crashed"))
        self.resize(px(680), px(420))
        self.text = QPlainTextEdit(f"{facts()}\n\n{text}")
        self.text.setObjectName("crashNotes.text")
        self.text.setAccessibleName(tr("Crash report"))
        self.text.setReadOnly(True)
        self.text.setFont(mono(12))
        copy, show, close = Button(tr("Copy")), Button(tr("Show the folder")), Button(tr("Close"), "primary")
        copy.setObjectName("crashNotes.copy")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        show.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))))
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        layout.addWidget(Label(tr("The last run crashed"), 15, "text", 600))
        explanation = tr("This is its crash report. It stays on this machine; copy it into a report if you want help.")
        layout.addWidget(Label(explanation, 13, "text2", wrap=True))
        layout.addWidget(self.text, 1)
        layout.addWidget(row(copy, show, None, close, gap=8))
