"""What cannot be read has its own mark, the struck ring, and the only inverse chip, wherever it is said."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from viewer.log.columns import look
from viewer.log.rows import EdgeRow
from viewer.look.theme import C
from viewer.runtime import places
from viewer.runtime.survey import IndexFacts, QueueFacts
from viewer.shell.status_bar import StatusStrip
from viewer.widgets.columns import Chip, chip_column
from viewer.widgets.paint import draw_chip
from viewer.widgets.row_painter import RowPainter, Slot
from viewer.widgets.store_tree_rows import RANK, StoreTree, _index_nodes, _topic_node


class Topic:
    name, count, known = "Orders", 0, False
    queues = (QueueFacts(0, 0, 0, "Permission denied", unread=True), QueueFacts(1, 0, 0, "expected 20 bytes"))


class Index:
    index = (IndexFacts("20261121", -1, unread=True), IndexFacts("20261122", -1))
    whole = False


def test_the_tree_tells_what_cannot_be_read_from_what_is_wrong(dressed: QApplication) -> None:
    topic, index = _topic_node(Topic(), places), _index_nodes(Index(), places)
    assert [node.own_mark for node in topic.children] == ["unread", "error"]
    assert [node.own_mark for node in index.children] == ["unread", "error"]
    model = StoreTree()
    model.set_nodes([topic, index])
    assert {top.mark for top in model.root.children} == {"unread"}, "it goes before every finding"
    assert max(RANK, key=lambda kind: RANK[kind]) == "unread"
    assert "cannot be read" in str(model.data(model.index_of("topic/Orders"), 11))


def test_a_row_that_cannot_be_read_is_no_damage(dressed: QApplication) -> None:
    found = look(EdgeRow("error", 0, 100, 100, "Permission denied"))
    assert found is not None
    assert (found.mark, found.fill, found.tone) == ("unread", "sunken", "text2")


@pytest.mark.parametrize("where", ["row", "frame"])
def test_its_chip_is_the_only_inverse_one(dressed: QApplication, where: str) -> None:
    def drawn(kind: str) -> set[str]:
        picture = QImage(160, 24, QImage.Format.Format_RGB32)
        picture.fill(QColor("#FFFFFF"))
        p = QPainter(picture)
        if where == "frame":
            draw_chip(p, QRectF(0, 2, 150, 19), kind, "cannot be read")
        else:
            column = chip_column("state", "State", 150, lambda _row: Chip(kind, "cannot be read"))
            RowPainter().paint_chip(p, QRect(0, 0, 160, 24), Slot(0, 0, 150, column), Chip(kind, "cannot be read"))
        p.end()
        return {picture.pixelColor(x, y).name() for x in range(10, 22) for y in range(4, 20)}

    assert {C("text2").name(), C("pane").name()} <= drawn("unread"), "the mark is light on the dark ground"
    assert C("text2").name() not in drawn("error")


def test_the_status_bar_says_it_on_the_inverse_chip(dressed: QApplication) -> None:
    strip = StatusStrip()
    strip.set_unread("7 files cannot be read")
    assert strip.unread.accessibleName() == "7 files cannot be read"
    assert not strip.unread.isHidden()
    strip.set_unread("")
    assert strip.unread.isHidden()
