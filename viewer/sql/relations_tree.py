"""The relations and their columns, beside the editor."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem

from viewer.look.assets import tr, words
from viewer.look.theme import C, follow, mono, px
from viewer.sql.answers import Vocabulary
from viewer.widgets.focus import FocusRing

MEANINGS = {
    "units": words("a message of the commit log"),
    "damage": words("a range of the log in which no message can be read"),
    "topics": words("a topic that the table of topics or a queue names"),
    "queues": words("a queue, with the bounds that a broker answers"),
    "queue_entries": words("an entry of a queue"),
    "index_files": words("an index file"),
    "index_entries": words("an entry of an index file"),
    "groups": words("a consumer group and a queue: how far it is"),
    "findings": words("a finding of the check, which runs for the question"),
    "tables": words("a value of a table in config/"),
}
"""What one row of a relation is."""


class RelationsTree(QTreeWidget):
    """Emits ``wordChosen(name)`` for a relation or column that is to stand in the question."""

    wordChosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("sql.relations")
        self.setAccessibleName(tr("Relations and their columns"))
        self._relations: list[QTreeWidgetItem] = []
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setUniformRowHeights(True)
        self.setIndentation(px(14))
        self.setFrameShape(QTreeWidget.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setExpandsOnDoubleClick(False)
        self.header().setStretchLastSection(True)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        FocusRing(self)
        self.itemDoubleClicked.connect(lambda item, _column: self.wordChosen.emit(item.text(0)))
        self._retheme()
        follow(self, self._retheme)

    def show_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Show its relations."""
        self._relations.clear()
        self.clear()
        for name, columns in vocabulary.relations.items():
            relation = QTreeWidgetItem([name, ""])
            relation.setToolTip(0, tr("One row is {what}", what=tr(MEANINGS.get(name, name))))
            for column, kind in columns:
                child = QTreeWidgetItem([column, kind])
                child.setToolTip(1, kind)
                relation.addChild(child)
            self._relations.append(relation)
            self.addTopLevelItem(relation)
        self._retheme()
        if self._relations:
            self._relations[0].setExpanded(True)
            self.setCurrentItem(self._relations[0])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Write the word on Enter."""
        item = self.currentItem()
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.modifiers() and item is not None:
            self.wordChosen.emit(item.text(0))
            return
        super().keyPressEvent(event)

    def _retheme(self) -> None:
        self.setFont(mono(12))
        for relation in self._relations:
            relation.setFont(0, mono(12, 600))
            for row in range(relation.childCount()):
                if (column := relation.child(row)) is not None:
                    column.setForeground(1, C("text3"))
