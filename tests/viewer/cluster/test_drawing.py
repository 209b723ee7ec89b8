"""Selectable items: their bookmark marks, and when two selections mean the same item."""

from __future__ import annotations

import sample_clusters as made
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from viewer.cluster.cluster_model import Selection
from viewer.cluster.drawing import (
    client_colour,
    draw_badge,
    draw_bands,
    elided,
    item_mark,
    item_words,
    same,
    words_font,
)
from viewer.cluster.plan import lines_plan
from viewer.cluster.rows import Badge
from viewer.look.theme import C

MODEL = made.looked_at(made.small(0), made.small(5))


def test_a_queue_is_the_same_in_every_group():
    assert same(Selection("queue", group="a", queue=made.A[0]), Selection("queue", group="b", queue=made.A[0]))
    assert not same(Selection("queue", queue=made.A[0]), Selection("queue", queue=made.A[1]))
    assert not same(Selection("client", "c", "a"), Selection("client", "c", "b"))
    assert same(Selection("group", "g"), Selection("group", "g", "x"))
    assert not same(Selection("group", "g"), Selection("topic", "g"))


def test_an_item_has_a_mark_with_its_command_and_text():
    mark = item_mark(MODEL, Selection("queue", group="billing", queue=made.B[0]), "there")
    assert (mark.facts.topic, mark.facts.queue_id, mark.facts.queue_offset) == ("OrderPaid", 0, 16_000)
    assert mark.facts.command == "storescope cluster 127.0.0.1:9876"
    assert mark.facts.link == "there"
    assert mark.value == "OrderPaid / broker-b / 0"
    group = item_mark(MODEL, Selection("client", made.C1.client_id, "billing"), None)
    assert group.facts.group == "billing"
    assert group.words.startswith("C2 10.0.1.1@21#1 · billing · JAVA 5.3.3 · 2 queues · 200 /s")
    assert item_words(MODEL, Selection("client", "who", "billing")) == "who"
    assert item_words(MODEL, Selection("queue", queue=made.B[0]._replace(queue_id=9))) == ""
    assert item_words(MODEL, Selection("producer", made.P1.client_id)) == f"P1 {made.P1.client_id}"


def test_badges_and_lines_are_in_their_clients_colour(themed_app):
    picture = QImage(1152, 900, QImage.Format.Format_RGB32)
    picture.fill(C("window"))
    p = QPainter(picture)
    p.setRenderHint(QPainter.RenderHint.Antialiasing)
    draw_badge(p, QRectF(10, 10, 40, 20), Badge("C1", 2))
    bands = lines_plan(MODEL.picture, 1152).right_bands
    draw_bands(p, bands, made.C3.client_id, 0, 900)
    p.end()
    assert picture.pixelColor(14, 20) == client_colour(2)
    ends = {(round(x), int(y)) for x, y, off in zip(bands.x0, bands.y0, bands.dashed, strict=True) if not off}
    assert [(x, y) for x, y in ends if picture.pixelColor(x + 2, y) == C("window")] == []
    assert client_colour(-1) == C("text3")


def test_a_name_that_does_not_fit_is_cut_also_in_wide_letters(themed_app):
    picture = QImage(10, 10, QImage.Format.Format_RGB32)
    p = QPainter(picture)
    p.setFont(words_font())
    assert elided(p, "广播消费进度在其自己的文件中", 60).endswith("中")
    assert "…" in elided(p, "广播消费进度在其自己的文件中", 60)
    assert elided(p, "short", 200) == "short"
    p.end()
