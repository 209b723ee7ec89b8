"""Where an export goes: the file dialog of the boxes that ask for one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from viewer.look.assets import tr


def ask_target(box: QWidget, path: str, chosen: Callable[[str], object]) -> None:
    """Ask for the file to write, ``path`` at first; ``chosen`` is told the one that was taken."""
    dialog = QFileDialog(box, tr("Export the table"), path)
    dialog.setObjectName("export.dialog")
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(chosen)
    dialog.open()
