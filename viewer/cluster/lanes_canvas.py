"""A rebalance over time: a lane for each consumer above, a lane for each queue below, one axis; flags name the
steps.

Consumer lane: solid = owns queues, the height above it = messages a second, dashed and empty = idle, dashed red
behind ◆ = left. Queue lane: the owner; a gap is a pause (red hatch), two halves framed in amber are two owners.
Nothing is drawn where there is no reading.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF, QWheelEvent

from engine.cluster.state import Queue
from viewer.cluster.cluster_model import Selection
from viewer.cluster.drawing import (
    LEFT,
    RIGHT,
    Box,
    LinkOf,
    SelectableCanvas,
    client_colour,
    draw_badge,
    elided,
    figures_font,
    no_link,
    same,
    words_font,
)
from viewer.cluster.rebalance import OwnerInterval, OwnershipInterval, Timeline
from viewer.cluster.rebalance_words import duration_range, short_name, step_words
from viewer.cluster.rows import Badge
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import clock
from viewer.look.theme import C, ink, scale
from viewer.widgets.paint import hatch, mark

LABEL, EDGE, FLAGS, AXIS = 196, 16, 46, 24
LANE, QUEUE_LANE, HEAD, FOOT = 54, 38, 34, 16
TICK_INTERVALS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600)
"""Seconds between two ticks of the axis."""
MAX_TICKS = 9
MIN_LABEL_WIDTH = 40
"""Minimum width of a range with a label, px."""


class LanesCanvas(SelectableCanvas):
    """Draws a timeline.

    Emits ``stepRequested(±1)`` on ``[`` and ``]``, ``zoomed(factor, ms)`` on the wheel with the time under the pointer,
    ``stepChosen(number)`` on a click on a flag.
    """

    stepRequested = Signal(object)
    stepChosen = Signal(object)
    zoomed = Signal(float, object)

    def __init__(self, link_of: LinkOf = no_link) -> None:
        super().__init__("cluster.lanes", tr("Queue owners over time"), link_of=link_of)
        self.line = Timeline()
        self.window_ms = (0, 1)
        self.step: int | None = None
        """Number of the selected step, from 0."""

    def show_line(self, line: Timeline, window: tuple[int, int], step: int | None) -> None:
        """Show the part of a timeline in ``window`` (ms from and to), with one step selected."""
        self.line, self.window_ms, self.step = line, (window[0], max(window[1], window[0] + 1)), step
        self.setMinimumHeight(math.ceil(self._lanes_height * scale()))
        description = ", ".join(
            (
                tr_plural("{n:,} consumer", "{n:,} consumers", n=len(line.clients)),
                tr_plural("{n:,} queue", "{n:,} queues", n=len(line.queues)),
                tr_plural("{n:,} step", "{n:,} steps", n=len(line.steps)),
            )
        )
        self.setAccessibleDescription(description)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(700 * scale()), math.ceil(self._lanes_height * scale()))

    @property
    def _queues_at(self) -> float:
        return FLAGS + AXIS + len(self.line.clients) * LANE

    @property
    def _lanes_height(self) -> float:
        return self._queues_at + HEAD + len(self.line.queues) * QUEUE_LANE + FOOT

    @property
    def _lanes_width(self) -> float:
        return self.width() / scale() - LABEL - EDGE

    def _x(self, time_ms: float) -> float:
        begin, end = self.window_ms
        return LABEL + (min(max(time_ms, begin), end) - begin) / (end - begin) * self._lanes_width

    def columns(self) -> Sequence[Sequence[Box]]:
        width, line = self.width() / scale(), self.line
        clients = [
            (QRectF(0, FLAGS + AXIS + number * LANE, width, LANE), Selection("client", client, line.group))
            for number, client in enumerate(line.clients)
        ]
        queues = [
            (
                QRectF(0, self._queues_at + HEAD + number * QUEUE_LANE, width, QUEUE_LANE),
                Selection("queue", group=line.group, queue=queue),
            )
            for number, queue in enumerate(line.queues)
        ]
        return ([*clients, *queues],)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_BracketLeft: -1, Qt.Key.Key_BracketRight: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(
            Qt.Key(event.key())
        )
        if step is not None:
            self.stepRequested.emit(step)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: object) -> None:
        point = event.position() / scale()  # type: ignore[attr-defined]
        flag_number = next((number for box, number in self._flag_boxes() if box.contains(point)), None)
        if flag_number is not None:
            self.stepChosen.emit(flag_number)
        else:
            super().mousePressEvent(event)  # type: ignore[arg-type]

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers():
            event.ignore()
            return
        begin, end = self.window_ms
        share = (event.position().x() / scale() - LABEL) / max(self._lanes_width, 1)
        time_ms = begin + (end - begin) * min(max(share, 0), 1)
        if LABEL * scale() <= event.position().x() and event.angleDelta().y():
            self.zoomed.emit(0.8 if event.angleDelta().y() > 0 else 1.25, round(time_ms))
            event.accept()
        else:
            event.ignore()

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        p.scale(z, z)
        top, bottom = event.rect().top() / z, event.rect().bottom() / z
        self._axis(p)
        highest = max((float(rates.max()) for _, rates in self.line.rates.values() if rates.size), default=0.0)
        for number, client in enumerate(self.line.clients):
            y = float(FLAGS + AXIS + number * LANE)
            if y + LANE >= top and y <= bottom:
                self._client(p, client, y, highest)
        self._queue_head(p)
        for number, queue in enumerate(self.line.queues):
            y = self._queues_at + HEAD + number * QUEUE_LANE
            if y + QUEUE_LANE >= top and y <= bottom:
                self._queue(p, queue, y)
        self._flags(p)
        self.paint_focus(p)

    def _axis(self, p: QPainter) -> None:
        begin, end = self.window_ms
        p.setFont(figures_font(11))
        chosen = self.line.steps[self.step] if self.step is not None and self.step < len(self.line.steps) else None
        if chosen is not None and chosen.end >= begin and chosen.begin <= end:
            left_x, right_x = self._x(chosen.begin), self._x(chosen.end)
            p.fillRect(QRectF(left_x, FLAGS, max(right_x - left_x, 2), self._lanes_height - FLAGS), C("glow", 0.6))
        p.setPen(C("text3"))
        for x, box, label in self._ticks():
            p.fillRect(QRectF(x, FLAGS + AXIS, 1, self._lanes_height - FLAGS - AXIS), C("hair"))
            p.drawText(box, int(Qt.AlignmentFlag.AlignCenter), label)
        for break_begin, break_end in self.line.breaks:
            if break_end >= begin and break_begin <= end:
                left_x, right_x = self._x(break_begin), self._x(break_end)
                if right_x - left_x > MIN_LABEL_WIDTH * 2:
                    p.setPen(C("text3"))
                    box = QRectF(left_x, FLAGS + AXIS, right_x - left_x, 18)
                    p.drawText(box, int(Qt.AlignmentFlag.AlignCenter), tr("not sampled"))

    def _ticks(self) -> list[tuple[float, QRectF, str]]:
        """Return x, label box and label of the round times; the label is empty if the edge would cut it."""
        begin, end = self.window_ms
        label_width, ticks = QFontMetrics(figures_font(11)).horizontalAdvance("00:00:00") + 2, []
        max_ticks = min(MAX_TICKS, self._lanes_width / (label_width + 8))
        step = (
            next(
                (seconds for seconds in TICK_INTERVALS_S if (end - begin) / 1000 / seconds <= max_ticks),
                TICK_INTERVALS_S[-1],
            )
            * 1000
        )
        for time_ms in range(begin - begin % step + step, end + 1, step):
            box = QRectF(self._x(time_ms) - label_width / 2, FLAGS + 2, label_width, 18)
            ticks.append(
                (self._x(time_ms), box, clock(time_ms)[:8] if box.right() <= LABEL + self._lanes_width + EDGE else "")
            )
        return ticks

    def _client(self, p: QPainter, client: str, y: float, highest: float) -> None:
        model, line = self.model, self.line
        self._paint_lane(p, Selection("client", client, line.group), y, LANE)
        badge = model.badge(client)
        intervals = line.lanes.get(client, ())
        has_left = bool(intervals) and not intervals[-1].is_present and intervals[-1].end >= line.end
        named_badge = Badge(model.name_of(client), badge.place)
        draw_badge(p, QRectF(EDGE, y + 10, 30, 16), named_badge, has_left=has_left)
        p.setFont(figures_font(11))
        p.setPen(C("text3" if has_left else "text2"))
        p.drawText(QRectF(EDGE + 36, y + 8, LABEL - EDGE - 44, 20), LEFT, elided(p, client, LABEL - EDGE - 46))
        colour = C("disabled") if has_left and badge.place < 0 else client_colour(badge.place)
        self._rate(p, client, y, colour, highest)
        for interval in intervals:
            if interval.end >= self.window_ms[0] and interval.begin <= self.window_ms[1]:
                self._paint_interval(
                    p, interval, y, colour, tr("killed, kill −9") if client in model.killed else tr("left")
                )

    def _rate(self, p: QPainter, client: str, y: float, colour: QColor, highest: float) -> None:
        """Paint the rate as a height above the band."""
        times, rates = self.line.rates.get(client, (None, None))
        if times is None or rates is None or highest <= 0:
            return
        begin, end = self.window_ms
        first_index = max(int(np.searchsorted(times, begin)) - 1, 0)
        end_index = min(int(np.searchsorted(times, end)) + 1, len(times))
        if end_index - first_index < 2:
            return
        points = [
            QPointF(self._x(float(time_ms)), y + 36 - 24 * float(rate) / highest)
            for time_ms, rate in zip(times[first_index:end_index], rates[first_index:end_index], strict=True)
        ]
        base = y + 36
        ground = QColor(colour)
        ground.setAlphaF(0.3)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(ground)
        p.drawPolygon(QPolygonF([QPointF(points[0].x(), base), *points, QPointF(points[-1].x(), base)]))

    def _paint_interval(
        self, p: QPainter, interval: OwnershipInterval, y: float, colour: QColor, departed_label: str
    ) -> None:
        left_x, right_x = self._x(interval.begin), self._x(interval.end)
        box = QRectF(left_x, y + 36, max(right_x - left_x, 1), 10)
        if not interval.is_present:
            p.setPen(QPen(C("error"), 1.2, Qt.PenStyle.DashLine))
            p.drawLine(QPointF(left_x, y + 41), QPointF(right_x, y + 41))
            if interval.begin > self.window_ms[0]:
                mark(p, "error", QPointF(left_x, y + 41), 4)
            self._paint_label(p, departed_label, left_x + 8, right_x, y + 18, "error")
            return
        if interval.queues is None:
            hatch(p, box, "text3", 0.5)
            self._paint_label(p, tr("not reported"), left_x, right_x, y + 16, "text3")
            return
        if not interval.queues:
            p.setPen(QPen(C("text3"), 1, Qt.PenStyle.DashLine))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
            self._paint_label(p, tr("idle"), left_x, right_x, y + 16, "text2")
            return
        p.fillRect(box, colour)
        queues_label = (
            ", ".join(f"q{queue.queue_id}" for queue in interval.queues)
            if len(interval.queues) <= 4
            else (tr_plural("{n:,} queue", "{n:,} queues", n=len(interval.queues)))
        )
        self._paint_label(p, queues_label, left_x, right_x, y + 16, "text")

    def _paint_label(self, p: QPainter, words: str, left_x: float, right_x: float, y: float, role: str) -> None:
        if right_x - left_x < MIN_LABEL_WIDTH:
            return
        p.setFont(words_font(11, 600))
        p.setPen(C(role))
        p.drawText(QRectF(left_x + 6, y, right_x - left_x - 8, 16), LEFT, elided(p, words, right_x - left_x - 10))

    def _queue_head(self, p: QPainter) -> None:
        y = self._queues_at
        p.fillRect(QRectF(0, y, self.width() / scale(), 1), C("hair"))
        p.setFont(words_font(13, 600))
        p.setPen(C("text"))
        p.drawText(QRectF(EDGE, y, LABEL, HEAD), LEFT, tr("Queues"))
        p.setFont(words_font())
        p.setPen(C("text3"))
        explanation = tr("the owner of each queue; a gap is a pause, two owners deliver twice")
        p.drawText(
            QRectF(LABEL, y, self._lanes_width, HEAD),
            LEFT,
            elided(p, explanation, self._lanes_width, Qt.TextElideMode.ElideRight),
        )

    def _queue(self, p: QPainter, queue: Queue, y: float) -> None:
        self._paint_lane(p, Selection("queue", group=self.line.group, queue=queue), y, QUEUE_LANE)
        p.setFont(figures_font())
        p.setPen(C("text"))
        has_several_topics = self.line.queues[0].topic != self.line.queues[-1].topic
        label = f"{queue.topic} {short_name(queue)}" if has_several_topics else short_name(queue)
        p.drawText(QRectF(EDGE, y, LABEL - 90, 26), LEFT, elided(p, label, LABEL - EDGE - 84))
        row = self.model.find_queue(queue)
        p.setFont(figures_font(11))
        p.setPen(C("text3"))
        p.drawText(QRectF(0, y, LABEL - 8, 26), RIGHT, f"{row.ends.max_offset:,}" if row is not None else "")
        repeat_times = self._repeat_times(queue)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("warn"))
        p.drawRects([QRectF(x, y + 20, 1.5, 4) for x in sorted({round(self._x(time_ms)) for time_ms in repeat_times})])
        for piece in self.line.pieces.get(queue, ()):
            if piece.end >= self.window_ms[0] and piece.begin <= self.window_ms[1]:
                self._paint_owners(p, piece, y)
        p.setFont(words_font(11, 600))
        for box, words, role in self.words_below(queue):
            p.setPen(C(role))
            p.drawText(box.translated(0, y), LEFT, words)

    def _repeat_times(self, queue: Queue) -> list[int]:
        """Return the times within the window at which messages of a queue were delivered again."""
        begin, end = self.window_ms
        return [
            repeated.time_ms
            for repeated in self.model.deliveries.repeated(self.line.group, begin, end + 1)
            if repeated.queue == queue
        ]

    def words_below(self, queue: Queue) -> list[tuple[QRectF, str, str]]:
        """Return the labels under a queue's band, with box (px from the lane's top) and role.

        First the number of duplicates, then "two owners" or "no owner", as far as there is room.
        """
        repeat_times, labels = self._repeat_times(queue), list[tuple[QRectF, str, str]]()
        metrics, edge = QFontMetrics(words_font(11, 600)), LABEL + self._lanes_width

        def put(label: str, left_x: float, role: str) -> None:
            label_width = metrics.horizontalAdvance(label) + 4
            box = QRectF(min(left_x, edge - label_width), 23, label_width, 15)
            if not any(box.intersects(used_box) for used_box, _, _ in labels):
                labels.append((box, label, role))

        if repeat_times:
            put(tr("{n:,} twice", n=len(repeat_times)), self._x(max(repeat_times)) + 6, "warn")
        for piece in self.line.pieces.get(queue, ()):
            if piece.end < self.window_ms[0] or piece.begin > self.window_ms[1]:
                continue
            if len(piece.owners) > 1:
                put(tr("two owners"), self._x(piece.begin), "warn")
            elif not piece.owners and piece.is_known:
                put(tr("no owner {n} s", n=f"{(piece.end - piece.begin) / 1000:.1f}"), self._x(piece.begin), "error")
        return labels

    def _paint_owners(self, p: QPainter, piece: OwnerInterval, y: float) -> None:
        left_x, right_x = self._x(piece.begin), self._x(piece.end)
        box = QRectF(left_x, y + 5, max(right_x - left_x, 1), 14)
        if not piece.owners:
            if piece.is_known:
                hatch(p, box, "error")
            else:
                hatch(p, box, "text3", 0.4)
            return
        if len(piece.owners) > 1:
            half = box.height() / 2
            for number, owner in enumerate(piece.owners[:2]):
                p.fillRect(QRectF(left_x, box.top() + number * half, box.width(), half), self._colour(owner))
            p.setPen(QPen(C("warn"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box)
            return
        colour = self._colour(piece.owners[0])
        p.fillRect(box, colour)
        if right_x - left_x >= MIN_LABEL_WIDTH:
            p.setFont(words_font(11, 600))
            p.setPen(ink(colour))
            p.drawText(box.adjusted(8, 0, 0, 0), LEFT, self.model.name_of(piece.owners[0]))

    def _colour(self, client: str) -> QColor:
        return client_colour(self.model.badge(client).place)

    def _paint_lane(self, p: QPainter, item: Selection, y: float, height: float) -> None:
        width = self.width() / scale()
        if same(self.model.chosen, item):
            p.fillRect(QRectF(0, y, LABEL - 4, height), C("select"))
            p.fillRect(QRectF(0, y, 3, height), C("accent"))
        p.fillRect(QRectF(0, y + height - 1, width, 1), C("hair"))

    # ---- flags -------------------------------------------------------------------------------------------------------

    def _flag_boxes(self) -> list[tuple[QRectF, int]]:
        """Return the flag box of each step in the window, on one of two levels; flags without room are left out."""
        metrics = QFontMetrics(words_font(11, 600))
        free_from, boxes = [0.0, 0.0], []
        for number, step in enumerate(self.line.steps):
            if not self.window_ms[0] <= step.begin <= self.window_ms[1]:
                continue
            flag_width = metrics.horizontalAdvance(self._flag_text(number)) + 12
            x = self._x(step.begin)
            left_x = min(x, LABEL + self._lanes_width - flag_width)
            level = next((candidate_level for candidate_level in (0, 1) if left_x >= free_from[candidate_level]), None)
            if level is None:
                continue
            free_from[level] = left_x + flag_width + 6
            boxes.append((QRectF(left_x, 4 + level * 20, flag_width, 17), number))
        return boxes

    def _flag_text(self, number: int) -> str:
        step = self.line.steps[number]
        label = f"{step.number} {step_words(self.model, step)}"
        return f"{label} · {duration_range(step.worst_pause[1])}" if step.worst_pause is not None else label

    def _flags(self, p: QPainter) -> None:
        boxes = {number: box for box, number in self._flag_boxes()}
        for number, step in enumerate(self.line.steps):
            if not self.window_ms[0] <= step.begin <= self.window_ms[1]:
                continue
            is_chosen, box = number == self.step, boxes.get(number)
            colour = C("warn" if step.pauses or step.doubles else "note")
            x = self._x(step.begin)
            p.setPen(QPen(colour, 2 if is_chosen else 1.2))
            p.drawLine(QPointF(x, box.top() if box is not None else FLAGS), QPointF(x, self._lanes_height - FOOT))
            if box is None:
                continue
            p.setBrush(C("select" if is_chosen else "pane"))
            p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)
            p.setFont(words_font(11, 600))
            p.setPen(C("text"))
            p.drawText(box.adjusted(6, 0, 0, 0), LEFT, self._flag_text(number))
