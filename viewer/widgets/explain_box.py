"""What a field means, in a few sentences, beside the row that it was asked of."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.field_words import explained
from viewer.look.theme import px
from viewer.widgets.basics import Button, Label, row
from viewer.widgets.row_commands import Facts


class ExplainBox(QDialog):
    """Name, meaning, and where more is written."""

    def __init__(self, facts: Facts, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("explain.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        title, text, source = words_of(facts)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(f"{text} {source}")
        self.setMinimumWidth(px(420))
        close = Button(tr("Close"), "primary")
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(14))
        layout.setSpacing(px(8))
        layout.addWidget(Label(title, 15, "text", 600, select=True))
        layout.addWidget(Label(text, 13, "text", wrap=True, select=True))
        layout.addWidget(Label(source, 12, "text3", wrap=True, select=True))
        layout.addWidget(row(None, close))
        close.setFocus()


def words_of(facts: Facts) -> tuple[str, str, str]:
    """Title, text, and the chapter."""
    found = explained(facts.kind, facts.field)
    if found is None:
        return facts.field, "", ""
    return facts.field, tr(found[0]), tr("Section {section} of the notes on RocketMQ's formats", section=found[1])
