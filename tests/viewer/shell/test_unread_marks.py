"""Unread files have their own mark, the struck ring, and the only inverse chip, everywhere."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from viewer.runtime import places
from viewer.runtime.survey import IndexFacts, QueueFacts
from viewer.widgets.store_tree_rows import RANK, StoreTree, _index_nodes, _topic_node


class Topic:
    name, count, known, is_moved = "Orders", 0, False, False
    queues = (QueueFacts(0, 0, 0, "Permission denied", unread=True), QueueFacts(1, 0, 0, "expected 20 bytes"))


class Index:
    index = (IndexFacts("20261121", -1, unread=True), IndexFacts("20261122", -1))
    whole = False


def test_the_tree_distinguishes_unread_from_damaged_parts(themed_app: QApplication) -> None:
    topic, index = _topic_node(Topic(), places), _index_nodes(Index(), places)
    assert [node.own_mark for node in topic.children] == ["unread", "error"]
    assert [node.own_mark for node in index.children] == ["unread", "error"]
    model = StoreTree()
    model.set_nodes([topic, index])
    assert {top.mark for top in model.root.children} == {"unread"}, "it goes before every finding"
    assert max(RANK, key=lambda kind: RANK[kind]) == "unread"
    assert "cannot be read" in str(model.data(model.index_of("topic/Orders"), 11))
