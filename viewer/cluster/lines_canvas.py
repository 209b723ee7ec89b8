"""Picture of a small cluster: producers left, brokers with each queue as a small Line, consumers right.

A line is a fact: at the left, the client is connected to the broker; at the right, the client owns the queue.
Positions are computed before (:mod:`viewer.cluster.plan`); only the visible part is painted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent

from viewer.cluster.cluster_model import Selection
from viewer.cluster.drawing import (
    LEFT,
    RIGHT,
    Box,
    LinkOf,
    SelectableCanvas,
    client_colour,
    draw_badge,
    draw_bands,
    elided,
    figures_font,
    no_link,
    same,
    words_font,
)
from viewer.cluster.plan import (
    BROKER_HEIGHT,
    CARD,
    CARD_HEIGHT,
    EDGE,
    GROUP_HEIGHT,
    QUEUE_HEIGHT,
    SLAVE_HEIGHT,
    TOPIC_HEIGHT,
    LinesPlan,
    lines_plan,
)
from viewer.cluster.rows import LINE_ENTRIES, MIN_SHOWN_LAG, BrokerRow, ClientRow, GroupRow, ProducerRow, QueueRow
from viewer.cluster.words import UNKNOWN, broker_origin, count, how_it_consumes, owner_words, rate, release, software
from viewer.look.assets import icon_pixmap, tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock
from viewer.look.theme import C, scale, theme
from viewer.widgets.paint import mark

LINE_X, FIGURES = 48, 304
"""Px at the left of a queue's Line, and for the figures at its right."""
IN_COLUMN, NEXT_COLUMN, LAG_COLUMN, HELD_COLUMN = (250, 44), (146, 100), (76, 66), (44, 30)
"""Columns of the figures: px from the right edge of the brokers, and width."""


