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
UNCAUGHT = "uncaught"
SIGNS = ("Fatal Python error", "Windows fatal exception", f"{UNCAUGHT} at ")
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


class ReportBox(QDialog):
    """Shows a report with the program's versions above it, and copies it. ``name`` begins the names of its widgets."""

    def __init__(self, parent: QWidget, name: str, texts: tuple[str, str, str], text: str, folder: Path) -> None:
        title, explanation, copy_title = texts
        super().__init__(parent)
        self.setObjectName(f"{name}.box")
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.resize(px(680), px(420))
        self.text = QPlainTextEdit(f"{facts()}\n\n{text}")
        self.text.setObjectName(f"{name}.text")
        self.text.setAccessibleName(tr("Crash report"))
        self.text.setReadOnly(True)
        self.text.setFont(mono(12))
        copy, show, close = Button(copy_title), Button(tr("Show the folder")), Button(tr("Close"), "primary")
        copy.setObjectName(f"{name}.copy")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        show.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))))
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        layout.addWidget(Label(title, 15, "text", 600))
        layout.addWidget(Label(explanation, 13, "text2", wrap=True))
        layout.addWidget(self.text, 1)
        layout.addWidget(row(copy, show, None, close, gap=8))


class CrashNotesBox(ReportBox):
    """Shows the notes of a run that crashed."""

    def __init__(self, parent: QWidget, text: str, folder: Path) -> None:
        explanation = tr("This is its crash report. It stays on this machine; copy it into a report if you want help.")
        super().__init__(parent, "crashNotes", (tr("The last run crashed"), explanation, tr("Copy")), text, folder)


class ErrorBox(ReportBox):
    """Shows errors of this run that nothing caught."""

    def __init__(self, parent: QWidget, text: str, folder: Path) -> None:
        explanation = tr(
            "An error that the program does not expect. The window stays open. The report names places in the program "
            "and nothing of a message; it stays on this machine until you copy it."
        )
        texts = (tr("Something went wrong in Storescope"), explanation, tr("Copy report"))
        super().__init__(parent, "errorReport", texts, text, folder)

    def add(self, text: str) -> None:
        """Add a further error."""
        self.text.appendPlainText(f"\n{text}")
