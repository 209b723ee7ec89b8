"""The relations beside the editor."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.sql.relations import RELATIONS
from viewer.sql.answers import Vocabulary
from viewer.sql.relations_tree import MEANINGS, RelationsTree


def test_every_relation_has_a_meaning() -> None:
    assert MEANINGS.keys() == RELATIONS.keys()


def test_a_relation_or_column_is_chosen_with_enter(themed_app, shown) -> None:
    tree = RelationsTree()
    shown(tree)
    tree.show_vocabulary(Vocabulary({"units": (("topic", "VARCHAR"),), "damage": ()}))
    assert tree.topLevelItemCount() == 2
    chosen: list[str] = []
    tree.wordChosen.connect(chosen.append)
    QTest.keyClick(tree, Qt.Key.Key_Return)
    QTest.keyClick(tree, Qt.Key.Key_Down)
    QTest.keyClick(tree, Qt.Key.Key_Return)
    assert chosen == ["units", "topic"]
    tree.show_vocabulary(Vocabulary({"queues": ()}))
    assert tree.topLevelItemCount() == 1
