"""A rebalance over time: a lane a consumer above, a lane a queue below, one axis; flags from the top name the steps.

A consumer's lane: solid = owns, the height above it = messages a second, dashed and empty = idle, dashed red behind ◆ =
gone. A queue's lane: whose it is; a gap is a pause (red hatch), two halves framed in amber are two owners. Where nobody
read, nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF, QWheelEvent

from engine.cluster.state import Queue
from viewer.cluster.cluster_model import Chosen
from viewer.cluster.drawn import (
    LEFT,
    RIGHT,
    Box,
    ThingCanvas,
    client_colour,
    draw_badge,
    elided,
    figures_font,
    same,
    words_font,
)
from viewer.cluster.rebalance import Piece, Stay, Timeline
from viewer.cluster.rebalance_words import length, short, step_words
from viewer.cluster.rows import Badge
from viewer.look.assets import tr
from viewer.look.formats import clock
from viewer.look.theme import C, ink, scale
from viewer.widgets.paint import hatch, mark

LABEL, EDGE, FLAGS, AXIS = 196, 16, 46, 24
LANE, QUEUE_LANE, HEAD, FOOT = 54, 38, 34, 16
TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600)
"""Seconds between two ticks of the axis."""
MOST_TICKS = 9
LEAST_WORDS = 40
"""Px of a stretch in which words stand."""


class LanesCanvas(ThingCanvas):
    """Draws a timeline. ``stepAsked(±1)`` by ``[`` and ``]``, ``zoomed(factor, ms)`` by the wheel with the time under
    the pointer, ``stepChosen(number)`` by a click on a flag.
    """

    stepAsked = Signal(int)
    stepChosen = Signal(int)
    zoomed = Signal(float, object)

    def __init__(self) -> None:
        super().__init__("cluster.lanes", tr("Who owned which queue when"))
        self.line = Timeline()
        self.window_ms = (0, 1)
        self.step: int | None = None
        """Number of the chosen step, from 0."""

    def show_line(self, line: Timeline, window: tuple[int, int], step: int | None) -> None:
        """This timeline, as much of it as the window (ms from and to) holds; a step of it is chosen."""
        self.line, self.window_ms, self.step = line, (window[0], max(window[1], window[0] + 1)), step
        self.setMinimumHeight(math.ceil(self._high * scale()))
        said = tr(
            "{n:,} consumers, {m:,} queues, {s:,} steps", n=len(line.clients), m=len(line.queues), s=len(line.steps)
        )
        self.setAccessibleDescription(said)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(700 * scale()), math.ceil(self._high * scale()))

    @property
    def _queues_at(self) -> float:
        return FLAGS + AXIS + len(self.line.clients) * LANE

    @property
    def _high(self) -> float:
        return self._queues_at + HEAD + len(self.line.queues) * QUEUE_LANE + FOOT

    @property
    def _wide(self) -> float:
        return self.width() / scale() - LABEL - EDGE

    def _x(self, at: float) -> float:
        begin, end = self.window_ms
        return LABEL + (min(max(at, begin), end) - begin) / (end - begin) * self._wide

    def columns(self) -> Sequence[Sequence[Box]]:
        wide, line = self.width() / scale(), self.line
        clients = [
            (QRectF(0, FLAGS + AXIS + number * LANE, wide, LANE), Chosen("client", one, line.group))
            for number, one in enumerate(line.clients)
        ]
        queues = [
            (
                QRectF(0, self._queues_at + HEAD + number * QUEUE_LANE, wide, QUEUE_LANE),
                Chosen("queue", group=line.group, queue=queue),
            )
            for number, queue in enumerate(line.queues)
        ]
        return ([*clients, *queues],)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_BracketLeft: -1, Qt.Key.Key_BracketRight: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(
            Qt.Key(event.key())
        )
        if step is not None:
            self.stepAsked.emit(step)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: object) -> None:
        point = event.position() / scale()  # type: ignore[attr-defined]
        found = next((number for box, number in self._flag_boxes() if box.contains(point)), None)
        if found is not None:
            self.stepChosen.emit(found)
        else:
            super().mousePressEvent(event)  # type: ignore[arg-type]

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers():
            event.ignore()
            return
        begin, end = self.window_ms
        part = (event.position().x() / scale() - LABEL) / max(self._wide, 1)
        at = begin + (end - begin) * min(max(part, 0), 1)
        if LABEL * scale() <= event.position().x() and event.angleDelta().y():
            self.zoomed.emit(0.8 if event.angleDelta().y() > 0 else 1.25, round(at))
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
            left, right = self._x(chosen.begin), self._x(chosen.end)
            p.fillRect(QRectF(left, FLAGS, max(right - left, 2), self._high - FLAGS), C("glow", 0.6))
        p.setPen(C("text3"))
        for x, box, said in self._ticks():
            p.fillRect(QRectF(x, FLAGS + AXIS, 1, self._high - FLAGS - AXIS), C("hair"))
            p.drawText(box, int(Qt.AlignmentFlag.AlignCenter), said)
        for one, other in self.line.breaks:
            if other >= begin and one <= end:
                left, right = self._x(one), self._x(other)
                if right - left > LEAST_WORDS * 2:
                    p.setPen(C("text3"))
                    box = QRectF(left, FLAGS + AXIS, right - left, 18)
                    p.drawText(box, int(Qt.AlignmentFlag.AlignCenter), tr("not sampled"))

    def _ticks(self) -> list[tuple[float, QRectF, str]]:
        """Round times: where the line stands, the box of its words, and these; none where the edge would cut them."""
        begin, end = self.window_ms
        wide, found = QFontMetrics(figures_font(11)).horizontalAdvance("00:00:00") + 2, []
        most = min(MOST_TICKS, self._wide / (wide + 8))
        step = next((one for one in TICKS if (end - begin) / 1000 / one <= most), TICKS[-1]) * 1000
        for at in range(begin - begin % step + step, end + 1, step):
            box = QRectF(self._x(at) - wide / 2, FLAGS + 2, wide, 18)
            found.append((self._x(at), box, clock(at)[:8] if box.right() <= LABEL + self._wide + EDGE else ""))
        return found

    def _client(self, p: QPainter, client: str, y: float, highest: float) -> None:
        model, line = self.model, self.line
        self._ground(p, Chosen("client", client, line.group), y, LANE)
        badge = model.badge(client)
        stays = line.lanes.get(client, ())
        gone = bool(stays) and not stays[-1].there and stays[-1].end >= line.end
        shown = Badge(model.name_of(client), badge.place)
        draw_badge(p, QRectF(EDGE, y + 10, 30, 16), shown, gone=gone)
        p.setFont(figures_font(11))
        p.setPen(C("text3" if gone else "text2"))
        p.drawText(QRectF(EDGE + 36, y + 8, LABEL - EDGE - 44, 20), LEFT, elided(p, client, LABEL - EDGE - 46))
        colour = C("disabled") if gone and badge.place < 0 else client_colour(badge.place)
        self._rate(p, client, y, colour, highest)
        for stay in stays:
            if stay.end >= self.window_ms[0] and stay.begin <= self.window_ms[1]:
                self._stay(p, stay, y, colour, tr("killed, kill −9") if client in model.killed else tr("left"))

    def _rate(self, p: QPainter, client: str, y: float, colour: QColor, highest: float) -> None:
        """The height above the band."""
        times, rates = self.line.rates.get(client, (None, None))
        if times is None or rates is None or highest <= 0:
            return
        begin, end = self.window_ms
        low = max(int(np.searchsorted(times, begin)) - 1, 0)
        high = min(int(np.searchsorted(times, end)) + 1, len(times))
        if high - low < 2:
            return
        points = [
            QPointF(self._x(float(at)), y + 36 - 24 * float(rate) / highest)
            for at, rate in zip(times[low:high], rates[low:high], strict=True)
        ]
        base = y + 36
        ground = QColor(colour)
        ground.setAlphaF(0.3)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(ground)
        p.drawPolygon(QPolygonF([QPointF(points[0].x(), base), *points, QPointF(points[-1].x(), base)]))

    def _stay(self, p: QPainter, stay: Stay, y: float, colour: QColor, gone: str) -> None:
        left, right = self._x(stay.begin), self._x(stay.end)
        box = QRectF(left, y + 36, max(right - left, 1), 10)
        if not stay.there:
            p.setPen(QPen(C("error"), 1.2, Qt.PenStyle.DashLine))
            p.drawLine(QPointF(left, y + 41), QPointF(right, y + 41))
            if stay.begin > self.window_ms[0]:
                mark(p, "error", QPointF(left, y + 41), 4)
            self._words(p, gone, left + 8, right, y + 18, "error")
            return
        if stay.queues is None:
            hatch(p, box, "text3", 0.5)
            self._words(p, tr("it did not tell"), left, right, y + 16, "text3")
            return
        if not stay.queues:
            p.setPen(QPen(C("text3"), 1, Qt.PenStyle.DashLine))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
            self._words(p, tr("idle"), left, right, y + 16, "text2")
            return
        p.fillRect(box, colour)
        said = (
            ", ".join(f"q{queue.queue_id}" for queue in stay.queues)
            if len(stay.queues) <= 4
            else (tr("{n:,} queues", n=len(stay.queues)))
        )
        self._words(p, said, left, right, y + 16, "text")

    def _words(self, p: QPainter, words: str, left: float, right: float, y: float, role: str) -> None:
        if right - left < LEAST_WORDS:
            return
        p.setFont(words_font(11, 600))
        p.setPen(C(role))
        p.drawText(QRectF(left + 6, y, right - left - 8, 16), LEFT, elided(p, words, right - left - 10))

    def _queue_head(self, p: QPainter) -> None:
        y = self._queues_at
        p.fillRect(QRectF(0, y, self.width() / scale(), 1), C("hair"))
        p.setFont(words_font(13, 600))
        p.setPen(C("text"))
        p.drawText(QRectF(EDGE, y, LABEL, HEAD), LEFT, tr("Queues"))
        p.setFont(words_font())
        p.setPen(C("text3"))
        said = tr("who owns each queue; a gap is a pause, two at once hand out twice")
        p.drawText(QRectF(LABEL, y, self._wide, HEAD), LEFT, elided(p, said, self._wide, Qt.TextElideMode.ElideRight))

    def _queue(self, p: QPainter, queue: Queue, y: float) -> None:
        self._ground(p, Chosen("queue", group=self.line.group, queue=queue), y, QUEUE_LANE)
        p.setFont(figures_font())
        p.setPen(C("text"))
        several = self.line.queues[0].topic != self.line.queues[-1].topic
        said = f"{queue.topic} {short(queue)}" if several else short(queue)
        p.drawText(QRectF(EDGE, y, LABEL - 90, 26), LEFT, elided(p, said, LABEL - EDGE - 84))
        row = self.model.find_queue(queue)
        p.setFont(figures_font(11))
        p.setPen(C("text3"))
        p.drawText(QRectF(0, y, LABEL - 8, 26), RIGHT, f"{row.ends.max_offset:,}" if row is not None else "")
        again = self._again(queue)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("warn"))
        p.drawRects([QRectF(x, y + 20, 1.5, 4) for x in sorted({round(self._x(at)) for at in again})])
        for piece in self.line.pieces.get(queue, ()):
            if piece.end >= self.window_ms[0] and piece.begin <= self.window_ms[1]:
                self._piece(p, piece, y)
        p.setFont(words_font(11, 600))
        for box, words, role in self.words_below(queue):
            p.setPen(C(role))
            p.drawText(box.translated(0, y), LEFT, words)

    def _again(self, queue: Queue) -> list[int]:
        """When a message of a queue was handed out again, within the window."""
        begin, end = self.window_ms
        return [one.at for one in self.model.deliveries.twice(self.line.group, begin, end + 1) if one.queue == queue]

    def words_below(self, queue: Queue) -> list[tuple[QRectF, str, str]]:
        """What is written under a queue's band, px from the lane's top, with its role: how often something came twice,
        then that it has two owners or none, as far as there is room beside that.
        """
        again, found = self._again(queue), list[tuple[QRectF, str, str]]()
        metrics, edge = QFontMetrics(words_font(11, 600)), LABEL + self._wide

        def put(said: str, left: float, role: str) -> None:
            wide = metrics.horizontalAdvance(said) + 4
            box = QRectF(min(left, edge - wide), 23, wide, 15)
            if not any(box.intersects(other) for other, _, _ in found):
                found.append((box, said, role))

        if again:
            put(tr("{n:,} twice", n=len(again)), self._x(max(again)) + 6, "warn")
        for piece in self.line.pieces.get(queue, ()):
            if piece.end < self.window_ms[0] or piece.begin > self.window_ms[1]:
                continue
            if len(piece.owners) > 1:
                put(tr("two owners"), self._x(piece.begin), "warn")
            elif not piece.owners and piece.known:
                put(tr("no owner {n} s", n=f"{(piece.end - piece.begin) / 1000:.1f}"), self._x(piece.begin), "error")
        return found

    def _piece(self, p: QPainter, piece: Piece, y: float) -> None:
        left, right = self._x(piece.begin), self._x(piece.end)
        box = QRectF(left, y + 5, max(right - left, 1), 14)
        if not piece.owners:
            if piece.known:
                hatch(p, box, "error")
            else:
                hatch(p, box, "text3", 0.4)
            return
        if len(piece.owners) > 1:
            half = box.height() / 2
            for number, one in enumerate(piece.owners[:2]):
                p.fillRect(QRectF(left, box.top() + number * half, box.width(), half), self._colour(one))
            p.setPen(QPen(C("warn"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box)
            return
        colour = self._colour(piece.owners[0])
        p.fillRect(box, colour)
        if right - left >= LEAST_WORDS:
            p.setFont(words_font(11, 600))
            p.setPen(ink(colour))
            p.drawText(box.adjusted(8, 0, 0, 0), LEFT, self.model.name_of(piece.owners[0]))

    def _colour(self, client: str) -> QColor:
        return client_colour(self.model.badge(client).place)

    def _ground(self, p: QPainter, thing: Chosen, y: float, high: float) -> None:
        wide = self.width() / scale()
        if same(self.model.chosen, thing):
            p.fillRect(QRectF(0, y, LABEL - 4, high), C("select"))
            p.fillRect(QRectF(0, y, 3, high), C("accent"))
        p.fillRect(QRectF(0, y + high - 1, wide, 1), C("hair"))

    # ---- flags -------------------------------------------------------------------------------------------------------

    def _flag_boxes(self) -> list[tuple[QRectF, int]]:
        """Of each step in the window the box of its flag, on one of two levels; what finds no room has none."""
        metrics = QFontMetrics(words_font(11, 600))
        free, found = [0.0, 0.0], []
        for number, step in enumerate(self.line.steps):
            if not self.window_ms[0] <= step.begin <= self.window_ms[1]:
                continue
            wide = metrics.horizontalAdvance(self._said(number)) + 12
            x = self._x(step.begin)
            left = min(x, LABEL + self._wide - wide)
            level = next((at for at in (0, 1) if left >= free[at]), None)
            if level is None:
                continue
            free[level] = left + wide + 6
            found.append((QRectF(left, 4 + level * 20, wide, 17), number))
        return found

    def _said(self, number: int) -> str:
        step = self.line.steps[number]
        said = f"{step.number} {step_words(self.model, step)}"
        return f"{said} · {length(step.worst_pause[1])}" if step.worst_pause is not None else said

    def _flags(self, p: QPainter) -> None:
        boxes = {number: box for box, number in self._flag_boxes()}
        for number, step in enumerate(self.line.steps):
            if not self.window_ms[0] <= step.begin <= self.window_ms[1]:
                continue
            on, box = number == self.step, boxes.get(number)
            colour = C("warn" if step.pauses or step.doubles else "note")
            x = self._x(step.begin)
            p.setPen(QPen(colour, 2 if on else 1.2))
            p.drawLine(QPointF(x, box.top() if box is not None else FLAGS), QPointF(x, self._high - FOOT))
            if box is None:
                continue
            p.setBrush(C("select" if on else "pane"))
            p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)
            p.setFont(words_font(11, 600))
            p.setPen(C("text"))
            p.drawText(box.adjusted(6, 0, 0, 0), LEFT, self._said(number))
