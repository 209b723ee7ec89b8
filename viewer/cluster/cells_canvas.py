"""The picture of a large cluster: a topic is a row of cells, one a queue, a group a row that opens into its clients.

Lines run for what is chosen only. Above it stands the map of all queues, below it the chosen topic with each queue as
a small Line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QPen, QResizeEvent

from viewer.cluster.cluster_model import Chosen, ClusterModel
from viewer.cluster.drawn import (
    LEFT,
    RIGHT,
    Box,
    ThingCanvas,
    client_colour,
    draw_badge,
    draw_bands,
    elided,
    figures_font,
    same,
    words_font,
)
from viewer.cluster.plan import (
    CELL,
    CELL_STEP,
    CELLS_AT,
    FEW,
    LEAST_CELLS,
    MUCH,
    NOBODY,
    ROW,
    SOME_BEHIND,
    UNTOLD,
    CellsPlan,
    SenderGroup,
    cells_plan,
)
from viewer.cluster.rows import LAST, LATE, ClientRow, GroupRow, QueueRow, TopicRow
from viewer.cluster.words import UNTOLD as DOTS
from viewer.cluster.words import count
from viewer.look.assets import tr
from viewer.look.theme import C, over, scale, theme
from viewer.widgets.paint import mark

HEAD_HIGH, MAP_HIGH = 30, 104
FIGURES = (("worst", 12, 92), ("groups", 108, 48), ("went", 160, 56), ("came", 220, 56))
"""Of a topic's figures: px from the right edge, and their width."""
LOW = 0.97
"""A topic of which less than this share is consumed falls behind."""


def cell_colour(code: int) -> QColor:
    """The ground of a cell."""
    if code == MUCH:
        return C("warn")
    if code == SOME_BEHIND:
        return over(C("warn", 0.38), C("pane"))
    if code == NOBODY:
        return C("error")
    if code == UNTOLD:
        return C("sunken")
    return over(C("posLog", 0.34 if theme.dark else 0.20), C("pane"))


class CellsHead(ThingCanvas):
    """The heads of the three tables; they stay while the rows scroll."""

    def __init__(self) -> None:
        super().__init__("cluster.heads", tr("Heads of the tables"), HEAD_HIGH)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.unsetCursor()
        self.plan: CellsPlan = cells_plan(self.model.picture, 0, self.model.chosen)
        self.shift = 0

    def show_plan(self, plan: CellsPlan, shift: int) -> None:
        """Where the rows below stand, and how far they are scrolled to the left."""
        self.plan, self.shift = plan, shift
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.fillRect(event.rect(), C("pane"))
        p.translate(-self.shift, 0)
        p.scale(z, z)
        plan = self.plan
        left, middle, right = plan.middle_at, plan.middle, plan.groups_at
        for x, w in ((0.0, plan.senders_wide), (left, middle), (right, plan.groups_wide)):
            p.fillRect(QRectF(x, 0, w, HEAD_HIGH), C("raised"))
        p.fillRect(QRectF(0, HEAD_HIGH - 1, plan.width, 1), C("hair"))
        p.setFont(words_font())
        p.setPen(C("text3"))
        p.drawText(QRectF(14, 0, 120, HEAD_HIGH), LEFT, tr("Producer group"))
        p.drawText(QRectF(0, 0, plan.senders_wide - 12, HEAD_HIGH), RIGHT, tr("Clients"))
        p.drawText(QRectF(left + 14, 0, 130, HEAD_HIGH), LEFT, tr("Topic"))
        p.drawText(QRectF(left + CELLS_AT, 0, 240, HEAD_HIGH), LEFT, tr("Queues, behind"))
        heads = {"worst": tr("Worst behind"), "groups": tr("Groups"), "went": tr("Out /s"), "came": tr("In /s")}
        for name, at, w in FIGURES:
            p.drawText(QRectF(left + middle - at - w, 0, w, HEAD_HIGH), RIGHT, heads[name])
        p.drawText(QRectF(right + 14, 0, 150, HEAD_HIGH), LEFT, tr("Consumer group"))
        p.drawText(QRectF(right, 0, plan.groups_wide - 84, HEAD_HIGH), RIGHT, tr("Clients"))
        p.drawText(QRectF(right, 0, plan.groups_wide - 12, HEAD_HIGH), RIGHT, tr("Behind"))


