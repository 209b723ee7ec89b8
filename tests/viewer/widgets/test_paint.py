"""What is painted by hand.

The lead of a topic: its colour, or the mark of its kind.
"""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from viewer.look.theme import C
from viewer.widgets.columns import Chip, chip_column
from viewer.widgets.paint import ROOM, draw_chip, draw_lead
from viewer.widgets.row_painter import RowPainter, Slot


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


KINDS = {
    "%RETRY%billing": "retry", "%DLQ%billing": "dead", "SCHEDULE_TOPIC_XXXX": "delayed",
    "rmq_sys_wheel_timer": "delayed", "RMQ_SYS_TRANS_HALF_TOPIC": "half", "RMQ_SYS_TRANS_OP_HALF_TOPIC": "op",
    "RMQ_SYS_TRACE_TOPIC": "system", "rmq_sys_REVIVE_LOG_DefaultCluster": "system",
    "TRANS_CHECK_MAX_TIME_TOPIC": "system", "TBW102": "system", "OFFSET_MOVED_EVENT": "system",
}  # fmt: skip


def _lead(topic: str, color: QColor | None = None) -> QImage:
    picture = QImage(ROOM * 4, 80, QImage.Format.Format_RGB32)
    picture.fill(C("pane"))
    p = QPainter(picture)
    draw_lead(p, topic, color, 0, 40, 4)
    p.end()
    return picture


def test_each_kind_has_its_own_mark_and_nothing_is_a_hollow_box(dressed: QApplication) -> None:
    """A hollow bar before a topic was taken for a letter that the font lacks, in every view."""
    drawn = {KINDS[topic]: _lead(topic) for topic in KINDS}
    pictures = [*drawn.values(), _lead("Orders"), _lead("Orders", QColor("#1054C6"))]
    for at, one in enumerate(pictures):
        assert all(one != other for other in pictures[at + 1 :]), "each looks different"
    bar = _lead("Orders")
    inside = {bar.pixelColor(x, y).name() for x in range(9, 23) for y in range(18, 62)}
    assert inside == {C("disabled").name()}, "a user's topic behind the eighth is a filled bar"
