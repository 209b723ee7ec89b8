"""The lead of a topic: its colour, or the mark of its kind."""

from __future__ import annotations

from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from viewer.look.theme import C
from viewer.widgets.topic_lead import NAME_INDENT, draw_lead

KINDS = {
    "%RETRY%billing": "retry",
    "%DLQ%billing": "dead",
    "SCHEDULE_TOPIC_XXXX": "delayed",
    "rmq_sys_wheel_timer": "delayed",
    "RMQ_SYS_TRANS_HALF_TOPIC": "half",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC": "op",
    "RMQ_SYS_TRACE_TOPIC": "system",
    "rmq_sys_REVIVE_LOG_DefaultCluster": "system",
    "TRANS_CHECK_MAX_TIME_TOPIC": "system",
    "TBW102": "system",
    "OFFSET_MOVED_EVENT": "system",
}


def _lead_picture(topic: str, color: QColor | None = None) -> QImage:
    picture = QImage(NAME_INDENT * 4, 80, QImage.Format.Format_RGB32)
    picture.fill(C("pane"))
    p = QPainter(picture)
    draw_lead(p, topic, color, 0, 40, 4)
    p.end()
    return picture


def test_each_kind_has_its_own_mark_and_nothing_is_a_hollow_box(themed_app: QApplication) -> None:
    """A hollow bar before a topic was taken for a letter that the font lacks, in every view."""
    drawn = {KINDS[topic]: _lead_picture(topic) for topic in KINDS}
    pictures = [*drawn.values(), _lead_picture("Orders"), _lead_picture("Orders", QColor("#1054C6"))]
    for index, picture in enumerate(pictures):
        assert all(picture != later_picture for later_picture in pictures[index + 1 :]), "each looks different"
    bar = _lead_picture("Orders")
    inside = {bar.pixelColor(x, y).name() for x in range(9, 23) for y in range(18, 62)}
    assert inside == {C("disabled").name()}, "a user's topic behind the eighth is a filled bar"
