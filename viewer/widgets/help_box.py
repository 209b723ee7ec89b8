"""The help pages: one text a language in ``resources/help``, with pictures that the program made of itself.

Commands stand in the text by their ids, ``{go.to}``, and are shown in the words and with the keys in force.
"""

from __future__ import annotations

import re
from typing import Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QDialog, QTextBrowser, QVBoxLayout, QWidget

from viewer.actions import BY_ID, key_caps
from viewer.assets import language, resource_bytes, tr
from viewer.theme import px, ui
from viewer.widgets.kit import Button, row

_COMMAND = re.compile(r"\{([a-z]+\.[A-Za-z]+)\}")


def help_text(name: str) -> str:
    """The page of language ``name`` as Markdown, commands in words."""
    return _COMMAND.sub(lambda found: _said(found[1]), resource_bytes(f"help/{name}.md").decode("utf-8"))


def _said(command_id: str) -> str:
    command = BY_ID[command_id]
    words = tr(command.text).rstrip("…")
    return f"**{words}** ({key_caps(command.keys[0])})" if command.keys else f"**{words}**"


class HelpPage(QTextBrowser):
    """Text and pictures from the resources; links outwards are not followed."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName("help.page")
        self.setAccessibleName(tr("Help"))
        self.setOpenLinks(False)
        self.setFont(ui(14))
        self.document().setDocumentMargin(px(20))
        self.setMarkdown(help_text(name))

    def loadResource(self, kind: int, url: QUrl | str) -> Any:
        """Pictures by their path below the resources, as wide as the page."""
        path = url if isinstance(url, str) else url.toString()
        if kind == 2 and re.fullmatch(r"pictures/[a-z]+\.png", path):
            picture = QImage.fromData(resource_bytes(path))
            return picture.scaledToWidth(min(picture.width(), px(860)))
        return None


class HelpBox(QDialog):
    """The page in a window of its own, beside the one that it speaks of."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("help.box")
        self.setWindowTitle(tr("Help"))
        self.setAccessibleName(tr("Help"))
        self.resize(px(960), min(px(820), parent.window().height()))
        self.page = HelpPage(language())
        close = Button(tr("Close"))
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, px(12))
        layout.addWidget(self.page, 1)
        layout.addWidget(row(None, close, margins=(0, 0, 16, 0)))
        self.page.setFocus()
