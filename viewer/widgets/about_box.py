"""The About box: the versions of Storescope and of the libraries it runs on, ready to copy."""

from __future__ import annotations

import platform

from PySide6.QtCore import qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QLabel, QVBoxLayout, QWidget

from engine import __version__
from viewer.look.assets import app_pixmap, tr
from viewer.look.theme import px
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import column, row

PACKAGES = ("PySide6-Essentials", "numpy", "numba", "pyqtgraph", "qasync", "crcmod", "lz4", "zstandard", "isal")


def facts() -> str:
    """Return the versions, one line for each component."""
    from importlib.metadata import PackageNotFoundError, version  # tens of milliseconds, not before the first rows

    lines = [
        f"Storescope {__version__}",
        f"Python {platform.python_version()} · Qt {qVersion()} · {QGuiApplication.platformName()}",
        platform.platform(),
    ]
    for name in PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lines.append(f"{name}: {tr('not installed')}")
    return "\n".join(lines)


class AboutBox(QDialog):
    """A dialog with the icon, one sentence and the versions."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("about")
        self.setWindowTitle(tr("About Storescope"))
        text = facts()
        logo = QLabel()
        logo.setPixmap(app_pixmap(px(56)))
        summary = tr("Opens Apache RocketMQ message stores read-only. Apache License 2.0.")
        copy = Button(tr("Copy"), "flat")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        close = Button(tr("Close"))
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(24), px(20), px(24), px(16))
        layout.setSpacing(px(12))
        layout.addWidget(
            row(logo, column(Label("Storescope", 18, "text", 600), Label(summary, 13, "text2"), gap=2), gap=14)
        )
        layout.addWidget(Label(text, 12, "text2", code=True, select=True))
        layout.addWidget(row(None, copy, close, gap=8))