class LinesCanvas(SelectableCanvas):
    """Draws the picture of :attr:`model`; call :meth:`show_picture` after each reading."""

    def __init__(self, link_of: LinkOf = no_link) -> None:
        super().__init__("cluster.lines", tr("The cluster as lines"), link_of=link_of)
        self.plan: LinesPlan = lines_plan(self.model.picture, 0)

    def show_picture(self) -> None:
        """Lay out and draw the model's filtered picture."""
        self.plan = lines_plan(self.model.picture, self._room() / scale())
        self.setMinimumSize(round(lines_plan(self.model.picture, 0).width * scale()), self._picture_height())
        self.updateGeometry()
        self.update()

    def _room(self) -> int:
        parent = self.parentWidget()
        return parent.width() if parent is not None else self.width()

    def _picture_height(self) -> int:
        return math.ceil(self.plan.height * scale())

    def _fit(self) -> None:
        if hasattr(self, "plan"):
            self.show_picture()

    def sizeHint(self) -> QSize:
        return QSize(round(self.plan.width * scale()), self._picture_height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if abs(self.plan.width - self.width() / scale()) > 1:
            self.plan = lines_plan(self.model.picture, self.width() / scale())

    # ---- what can be chosen ------------------------------------------------------------------------------------------

    def columns(self) -> Sequence[Sequence[Box]]:
        plan = self.plan
        senders: list[Box] = [
            (QRectF(EDGE, y, CARD, CARD_HEIGHT), Selection("producer", row.client.client_id)) for row, y in plan.senders
        ]
        broker_items: list[Box] = [
            (QRectF(plan.side, 12, plan.middle, 24), Selection("names")),
            *(
                (QRectF(plan.side, y, plan.middle, BROKER_HEIGHT), Selection("broker", row.name))
                for row, y, _ in plan.brokers
            ),
            *(
                (QRectF(plan.side, y, plan.middle, TOPIC_HEIGHT), Selection("topic", name))
                for name, _, y in plan.topics
            ),
            *(
                (self._queue_box(number), Selection("queue", group=row.group, queue=row.queue))
                for number, row in enumerate(plan.queues)
            ),
            *(
                (QRectF(plan.side, y, plan.middle, SLAVE_HEIGHT), Selection("broker", part.name))
                for part, y in plan.slaves
            ),
        ]
        consumers: list[Box] = [
            *(
                (QRectF(plan.right_edge, y, CARD, GROUP_HEIGHT - 6), Selection("group", row.name))
                for row, y in plan.groups
            ),
            *(
                (QRectF(plan.right_edge, y, CARD, CARD_HEIGHT), Selection("client", row.client.client_id, row.group))
                for row, y in plan.clients
            ),
        ]
        return [sorted(column, key=lambda item: item[0].top()) for column in (senders, broker_items, consumers)]

    def _queue_box(self, number: int) -> QRectF:
        return QRectF(self.plan.side, self.plan.queue_y[number] - QUEUE_HEIGHT / 2, self.plan.middle, QUEUE_HEIGHT)

    def right_of(self, chosen: Selection) -> Selection | None:
        """Producer → broker → its first group; queue → its owner; topic → its group."""
        model = self.model
        match chosen.kind:
            case "producer":
                sender = model.find_producer(chosen.name)
                return Selection("broker", sender.brokers[0]) if sender is not None and sender.brokers else None
            case "queue":
                row = next((queue_row for queue_row in self.plan.queues if queue_row.queue == chosen.queue), None)
                if row is not None and row.owners:
                    return Selection("client", row.owners[0], row.group)
                return Selection("group", row.group) if row is not None and row.group else None
            case "topic":
                topic = model.find_topic(chosen.name)
                return Selection("group", topic.groups[0]) if topic is not None and topic.groups else None
            case "broker" | "names":
                return Selection("group", self.plan.groups[0][0].name) if self.plan.groups else None
        return None

    def left_of(self, chosen: Selection) -> Selection | None:
        """Client → its first queue; group → its topic; queue, topic, broker → the first producer."""
        model = self.model
        match chosen.kind:
            case "client":
                client = model.find_client(chosen.group, chosen.name)
                owned = client.owned if client is not None else None
                return Selection("queue", group=chosen.group, queue=owned[0]) if owned else None
            case "group":
                group = model.find_group(chosen.name)
                topics = list(group.group.subscriptions) if group is not None else []
                return Selection("topic", topics[0]) if topics else None
            case "queue" | "topic" | "broker" | "names":
                senders = self.plan.senders
                return Selection("producer", senders[0][0].client.client_id) if senders else None
        return None

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("window"))
        p.scale(z, z)
        top, bottom = event.rect().top() / z, event.rect().bottom() / z
        plan, chosen = self.plan, self.model.chosen
        strong = chosen.name if chosen.kind in {"client", "producer"} else ""
        unreachable = {broker_row.name for broker_row in plan.unreachable}
        self._heads(p)
        draw_bands(p, plan.left_bands, strong, top, bottom)
        draw_bands(p, plan.right_bands, strong, top, bottom)
        for broker, y, end in plan.brokers:
            if end >= top and y <= bottom:
                self._broker(p, broker, y, end)
        for name, queues, y in plan.topics:
            if y + TOPIC_HEIGHT >= top and y <= bottom:
                self._topic(p, name, queues, y)
        for number in plan.visible_queues(top, bottom):
            row = plan.queues[number]
            self._queue(p, row, float(plan.queue_y[number]), is_stale=row.queue.broker in unreachable)
        for part, y in plan.slaves:
            self._slave(
                p,
                f"{tr('slave {n}', n=part.broker_id)}",
                f"{part.address} · {release(part)}",
                engine_words(part.words),
                y,
            )
        for sender, y in plan.senders:
            if y + CARD_HEIGHT >= top and y <= bottom:
                self._sender(p, sender, y)
        for group, y in plan.groups:
            self._group(p, group, y)
        for client, y in plan.clients:
            if y + CARD_HEIGHT >= top and y <= bottom:
                self._client(p, client, y)
        self._legend(p, self.height() / z - 30)
        self.paint_focus(p)

    def _heads(self, p: QPainter) -> None:
        plan, picture, model = self.plan, self.model.picture, self.model
        p.setFont(words_font())
        p.setPen(C("text2"))
        senders = tr_plural("{n:,} producer", "{n:,} producers", n=picture.senders)
        in_rates = [row.in_rate for row in picture.brokers if row.in_rate is not None]
        if in_rates:
            senders += f" · {rate(sum(in_rates))}"
        p.drawText(QRectF(EDGE, 12, 300, 20), LEFT, senders)
        words = " · ".join(
            (
                tr_plural("{n:,} broker", "{n:,} brokers", n=len(picture.brokers)),
                tr_plural("{n:,} topic", "{n:,} topics", n=len(picture.topics)),
                tr_plural("{n:,} queue", "{n:,} queues", n=picture.queues),
            )
        )
        p.drawText(QRectF(plan.side, 12, plan.middle, 20), LEFT, words)
        consumers = tr_plural("{n:,} consumer", "{n:,} consumers", n=picture.clients)
        words = f"{consumers} · {tr_plural('{n:,} group', '{n:,} groups', n=len(picture.groups))}"
        p.drawText(QRectF(plan.right_edge, 12, CARD, 20), LEFT, words)
        state = model.state
        faulty = [address for address, label in state.name_servers.items() if label] if state is not None else []
        label = tr("name server {address}", address=", ".join(model.addresses))
        p.setFont(words_font(12, 500))
        label = elided(p, label, plan.middle * 0.55)
        label_width = p.fontMetrics().horizontalAdvance(label)
        mark(p, "warn" if faulty or model.stale else "ok", QPointF(plan.side + plan.middle - label_width - 12, 23), 4.2)
        p.setPen(C("accent"))
        p.drawText(QRectF(plan.side, 12, plan.middle, 20), RIGHT, label)

    def _broker(self, p: QPainter, row: BrokerRow, y: float, end: float) -> None:
        width, part = self.plan.middle, row.master
        is_chosen = same(self.model.chosen, Selection("broker", row.name))
        p.setPen(QPen(C("accent" if is_chosen else "line"), 2 if is_chosen else 1))
        p.setBrush(C("pane"))
        p.drawRoundedRect(QRectF(self.plan.side + 0.5, y + 0.5, width - 1, end - y - 1), 6, 6)
        role = "text3" if part is None or part.words else "text"
        self._icon(p, "broker", "text2", self.plan.side + 12, y + 11)
        p.setFont(words_font(13, 600))
        p.setPen(C(role))
        name = elided(p, row.name, 160)
        p.drawText(QRectF(self.plan.side + 38, y, 170, BROKER_HEIGHT), LEFT, name)
        label_x = self.plan.side + 46 + p.fontMetrics().horizontalAdvance(name)
        p.setFont(words_font())
        p.setPen(C("text2"))
        role_text = tr("no master") if part is None else f"{tr('master')} · {broker_origin(part)}"
        p.drawText(QRectF(label_x, y, 180, BROKER_HEIGHT), LEFT, role_text)
        p.setFont(figures_font())
        p.setPen(C("warn" if part is not None and part.words else "text3"))
        details = "" if part is None else f"{part.address} · {tr('in {rate}', rate=rate(row.in_rate))}"
        if part is not None and part.words:
            reason = engine_words(part.words)
            details = f"{tr('As of {time}', time=clock(part.time_ms))} · {reason}" if part.time_ms else reason
        room = self.plan.side + width - 14 - label_x - 130
        p.drawText(
            QRectF(label_x + 130, y, room, BROKER_HEIGHT), RIGHT, elided(p, details, room, Qt.TextElideMode.ElideRight)
        )
        p.fillRect(QRectF(self.plan.side + 1, y + BROKER_HEIGHT - 1, width - 2, 1), C("hair"))

    def _topic(self, p: QPainter, name: str, queues: Sequence[QueueRow], y: float) -> None:
        right = self.plan.side + self.plan.middle
        if same(self.model.chosen, Selection("topic", name)):
            p.fillRect(QRectF(self.plan.side + 1, y, self.plan.middle - 2, TOPIC_HEIGHT), C("select"))
        p.setFont(words_font(12, 600))
        p.setPen(C("text"))
        room = self.plan.middle - FIGURES - 22
        name_text = elided(p, name, room)
        p.drawText(QRectF(self.plan.side + 14, y, room, TOPIC_HEIGHT), LEFT, name_text)
        room -= p.fontMetrics().horizontalAdvance(name_text) + 12
        p.setFont(words_font(11))
        p.setPen(C("text3"))
        note = tr_plural("last {n:,} entry", "last {n:,} entries", n=LINE_ENTRIES)
        if p.fontMetrics().horizontalAdvance(note) <= room:
            p.drawText(QRectF(right - FIGURES - 8 - room, y, room, TOPIC_HEIGHT), RIGHT, note)
        group = next((row.group for row in queues if row.group), "")
        for (right_edge, width), words in (
            (IN_COLUMN, tr("In /s")),
            (NEXT_COLUMN, tr("Next offset") if group else tr("Max offset")),
            (LAG_COLUMN, tr("Behind")),
        ):
            p.drawText(QRectF(right - right_edge - width, y, width, TOPIC_HEIGHT), RIGHT, words)
        if any(row.held_pulls is not None for row in queues):
            right_edge, width = HELD_COLUMN
            p.drawText(QRectF(right - right_edge - width, y, width, TOPIC_HEIGHT), RIGHT, tr("Held"))

    def _queue(self, p: QPainter, row: QueueRow, y: float, *, is_stale: bool) -> None:
        """Paint a queue; grey if its broker does not answer, because the values are old."""
        plan, model, chosen = self.plan, self.model, self.model.chosen
        right = plan.side + plan.middle
        is_owned = chosen.kind == "client" and chosen.name in row.owners
        if is_owned or (chosen.kind == "queue" and chosen.queue == row.queue):
            p.fillRect(QRectF(plan.side + 1, y - QUEUE_HEIGHT / 2, plan.middle - 2, QUEUE_HEIGHT), C("select", 0.7))
        p.setFont(figures_font())
        p.setPen(C("text3" if is_stale else "text"))
        p.drawText(QRectF(plan.side + 14, y - 10, 34, 20), LEFT, f"q{row.queue.queue_id}")
        group = model.find_group(row.group)
        badge = model.badge(row.owners[0]) if row.owners else None
        ground = client_colour(badge.place) if badge is not None else C("text3")
        self._line(p, row, QRectF(plan.side + LINE_X, y - 5, plan.middle - LINE_X - FIGURES - 8, 10), ground)
        is_late = (row.lag or 0) >= MIN_SHOWN_LAG
        p.setPen(C("text3"))
        p.setFont(figures_font())
        self._figure(p, IN_COLUMN, y, UNKNOWN if row.in_rate is None else f"{row.in_rate:,.0f}")
        p.setPen(C("text3" if is_stale else "accent"))
        offset = row.next_offset if row.group else row.ends.max_offset
        self._figure(p, NEXT_COLUMN, y, count(offset))
        p.setPen(C("text3" if is_stale else "warn" if is_late else "text2"))
        p.setFont(figures_font(12, 600 if is_late else 400))
        if row.group:
            self._figure(p, LAG_COLUMN, y, count(row.lag))
        if not is_stale:
            self._held(p, row, y)
        badge_box = QRectF(right - 38, y - 8, 28, 16)
        if len(row.owners) > 1:
            for number, owner in enumerate(row.owners[:2]):
                draw_badge(p, badge_box.adjusted(number * 10 - 10, 0, number * 10 - 10, 0), model.badge(owner))
            mark(p, "warn", QPointF(right - 34, y - 13), 3.6)
        elif badge is not None:
            draw_badge(p, badge_box, badge)
        elif row.orphan:
            mark(p, "error", QPointF(right - 24, y), 4.5)
        elif row.group and group is not None and not group.broadcast:
            p.setPen(C("text3"))
            p.drawText(badge_box, RIGHT, UNKNOWN)
        if row.orphan:
            p.setFont(words_font(11, 600))
            p.setPen(C("error"))
            p.drawText(QRectF(right - 146, y + 6, 100, 14), RIGHT, owner_words(model, row))

    def _held(self, p: QPainter, row: QueueRow, y: float) -> None:
        """Paint the mark of held pulls, with their number if there are several."""
        if not row.held_pulls:
            return
        right = self.plan.side + self.plan.middle - HELD_COLUMN[0]
        if row.held_pulls > 1:
            p.setFont(figures_font(11))
            p.setPen(C("text2"))
            p.drawText(QRectF(right - 40, y - 10, 26, 20), RIGHT, f"{row.held_pulls:,}")
        mark(p, "held", QPointF(right - 6, y), 4.8)

    def _figure(self, p: QPainter, column: tuple[int, int], y: float, words: str) -> None:
        right_edge, width = column
        p.drawText(QRectF(self.plan.side + self.plan.middle - right_edge - width, y - 10, width, 20), RIGHT, words)

    def _line(self, p: QPainter, row: QueueRow, box: QRectF, ground: QColor) -> None:
        """Paint the last entries: consumed blue, not consumed amber, the owner's tick where its group reads next."""
        p.fillRect(box, C("posLog", 0.42 if theme.dark else 0.30))
        entry_count = row.ends.max_offset - row.ends.min_offset
        if entry_count <= 0:
            return
        if row.orphan:
            p.setPen(QPen(C("error"), 1.2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box)
        for next_offset in row.other_offsets:
            x = self._x_of_lag(box, row.ends.max_offset - next_offset)
            p.fillRect(QRectF(x - 1, box.top() - 2, 1.5, box.height() + 4), C("text3"))
        if row.next_offset is None:
            return
        x = self._x_of_lag(box, row.ends.max_offset - row.next_offset)
        if (row.lag or 0) >= MIN_SHOWN_LAG:
            p.fillRect(QRectF(x, box.top(), box.right() - x, box.height()), C("warn", 0.85))
            p.fillRect(QRectF(box.right() - 1.5, box.top() - 3, 1.5, box.height() + 6), C("posLog"))
        p.fillRect(QRectF(x - 3, box.top() - 4, 3, box.height() + 8), ground)

    @staticmethod
    def _x_of_lag(box: QRectF, lag: int) -> float:
        return box.right() - box.width() * min(max(lag, 0), LINE_ENTRIES) / LINE_ENTRIES

    def _slave(self, p: QPainter, name: str, note: str, words: str, y: float) -> None:
        p.fillRect(QRectF(self.plan.side + 1, y, self.plan.middle - 2, 1), C("hair"))
        self._icon(p, "broker", "text3", self.plan.side + 12, y + 10)
        p.setFont(words_font(12, 600))
        p.setPen(C("text"))
        p.drawText(QRectF(self.plan.side + 38, y, 90, SLAVE_HEIGHT), LEFT, name)
        p.setFont(figures_font())
        p.setPen(C("warn" if words else "text2"))
        room = self.plan.middle - 150
        p.drawText(
            QRectF(self.plan.side + 130, y, room, SLAVE_HEIGHT), LEFT, elided(p, f"{note} {words}".strip(), room)
        )

    def _sender(self, p: QPainter, row: ProducerRow, y: float) -> None:
        chosen = Selection("producer", row.client.client_id)
        name = row.groups[0] if row.groups else row.client.client_id
        self._card(p, EDGE, y, chosen, row.has_left)
        draw_badge(p, QRectF(EDGE + 10, y + 10, 28, 16), row.badge, has_left=row.has_left)
        p.setFont(words_font(13, 600))
        p.setPen(C("text3" if row.has_left else "text"))
        p.drawText(QRectF(EDGE + 46, y + 8, CARD - 54, 20), LEFT, elided(p, name, CARD - 56))
        self._note(p, EDGE, y, row, software(row.client.language, row.client.version), "")

    def _client(self, p: QPainter, row: ClientRow, y: float) -> None:
        x = self.plan.right_edge
        self._card(p, x, y, Selection("client", row.client.client_id, row.group), row.has_left)
        draw_badge(p, QRectF(x + 10, y + 10, 28, 16), row.badge, has_left=row.has_left)
        p.setFont(words_font(13, 600))
        p.setPen(C("text3" if row.has_left else "text"))
        name = software(row.client.language, row.client.version)
        late = (row.lag or 0) >= MIN_SHOWN_LAG
        idle = row.owned == () and not row.has_left
        word = tr("behind") if late else tr("idle") if idle else ""
        wide = QFontMetrics(words_font(12, 600)).horizontalAdvance(word)
        room = CARD - 54 - (wide + 20 if word else 0)
        if p.fontMetrics().horizontalAdvance(name) > room:
            name = row.client.language
        p.drawText(QRectF(x + 46, y + 8, room, 20), LEFT, elided(p, name, room, Qt.TextElideMode.ElideRight))
        if word:
            p.setFont(words_font(12, 600))
            mark(p, "warn" if late else "note", QPointF(x + CARD - 18 - wide, y + 18), 4.2)
            p.setPen(C("warn" if late else "note"))
            p.drawText(QRectF(x, y + 8, CARD - 10, 20), RIGHT, word)
        owned = UNKNOWN if row.owned is None else tr_plural("{n:,} queue", "{n:,} queues", n=len(row.owned))
        self._note(p, x, y, row, owned, rate(row.out_rate))

    def _card(self, p: QPainter, x: float, y: float, item: Selection, has_left: bool) -> None:
        is_chosen = same(self.model.chosen, item)
        p.setPen(
            QPen(C("accent"), 2)
            if is_chosen
            else QPen(C("line"), 1, Qt.PenStyle.DashLine if has_left else Qt.PenStyle.SolidLine)
        )
        p.setBrush(C("select" if is_chosen else "pane"))
        inset = 1 if is_chosen else 0.5
        p.drawRoundedRect(QRectF(x, y, CARD, CARD_HEIGHT).adjusted(inset, inset, -inset, -inset), 6, 6)

    def _note(self, p: QPainter, x: float, y: float, row: ClientRow | ProducerRow, note: str, figure: str) -> None:
        p.setFont(words_font())
        p.setPen(C("text2"))
        text, shift = note, 0
        if row.has_left and row.client.client_id in self.model.killed:
            mark(p, "error", QPointF(x + 16, y + 43), 4)
            p.setPen(C("error"))
            text, shift = tr("killed"), 14
        elif row.has_left:
            text = f"– {tr('left')}"
        p.drawText(QRectF(x + 11 + shift, y + 34, CARD - 100, 18), LEFT, elided(p, text, CARD - 100 - shift))
        p.setPen(C("text2"))
        p.setFont(figures_font())
        p.drawText(QRectF(x + 10, y + 34, CARD - 20, 18), RIGHT, "" if row.has_left else figure)

    def _group(self, p: QPainter, row: GroupRow, y: float) -> None:
        x = self.plan.right_edge
        if same(self.model.chosen, Selection("group", row.name)):
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(C("select"))
            p.drawRoundedRect(QRectF(x, y, CARD, GROUP_HEIGHT - 6).adjusted(1, 1, -1, -1), 6, 6)
        p.setFont(words_font(13, 600))
        p.setPen(C("text"))
        p.drawText(QRectF(x + 8, y + 2, CARD, 20), LEFT, elided(p, row.name, CARD - 30))
        if row.trouble:
            mark(p, row.trouble, QPointF(x + CARD - 12, y + 13), 4.2)
        p.setFont(words_font())
        p.setPen(C("text2"))
        p.drawText(
            QRectF(x + 8, y + 22, CARD - 8, 18),
            LEFT,
            elided(p, how_it_consumes(row), CARD - 12, Qt.TextElideMode.ElideRight),
        )

    def _legend(self, p: QPainter, y: float) -> None:
        x = float(EDGE)
        for width, words in ((1.5, f"{tr('up to')} 200 /s"), (3, "400 /s"), (8, "1,000 /s")):
            p.setPen(QPen(C("text3"), width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            p.drawLine(QPointF(x, y + 10), QPointF(x + 22, y + 10))
            x = self._word(p, x + 30, y, words)
        p.setPen(QPen(C("text3"), 1.5, Qt.PenStyle.DashLine))
        p.drawLine(QPointF(x, y + 10), QPointF(x + 22, y + 10))
        x = self._word(p, x + 30, y, tr("broadcast"))
        p.fillRect(QRectF(x, y + 5, 22, 10), C("warn", 0.85))
        x = self._word(p, x + 30, y, tr("not consumed yet"))
        mark(p, "held", QPointF(x + 6, y + 10), 4.8)
        x = self._word(p, x + 20, y, tr("pull held by the broker"))
        self._word(p, x, y, tr("left: connected; the topics that it sends to are unknown"))

    @staticmethod
    def _word(p: QPainter, x: float, y: float, words: str) -> float:
        p.setFont(words_font())
        p.setPen(C("text2"))
        width = p.fontMetrics().horizontalAdvance(words)
        p.drawText(QRectF(x, y, width + 4, 20), LEFT, words)
        return x + width + 22

    @staticmethod
    def _icon(p: QPainter, name: str, role: str, x: float, y: float) -> None:
        p.drawPixmap(QRectF(x, y, 18, 18), icon_pixmap(name, C(role), 18, 2.0), QRectF(0, 0, 36, 36))