class CellsCanvas(ThingCanvas):
    """The three tables side by side over one scroll. ``laid()``: they have another width."""

    laid = Signal()

    def __init__(self) -> None:
        super().__init__("cluster.cells", tr("The cluster as cells"))
        self._order: tuple[str, ...] = ()
        self.plan: CellsPlan = cells_plan(self.model.picture, 0, self.model.chosen)

    def show_picture(self) -> None:
        """Lay out and draw what the model has in sight."""
        self._lay_out(self._room() / scale())
        self.setMinimumSize(round(LEAST_CELLS * scale()), math.ceil(self.plan.height * scale()))
        self.updateGeometry()
        self.update()

    def _lay_out(self, wide: float) -> None:
        self.plan = cells_plan(self.model.picture, wide, self.model.chosen, self._order)
        self._order = tuple(topic.name for topic in self.plan.topics)

    def _room(self) -> int:
        parent = self.parentWidget()
        return parent.width() if parent is not None else self.width()

    def _fit(self) -> None:
        if hasattr(self, "plan"):
            self.show_picture()

    def sizeHint(self) -> QSize:
        return QSize(round(self.plan.width * scale()), math.ceil(self.plan.height * scale()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if abs(self.plan.width - self.width() / scale()) > 1:
            self._lay_out(self.width() / scale())
            self.laid.emit()

    # ---- what can be chosen ------------------------------------------------------------------------------------------

    def columns(self) -> Sequence[Sequence[Box]]:
        plan, middle, right = self.plan, self.plan.middle, self.plan.groups_at
        return (
            [
                (QRectF(0, n * ROW, self.plan.senders_wide, ROW), Chosen("producer", one.members[0].client.client_id))
                for n, one in enumerate(plan.senders)
            ],
            [
                (QRectF(self.plan.middle_at, n * ROW, middle, ROW), Chosen("topic", one.name))
                for n, one in enumerate(plan.topics)
            ],
            [(QRectF(right, n * ROW, plan.groups_wide, ROW), self._thing(one)) for n, one in enumerate(plan.groups)],
        )

    @staticmethod
    def _thing(one: GroupRow | ClientRow) -> Chosen:
        if isinstance(one, GroupRow):
            return Chosen("group", one.name)
        return Chosen("client", one.client.client_id, one.group)

    def thing_at(self, point: QPointF) -> Chosen:
        """By arithmetic: a row is a number."""
        at = point / scale()
        row, plan = int(at.y() // ROW), self.plan
        if row < 0:
            return Chosen()
        if at.x() < self.plan.senders_wide and row < len(plan.senders):
            return Chosen("producer", plan.senders[row].members[0].client.client_id)
        if at.x() >= plan.groups_at and row < len(plan.groups):
            return self._thing(plan.groups[row])
        if self.plan.middle_at <= at.x() < self.plan.middle_at + self.plan.middle and row < len(plan.topics):
            topic = plan.topics[row]
            cell = int((at.x() - self.plan.middle_at - CELLS_AT) // CELL_STEP)
            if 0 <= cell < min(len(topic.queues), plan.shown_cells):
                queue = topic.queues[cell]
                return Chosen("queue", group=queue.group, queue=queue.queue)
            return Chosen("topic", topic.name)
        return Chosen()

    def box_of(self, chosen: Chosen) -> QRectF | None:
        if chosen.kind == "queue" and chosen.queue is not None:
            for number, topic in enumerate(self.plan.topics):
                if topic.name == chosen.queue.topic:
                    at = next((n for n, row in enumerate(topic.queues) if row.queue == chosen.queue), 0)
                    x = self.plan.middle_at + CELLS_AT + min(at, self.plan.shown_cells - 1) * CELL_STEP
                    return QRectF(x, number * ROW + 6, CELL, CELL)
            return None
        return super().box_of(chosen)

    def right_of(self, chosen: Chosen) -> Chosen | None:
        """Producer → the first topic; topic → its group; a queue → the next one, then its owner."""
        plan = self.plan
        match chosen.kind:
            case "producer":
                return Chosen("topic", plan.topics[0].name) if plan.topics else None
            case "topic":
                row = self.model.find_topic(chosen.name)
                return Chosen("group", row.groups[0]) if row is not None and row.groups else None
            case "queue":
                return self._beside(chosen, 1)
        return None

    def left_of(self, chosen: Chosen) -> Chosen | None:
        """Client → its first queue; group → its topic; a queue → the one before; topic → the first producer."""
        plan = self.plan
        match chosen.kind:
            case "client":
                client = self.model.find_client(chosen.group, chosen.name)
                owned = client.owned if client is not None else None
                return Chosen("queue", group=chosen.group, queue=owned[0]) if owned else None
            case "group":
                group = self.model.find_group(chosen.name)
                names = list(group.group.subscriptions) if group is not None else []
                return Chosen("topic", names[0]) if names else None
            case "queue":
                return self._beside(chosen, -1)
            case "topic":
                return Chosen("producer", plan.senders[0].members[0].client.client_id) if plan.senders else None
        return None

    def _beside(self, chosen: Chosen, step: int) -> Chosen | None:
        queue = chosen.queue
        topic = self.model.find_topic(queue.topic) if queue is not None else None
        if topic is None:
            return None
        at = next((n for n, row in enumerate(topic.queues) if row.queue == queue), 0) + step
        if not 0 <= at < len(topic.queues):
            return Chosen("topic", topic.name)
        return Chosen("queue", group=topic.queues[at].group, queue=topic.queues[at].queue)

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.fillRect(event.rect(), C("pane"))
        p.scale(z, z)
        top, bottom = event.rect().top() / z, event.rect().bottom() / z
        plan, chosen = self.plan, self.model.chosen
        right = plan.groups_at
        for x in (
            float(self.plan.senders_wide),
            float(self.plan.middle_at),
            self.plan.middle_at + self.plan.middle,
            right,
        ):
            p.fillRect(QRectF(x, top, 1, bottom - top + 1), C("hair"))
        seen = plan.rows_seen(top, bottom)
        for number in seen:
            if number < len(plan.topics) and self._chosen_topic(plan.topics[number]):
                p.fillRect(QRectF(self.plan.middle_at + 1, number * ROW, self.plan.middle - 1, ROW), C("select"))
                p.fillRect(QRectF(self.plan.middle_at, number * ROW, 3, ROW), C("accent"))
        self._cells(p, seen)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number in seen:
            if number < len(plan.topics):
                self._topic(p, number, plan.topics[number])
            if number < len(plan.senders):
                self._sender(p, number, plan.senders[number])
            if number < len(plan.groups):
                self._group(p, number, plan.groups[number])
        draw_bands(p, plan.bands, chosen.name if chosen.kind == "client" else "", top, bottom, faint=0.9)
        self.paint_focus(p)

    def _cells(self, p: QPainter, seen: range) -> None:
        """All cells in sight, one call a colour; those that nobody owns are crossed."""
        plan = self.plan
        codes = plan.cells[seen.start : seen.stop, : plan.shown_cells]
        rows, columns = np.nonzero(codes >= 0)
        kinds = codes[rows, columns]
        p.setPen(Qt.PenStyle.NoPen)
        for code in (FEW, SOME_BEHIND, MUCH, NOBODY, UNTOLD):
            chosen = kinds == code
            boxes = [
                QRectF(self.plan.middle_at + CELLS_AT + column * CELL_STEP, (seen.start + row) * ROW + 6, CELL, CELL)
                for row, column in zip(rows[chosen].tolist(), columns[chosen].tolist(), strict=True)
            ]
            if not boxes:
                continue
            p.setBrush(C("errorFill") if code == NOBODY else cell_colour(code))
            p.drawRects(boxes)
            if code == NOBODY:
                p.setPen(QPen(C("error"), 1.2))
                for box in boxes:
                    p.drawRect(box.adjusted(0.6, 0.6, -0.6, -0.6))
                    p.drawLine(box.topLeft() + QPointF(3, 3), box.bottomRight() - QPointF(3, 3))
                    p.drawLine(box.topRight() + QPointF(-3, 3), box.bottomLeft() + QPointF(3, -3))
                p.setPen(Qt.PenStyle.NoPen)

    def _chosen_topic(self, row: TopicRow) -> bool:
        chosen = self.model.chosen
        return row.name == (chosen.queue.topic if chosen.queue is not None else chosen.name * (chosen.kind == "topic"))

    def _topic(self, p: QPainter, number: int, row: TopicRow) -> None:
        y, middle, on = number * ROW, self.plan.middle, self._chosen_topic(row)
        if row.trouble:
            mark(p, row.trouble, QPointF(self.plan.middle_at + 19, y + ROW / 2), 4.2)
        p.setFont(words_font(13, 600 if on else 400))
        p.setPen(C("text"))
        p.drawText(QRectF(self.plan.middle_at + 32, y, CELLS_AT - 36, ROW), LEFT, elided(p, row.name, CELLS_AT - 38))
        more = len(row.queues) - self.plan.shown_cells
        if more > 0:
            p.setFont(figures_font(11))
            p.setPen(C("text3"))
            x = self.plan.middle_at + CELLS_AT + self.plan.shown_cells * CELL_STEP
            p.drawText(QRectF(x, y, 60, ROW), LEFT, f"+{more}")
        low = row.came is not None and row.went is not None and row.went < row.came * LOW and bool(row.trouble)
        orphans = row.orphans
        said = {
            "worst": (tr("no owner") if orphans else count(row.worst) if row.groups else "", row.trouble or "text2"),
            "groups": (f"{len(row.groups):,}", "text2"),
            "went": (_rounded(row.went) if row.groups else "", "warn" if low else "text2"),
            "came": (_rounded(row.came), "text2"),
        }
        for name, at, w in FIGURES:
            words, role = said[name]
            p.setFont(figures_font(12, 600 if role in {"warn", "error"} else 400))
            p.setPen(C(role))
            p.drawText(QRectF(self.plan.middle_at + middle - at - w, y, w, ROW), RIGHT, words)
        if number == self.plan.trouble_end - 1:
            p.fillRect(QRectF(self.plan.middle_at + 12, y + ROW - 0.5, middle - 24, 1), C("line"))

    def _sender(self, p: QPainter, number: int, one: SenderGroup) -> None:
        y = number * ROW
        if any(same(self.model.chosen, Chosen("producer", row.client.client_id)) for row in one.members):
            p.fillRect(QRectF(0, y, self.plan.senders_wide, ROW), C("select"))
            p.fillRect(QRectF(0, y, 3, ROW), C("accent"))
        p.setFont(words_font(13))
        p.setPen(C("text"))
        p.drawText(
            QRectF(14, y, self.plan.senders_wide - 70, ROW), LEFT, elided(p, one.name, self.plan.senders_wide - 70)
        )
        p.setFont(figures_font())
        p.setPen(C("text2"))
        p.drawText(
            QRectF(0, y, self.plan.senders_wide - 12, ROW), RIGHT, f"{sum(not row.left for row in one.members):,}"
        )

    def _group(self, p: QPainter, number: int, row: GroupRow | ClientRow) -> None:
        x, y = self.plan.groups_at, number * ROW
        if same(self.model.chosen, self._thing(row)):
            p.fillRect(QRectF(x + 1, y, self.plan.groups_wide - 1, ROW), C("select"))
            p.fillRect(QRectF(x, y, 3, ROW), C("accent"))
        elif isinstance(row, ClientRow):
            p.fillRect(QRectF(x + 1, y, self.plan.groups_wide - 1, ROW), C("raised"))
        late = (row.behind or 0) >= LATE
        if isinstance(row, ClientRow):
            draw_badge(p, QRectF(x + 30, y + 5, 30, 16), row.badge, gone=row.left)
            p.setFont(figures_font(11))
            p.setPen(C("text3" if row.left else "text2"))
            p.drawText(
                QRectF(x + 66, y, self.plan.groups_wide - 186, ROW),
                LEFT,
                elided(p, row.client.client_id, self.plan.groups_wide - 186),
            )
            p.setFont(figures_font())
            gone = tr("killed") if row.client.client_id in self.model.killed else tr("left")
            owned = gone if row.left else DOTS if row.owned is None else f"{len(row.owned):,}"
            p.drawText(QRectF(x, y, self.plan.groups_wide - 84, ROW), RIGHT, owned)
            words, role = count(row.behind) if not row.left else "", "warn" if late else "text2"
        else:
            if row.trouble:
                mark(p, row.trouble, QPointF(x + 19, y + ROW / 2), 4.2)
            p.setFont(words_font(13))
            p.setPen(C("text"))
            p.drawText(
                QRectF(x + 32, y, self.plan.groups_wide - 152, ROW),
                LEFT,
                elided(p, row.name, self.plan.groups_wide - 152),
            )
            p.setFont(figures_font())
            p.setPen(C("text2"))
            p.drawText(QRectF(x, y, self.plan.groups_wide - 84, ROW), RIGHT, f"{len(row.clients):,}")
            words = tr("no owner") if row.orphans else DOTS if row.broadcast else count(row.behind)
            role = row.trouble or "text2"
        p.setFont(figures_font(12, 600 if role in {"warn", "error"} else 400))
        p.setPen(C(role))
        p.drawText(QRectF(x, y, self.plan.groups_wide - 12, ROW), RIGHT, words)


def _rounded(value: float | None) -> str:
    return DOTS if value is None else f"{value:,.0f}"


class QueueMap(ThingCanvas):
    """The Line of the view: a column a topic, a cell a queue, in the order of the table; a frame around what is in
    sight. ``scrolled(number)``: the topic at the pointer is wanted.
    """

    scrolled = Signal(int)

    def __init__(self) -> None:
        super().__init__("cluster.map", tr("All queues"), MAP_HIGH)
        self._codes = np.zeros((0, 0), np.int8)
        self._names: tuple[str, ...] = ()
        self._seen = (0, 0)

    def show_cells(self, plan: CellsPlan, first: int, last: int) -> None:
        """What the table says, and the topics of it that are in sight."""
        self._codes, self._seen = plan.cells, (first, last)
        self._names = tuple(topic.name for topic in plan.topics)
        self.setAccessibleDescription(tr("{n:,} topics, {m:,} of them in sight", n=len(self._names), m=last - first))
        self.update()

    def thing_at(self, point: QPointF) -> Chosen:
        number = int((point.x() / scale() - 16) // max(self._step, 0.01))
        return Chosen("topic", self._names[number]) if 0 <= number < len(self._names) else Chosen()

    def columns(self) -> Sequence[Sequence[Box]]:
        return (
            [
                (QRectF(16 + n * self._step, 24, self._step, 66), Chosen("topic", name))
                for n, name in enumerate(self._names)
            ],
        )

    def right_of(self, chosen: Chosen) -> Chosen | None:
        """The next topic."""
        return self._next(chosen, 1)

    def left_of(self, chosen: Chosen) -> Chosen | None:
        """The topic before."""
        return self._next(chosen, -1)

    def _next(self, chosen: Chosen, step: int) -> Chosen | None:
        if not self._names:
            return None
        at = self._names.index(chosen.name) + step if chosen.name in self._names else 0
        return Chosen("topic", self._names[min(max(at, 0), len(self._names) - 1)])

    @property
    def _step(self) -> float:
        return (self.width() / scale() - 32) / max(len(self._names), 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.fillRect(event.rect(), C("pane"))
        p.scale(z, z)
        wide, high = self.width() / z, float(MAP_HIGH)
        p.fillRect(QRectF(0, high - 1, wide, 1), C("hair"))
        queues = int((self._codes >= 0).sum())
        p.setFont(words_font())
        p.setPen(C("text2"))
        p.drawText(
            QRectF(16, 3, wide * 0.5, 18), LEFT, tr("All {n:,} queues · a column is a topic, a cell a queue", n=queues)
        )
        self._legend(p, wide)
        if not queues:
            return
        target = QRectF(16, 24, wide - 32, 66)
        p.drawImage(target, self._image(round(target.width()), round(target.height())))
        first, last = self._seen
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(C("accent", 0.08))
        p.drawRoundedRect(QRectF(13 + first * self._step, 21, (last - first) * self._step + 4, 72), 2, 2)
        self.paint_focus(p)

    def _image(self, wide: int, high: int) -> QImage:
        """All cells as one picture, made of arrays."""
        codes = self._codes.T
        rows, columns = codes.shape
        ground = C("pane").rgb()
        table = np.array([cell_colour(code).rgb() for code in range(5)] + [ground], np.uint32)
        across = np.minimum(np.arange(wide) * columns // wide, columns - 1)
        down = np.minimum(np.arange(high) * rows // high, rows - 1)
        picture = table[codes[down[:, None], across[None, :]]]
        if wide >= columns * 4:
            edges = np.nonzero(np.diff(across, prepend=across[0]))[0]
            picture[:, edges] = picture[:, np.maximum(edges - 1, 0)] = ground
        if high >= rows * 3:
            picture[np.nonzero(np.diff(down, prepend=down[0]))[0], :] = ground
        pixels = np.ascontiguousarray(picture)
        return QImage(pixels.data, wide, high, wide * 4, QImage.Format.Format_RGB32).copy()

    @staticmethod
    def _legend(p: QPainter, wide: float) -> None:
        x = wide - 16
        said = (
            (NOBODY, tr("no owner")),
            (MUCH, tr("1,000 and more behind")),
            (SOME_BEHIND, tr("10 and more")),
            (FEW, tr("less than 10")),
        )
        for code, words in said:
            w = p.fontMetrics().horizontalAdvance(words)
            p.setPen(C("text2"))
            p.drawText(QRectF(x - w, 3, w + 2, 18), LEFT, words)
            p.fillRect(QRectF(x - w - 18, 7, 11, 11), cell_colour(code))
            x -= w + 36


class TopicQueues(ThingCanvas):
    """The chosen topic, opened: each of its queues as a small Line, with next offset, behind and owner."""

    STEP, HEIGHT, ACROSS, HELD = 30, 138, 270, 38

    def __init__(self) -> None:
        super().__init__("cluster.topic", tr("Queues of the chosen topic"), self.HEIGHT)
        self._rows: tuple[QueueRow, ...] = ()

    def show_topic(self, model: ClusterModel, row: TopicRow | None) -> None:
        """These queues."""
        self.model, self._rows = model, row.queues if row is not None else ()
        self.update()

    @property
    def _held_wide(self) -> int:
        """Room for pulls that wait, where a broker tells of them."""
        return self.HELD if any(row.held is not None for row in self._rows) else 0

    def _place(self, number: int) -> QRectF:
        room = max(int((self.width() / scale() - 24) // (self.ACROSS + self._held_wide)), 1)
        across = min(room, max(math.ceil(len(self._rows) / 4), 3))
        wide = (self.width() / scale() - 24) / across
        return QRectF(12 + (number // 4) * wide, 8 + (number % 4) * self.STEP, wide - 8, self.STEP - 4)

    def columns(self) -> Sequence[Sequence[Box]]:
        whole = QRectF(self.rect())
        boxes = [
            (self._place(n), Chosen("queue", group=row.group, queue=row.queue)) for n, row in enumerate(self._rows)
        ]
        shown = [one for one in boxes if one[0].right() * scale() <= whole.right() + 1]
        return [shown[n : n + 4] for n in range(0, len(shown), 4)]

    def right_of(self, chosen: Chosen) -> Chosen | None:
        """The queue four further."""
        return self._step(chosen, 4)

    def left_of(self, chosen: Chosen) -> Chosen | None:
        """The queue four before."""
        return self._step(chosen, -4)

    def _step(self, chosen: Chosen, step: int) -> Chosen | None:
        if not self._rows:
            return None
        at = next((n for n, row in enumerate(self._rows) if row.queue == chosen.queue), 0) + step
        row = self._rows[min(max(at, 0), len(self._rows) - 1)]
        return Chosen("queue", group=row.group, queue=row.queue)

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        p.scale(z, z)
        shown = 0
        for column in self.columns():
            for box, _ in column:
                self._queue(p, self._rows[shown], box)
                shown += 1
        p.setFont(words_font(11))
        p.setPen(C("text3"))
        if any(row.held for row in self._rows):
            mark(p, "held", QPointF(22, self.HEIGHT - 9), 4)
            p.setPen(C("text3"))
            p.drawText(QRectF(32, self.HEIGHT - 16, 240, 14), LEFT, tr("pull held by the broker"))
        if shown < len(self._rows):
            box = QRectF(12, self.HEIGHT - 16, self.width() / z - 24, 14)
            p.drawText(box, RIGHT, tr("{n:,} queues more: Tables has them", n=len(self._rows) - shown))
        self.paint_focus(p)

    def _queue(self, p: QPainter, row: QueueRow, box: QRectF) -> None:
        model, y = self.model, box.center().y()
        if model.chosen.queue == row.queue:
            p.fillRect(box, C("select"))
        p.setFont(figures_font())
        p.setPen(C("text"))
        p.drawText(
            QRectF(box.left() + 4, box.top(), 76, box.height()),
            LEFT,
            elided(p, f"{row.queue.broker.removeprefix('broker-')} q{row.queue.queue_id}", 66),
        )
        line = QRectF(box.left() + 74, y - 4, max(box.width() - 74 - 186 - self._held_wide, 20), 8)
        badge = model.badge(row.owners[0]) if row.owners else None
        p.fillRect(line, C("posLog", 0.42 if theme.dark else 0.30))
        behind, late = row.behind, (row.behind or 0) >= LATE
        if behind is not None:
            x = line.right() - line.width() * min(behind, LAST) / LAST
            if late:
                p.fillRect(QRectF(x, line.top(), line.right() - x, line.height()), C("warn", 0.85))
            p.fillRect(
                QRectF(x - 3, line.top() - 4, 3, line.height() + 8),
                client_colour(badge.place) if badge is not None else C("text3"),
            )
        p.setPen(C("accent"))
        offset = row.next_offset if row.group else row.ends.max_offset
        p.drawText(QRectF(line.right() + 6, box.top(), 86, box.height()), RIGHT, count(offset))
        p.setFont(figures_font(12, 600 if late else 400))
        p.setPen(C("error" if row.orphan else "warn" if late else "text2"))
        p.drawText(QRectF(line.right() + 94, box.top(), 54, box.height()), RIGHT, count(behind) if row.group else "")
        if row.held:
            x = line.right() + 180
            if row.held > 1:
                p.setFont(figures_font(11))
                p.setPen(C("text2"))
                p.drawText(QRectF(x - 30, y - 10, 22, 20), RIGHT, f"{row.held:,}")
            mark(p, "held", QPointF(x, y), 4.4)
        at = QRectF(line.right() + 152 + self._held_wide, y - 8, 30, 16)
        if badge is not None:
            draw_badge(p, at, badge)
        elif row.orphan:
            mark(p, "error", at.center(), 4.5)
