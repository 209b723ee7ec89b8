"""The sheet of all keys, made from the commands."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from viewer.look.assets import tr, words
from viewer.look.theme import px
from viewer.widgets.basics import Button, Key, Label, Paper, row

FIXED = (
    ("Enter", words("Follow the link of the chosen row")),
    ("Shift+F10", words("All that can be done with the row or field")),
    ("Tab", words("Next control")),
    ("Ctrl wheel", words("Larger, smaller")),
    ("Home End", words("Begin and end of what is in front")),
    ("Esc", words("Close a box, leave a field")),
)


class KeySheet(QDialog):
    """All keys by menu, in columns."""

    def __init__(self, parent: QWidget, menus: Sequence[tuple[str, list[tuple[str, str]]]]) -> None:
        """``menus``: of each menu its name and its commands, each as (key caps, words)."""
        super().__init__(parent)
        self.setObjectName("keys.sheet")
        self.setWindowTitle(tr("All keys"))
        self.setAccessibleName(tr("All keys"))
        self.resize(px(900), min(px(760), parent.window().height()))
        ground = Paper("pane")
        grid = QHBoxLayout(ground)
        grid.setContentsMargins(px(20), px(16), px(20), px(16))
        grid.setSpacing(px(32))
        columns = [QVBoxLayout(), QVBoxLayout()]
        for column in columns:
            column.setSpacing(0)
        for number, (title, lines) in enumerate(
            (*menus, (tr("In tables and fields"), [(caps, tr(text)) for caps, text in FIXED]))
        ):
            target = columns[0] if number in {0, 1, 2} else columns[1]
            target.addWidget(_section(title, lines))
        for column in columns:
            column.addStretch(1)
            grid.addLayout(column, 1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(ground)
        close = Button(tr("Close"))
        close.clicked.connect(self.accept)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, px(12))
        layout.addWidget(area, 1)
        layout.addWidget(row(None, close, margins=(0, 0, 16, 0)))


def _section(title: str, lines: Sequence[tuple[str, str]]) -> QWidget:
    box = QWidget()
    layout = QVBoxLayout(box)
    layout.setContentsMargins(0, 0, 0, px(14))
    layout.setSpacing(px(4))
    layout.addWidget(Label(title, 13, "text", 600), 0, Qt.AlignmentFlag.AlignTop)
    grid = QGridLayout()
    grid.setHorizontalSpacing(px(12))
    grid.setVerticalSpacing(px(4))
    for number, (caps, text) in enumerate(lines):
        grid.addWidget(row(*[Key(cap) for cap in caps.split()], None, gap=4), number, 0)
        grid.addWidget(Label(text, 13, "text2"), number, 1)
    grid.setColumnMinimumWidth(0, px(150))
    grid.setColumnStretch(1, 1)
    layout.addLayout(grid)
    box.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
    return box
