"""Picture of a large cluster: a topic is a row of cells, one for each queue; a group is a row that opens into its
clients.

Lines are drawn only for the selection. Above is the map of all queues, below the selected topic with each queue as a
small Line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QPen, QResizeEvent

from viewer.cluster.cluster_model import ClusterModel, Selection
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
    CELL,
    CELL_STEP,
    CELLS_AT,
    FAR_BEHIND,
    FEW,
    MIN_CELLS_WIDTH,
    NO_OWNER,
    ROW,
    SOME_BEHIND,
    UNKNOWN,
    CellsPlan,
    SenderGroup,
    cells_plan,
)
from viewer.cluster.rows import LINE_ENTRIES, MIN_SHOWN_LAG, ClientRow, GroupRow, QueueRow, TopicRow
from viewer.cluster.words import UNKNOWN as DOTS
from viewer.cluster.words import count
from viewer.look.assets import tr, tr_plural
from viewer.look.theme import C, over, scale, theme
from viewer.widgets.paint import mark

HEAD_HEIGHT, MAP_HEIGHT = 30, 104
FIGURES = (("worst", 12, 92), ("groups", 108, 48), ("went", 160, 56), ("came", 220, 56))
"""Columns of a topic's figures: name, px from the right edge, width."""
KEEPS_UP_SHARE = 0.97
"""A topic falls behind if less than this share of its messages is consumed."""


def cell_colour(code: int) -> QColor:
    """Return the background of a cell."""
    if code == FAR_BEHIND:
        return C("warn")
    if code == SOME_BEHIND:
        return over(C("warn", 0.38), C("pane"))
    if code == NO_OWNER:
        return C("error")
    if code == UNKNOWN:
        return C("sunken")
    return over(C("posLog", 0.34 if theme.dark else 0.20), C("pane"))


class CellsHead(SelectableCanvas):
    """Headings of the three tables; they stay while the rows scroll."""

    def __init__(self) -> None:
        super().__init__("cluster.heads", tr("Heads of the tables"), HEAD_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.unsetCursor()
        self.plan: CellsPlan = cells_plan(self.model.picture, 0, self.model.chosen)
        self.shift = 0

    def show_plan(self, plan: CellsPlan, shift: int) -> None:
        """Align with the rows below, which are scrolled by ``shift`` to the left."""
        self.plan, self.shift = plan, shift
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.fillRect(event.rect(), C("pane"))
        p.translate(-self.shift, 0)
        p.scale(z, z)
        plan = self.plan
        topics_x, topics_width, groups_x = plan.middle_at, plan.middle, plan.groups_at
        for x, width in ((0.0, plan.senders_width), (topics_x, topics_width), (groups_x, plan.groups_width)):
            p.fillRect(QRectF(x, 0, width, HEAD_HEIGHT), C("raised"))
        p.fillRect(QRectF(0, HEAD_HEIGHT - 1, plan.width, 1), C("hair"))
        p.setFont(words_font())
        p.setPen(C("text3"))
        p.drawText(QRectF(14, 0, 120, HEAD_HEIGHT), LEFT, tr("Producer group"))
        p.drawText(QRectF(0, 0, plan.senders_width - 12, HEAD_HEIGHT), RIGHT, tr("Clients"))
        p.drawText(QRectF(topics_x + 14, 0, 130, HEAD_HEIGHT), LEFT, tr("Topic"))
        p.drawText(QRectF(topics_x + CELLS_AT, 0, 240, HEAD_HEIGHT), LEFT, tr("Queues, behind"))
        heads = {"worst": tr("Largest lag"), "groups": tr("Groups"), "went": tr("Out /s"), "came": tr("In /s")}
        for name, right_edge, width in FIGURES:
            p.drawText(QRectF(topics_x + topics_width - right_edge - width, 0, width, HEAD_HEIGHT), RIGHT, heads[name])
        p.drawText(QRectF(groups_x + 14, 0, 150, HEAD_HEIGHT), LEFT, tr("Consumer group"))
        p.drawText(QRectF(groups_x, 0, plan.groups_width - 84, HEAD_HEIGHT), RIGHT, tr("Clients"))
        p.drawText(QRectF(groups_x, 0, plan.groups_width - 12, HEAD_HEIGHT), RIGHT, tr("Behind"))


class CellsCanvas(SelectableCanvas):
    """The three tables side by side in one scroll area. Emits ``widthChanged()`` when their width changes."""

    widthChanged = Signal()

    def __init__(self, link_of: LinkOf = no_link) -> None:
        super().__init__("cluster.cells", tr("The cluster as cells"), link_of=link_of)
        self._order: tuple[str, ...] = ()
        self.plan: CellsPlan = cells_plan(self.model.picture, 0, self.model.chosen)

    def show_picture(self) -> None:
        """Lay out and draw the model's filtered picture."""
        self._lay_out(self._room() / scale())
        self.setMinimumSize(round(MIN_CELLS_WIDTH * scale()), math.ceil(self.plan.height * scale()))
        self.updateGeometry()
        self.update()

    def _lay_out(self, width: float) -> None:
        self.plan = cells_plan(self.model.picture, width, self.model.chosen, self._order)
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
            self.widthChanged.emit()

    # ---- what can be chosen ------------------------------------------------------------------------------------------

    def columns(self) -> Sequence[Sequence[Box]]:
        plan, topics_width, groups_x = self.plan, self.plan.middle, self.plan.groups_at
        return (
            [
                (
                    QRectF(0, index * ROW, self.plan.senders_width, ROW),
                    Selection("producer", row.members[0].client.client_id),
                )
                for index, row in enumerate(plan.senders)
            ],
            [
                (QRectF(self.plan.middle_at, index * ROW, topics_width, ROW), Selection("topic", row.name))
                for index, row in enumerate(plan.topics)
            ],
            [
                (QRectF(groups_x, index * ROW, plan.groups_width, ROW), self._selection_of(row))
                for index, row in enumerate(plan.groups)
            ],
        )

    @staticmethod
    def _selection_of(row: GroupRow | ClientRow) -> Selection:
        if isinstance(row, GroupRow):
            return Selection("group", row.name)
        return Selection("client", row.client.client_id, row.group)

    def item_at(self, point: QPointF) -> Selection:
        """Return the item under a point, computed from row and cell numbers."""
        position = point / scale()
        row, plan = int(position.y() // ROW), self.plan
        if row < 0:
            return Selection()
        if position.x() < self.plan.senders_width and row < len(plan.senders):
            return Selection("producer", plan.senders[row].members[0].client.client_id)
        if position.x() >= plan.groups_at and row < len(plan.groups):
            return self._selection_of(plan.groups[row])
        if self.plan.middle_at <= position.x() < self.plan.middle_at + self.plan.middle and row < len(plan.topics):
            topic = plan.topics[row]
            cell = int((position.x() - self.plan.middle_at - CELLS_AT) // CELL_STEP)
            if 0 <= cell < min(len(topic.queues), plan.shown_cells):
                queue = topic.queues[cell]
                return Selection("queue", group=queue.group, queue=queue.queue)
            return Selection("topic", topic.name)
        return Selection()

    def box_of(self, chosen: Selection) -> QRectF | None:
        if chosen.kind == "queue" and chosen.queue is not None:
            for number, topic in enumerate(self.plan.topics):
                if topic.name == chosen.queue.topic:
                    cell_index = next((index for index, row in enumerate(topic.queues) if row.queue == chosen.queue), 0)
                    x = self.plan.middle_at + CELLS_AT + min(cell_index, self.plan.shown_cells - 1) * CELL_STEP
                    return QRectF(x, number * ROW + 6, CELL, CELL)
            return None
        return super().box_of(chosen)

    def right_of(self, chosen: Selection) -> Selection | None:
        """Producer → the first topic; topic → its group; a queue → the next one, then its owner."""
        plan = self.plan
        match chosen.kind:
            case "producer":
                return Selection("topic", plan.topics[0].name) if plan.topics else None
            case "topic":
                row = self.model.find_topic(chosen.name)
                return Selection("group", row.groups[0]) if row is not None and row.groups else None
            case "queue":
                return self._neighbour(chosen, 1)
        return None

    def left_of(self, chosen: Selection) -> Selection | None:
        """Client → its first queue; group → its topic; a queue → the previous one; topic → the first producer."""
        plan = self.plan
        match chosen.kind:
            case "client":
                client = self.model.find_client(chosen.group, chosen.name)
                owned = client.owned if client is not None else None
                return Selection("queue", group=chosen.group, queue=owned[0]) if owned else None
            case "group":
                group = self.model.find_group(chosen.name)
                names = list(group.group.subscriptions) if group is not None else []
                return Selection("topic", names[0]) if names else None
            case "queue":
                return self._neighbour(chosen, -1)
            case "topic":
                return Selection("producer", plan.senders[0].members[0].client.client_id) if plan.senders else None
        return None

    def _neighbour(self, chosen: Selection, step: int) -> Selection | None:
        queue = chosen.queue
        topic = self.model.find_topic(queue.topic) if queue is not None else None
        if topic is None:
            return None
        index = next((queue_index for queue_index, row in enumerate(topic.queues) if row.queue == queue), 0) + step
        if not 0 <= index < len(topic.queues):
            return Selection("topic", topic.name)
        return Selection("queue", group=topic.queues[index].group, queue=topic.queues[index].queue)

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.fillRect(event.rect(), C("pane"))
        p.scale(z, z)
        top, bottom = event.rect().top() / z, event.rect().bottom() / z
        plan, chosen = self.plan, self.model.chosen
        groups_x = plan.groups_at
        for x in (
            float(self.plan.senders_width),
            float(self.plan.middle_at),
            self.plan.middle_at + self.plan.middle,
            groups_x,
        ):
            p.fillRect(QRectF(x, top, 1, bottom - top + 1), C("hair"))
        visible_rows = plan.visible_rows(top, bottom)
        for number in visible_rows:
            if number < len(plan.topics) and self._chosen_topic(plan.topics[number]):
                p.fillRect(QRectF(self.plan.middle_at + 1, number * ROW, self.plan.middle - 1, ROW), C("select"))
                p.fillRect(QRectF(self.plan.middle_at, number * ROW, 3, ROW), C("accent"))
        self._cells(p, visible_rows)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number in visible_rows:
            if number < len(plan.topics):
                self._topic(p, number, plan.topics[number])
            if number < len(plan.senders):
                self._sender(p, number, plan.senders[number])
            if number < len(plan.groups):
                self._group(p, number, plan.groups[number])
        draw_bands(p, plan.bands, chosen.name if chosen.kind == "client" else "", top, bottom, faint=0.9)
        self.paint_focus(p)

    def _cells(self, p: QPainter, visible_rows: range) -> None:
        """Paint all visible cells, one call for each colour; cells without an owner are crossed."""
        plan = self.plan
        codes = plan.cells[visible_rows.start : visible_rows.stop, : plan.shown_cells]
        rows, columns = np.nonzero(codes >= 0)
        kinds = codes[rows, columns]
        p.setPen(Qt.PenStyle.NoPen)
        for code in (FEW, SOME_BEHIND, FAR_BEHIND, NO_OWNER, UNKNOWN):
            chosen = kinds == code
            boxes = [
                QRectF(
                    self.plan.middle_at + CELLS_AT + column * CELL_STEP,
                    (visible_rows.start + row) * ROW + 6,
                    CELL,
                    CELL,
                )
                for row, column in zip(rows[chosen].tolist(), columns[chosen].tolist(), strict=True)
            ]
            if not boxes:
                continue
            p.setBrush(C("errorFill") if code == NO_OWNER else cell_colour(code))
            p.drawRects(boxes)
            if code == NO_OWNER:
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
        y, middle, is_chosen = number * ROW, self.plan.middle, self._chosen_topic(row)
        if row.trouble:
            mark(p, row.trouble, QPointF(self.plan.middle_at + 19, y + ROW / 2), 4.2)
        p.setFont(words_font(13, 600 if is_chosen else 400))
        p.setPen(C("text"))
        p.drawText(QRectF(self.plan.middle_at + 32, y, CELLS_AT - 36, ROW), LEFT, elided(p, row.name, CELLS_AT - 38))
        hidden_count = len(row.queues) - self.plan.shown_cells
        if hidden_count > 0:
            p.setFont(figures_font(11))
            p.setPen(C("text3"))
            x = self.plan.middle_at + CELLS_AT + self.plan.shown_cells * CELL_STEP
            p.drawText(QRectF(x, y, 60, ROW), LEFT, f"+{hidden_count}")
        falls_behind = (
            row.in_rate is not None
            and row.out_rate is not None
            and row.out_rate < row.in_rate * KEEPS_UP_SHARE
            and bool(row.trouble)
        )
        orphans = row.orphans
        texts = {
            "worst": (tr("no owner") if orphans else count(row.worst) if row.groups else "", row.trouble or "text2"),
            "groups": (f"{len(row.groups):,}", "text2"),
            "went": (_rounded(row.out_rate) if row.groups else "", "warn" if falls_behind else "text2"),
            "came": (_rounded(row.in_rate), "text2"),
        }
        for name, right_edge, width in FIGURES:
            words, role = texts[name]
            p.setFont(figures_font(12, 600 if role in {"warn", "error"} else 400))
            p.setPen(C(role))
            p.drawText(QRectF(self.plan.middle_at + middle - right_edge - width, y, width, ROW), RIGHT, words)
        if number == self.plan.trouble_end - 1:
            p.fillRect(QRectF(self.plan.middle_at + 12, y + ROW - 0.5, middle - 24, 1), C("line"))

    def _sender(self, p: QPainter, number: int, sender_group: SenderGroup) -> None:
        y = number * ROW
        if any(same(self.model.chosen, Selection("producer", row.client.client_id)) for row in sender_group.members):
            p.fillRect(QRectF(0, y, self.plan.senders_width, ROW), C("select"))
            p.fillRect(QRectF(0, y, 3, ROW), C("accent"))
        p.setFont(words_font(13))
        p.setPen(C("text"))
        p.drawText(
            QRectF(14, y, self.plan.senders_width - 70, ROW),
            LEFT,
            elided(p, sender_group.name, self.plan.senders_width - 70),
        )
        p.setFont(figures_font())
        p.setPen(C("text2"))
        p.drawText(
            QRectF(0, y, self.plan.senders_width - 12, ROW),
            RIGHT,
            f"{sum(not row.has_left for row in sender_group.members):,}",
        )

    def _group(self, p: QPainter, number: int, row: GroupRow | ClientRow) -> None:
        x, y = self.plan.groups_at, number * ROW
        if same(self.model.chosen, self._selection_of(row)):
            p.fillRect(QRectF(x + 1, y, self.plan.groups_width - 1, ROW), C("select"))
            p.fillRect(QRectF(x, y, 3, ROW), C("accent"))
        elif isinstance(row, ClientRow):
            p.fillRect(QRectF(x + 1, y, self.plan.groups_width - 1, ROW), C("raised"))
        is_late = (row.lag or 0) >= MIN_SHOWN_LAG
        if isinstance(row, ClientRow):
            draw_badge(p, QRectF(x + 30, y + 5, 30, 16), row.badge, has_left=row.has_left)
            p.setFont(figures_font(11))
            p.setPen(C("text3" if row.has_left else "text2"))
            p.drawText(
                QRectF(x + 66, y, self.plan.groups_width - 186, ROW),
                LEFT,
                elided(p, row.client.client_id, self.plan.groups_width - 186),
            )
            p.setFont(figures_font())
            departed_label = tr("killed") if row.client.client_id in self.model.killed else tr("left")
            owned = departed_label if row.has_left else DOTS if row.owned is None else f"{len(row.owned):,}"
            p.drawText(QRectF(x, y, self.plan.groups_width - 84, ROW), RIGHT, owned)
            words, role = count(row.lag) if not row.has_left else "", "warn" if is_late else "text2"
        else:
            if row.trouble:
                mark(p, row.trouble, QPointF(x + 19, y + ROW / 2), 4.2)
            p.setFont(words_font(13))
            p.setPen(C("text"))
            p.drawText(
                QRectF(x + 32, y, self.plan.groups_width - 152, ROW),
                LEFT,
                elided(p, row.name, self.plan.groups_width - 152),
            )
            p.setFont(figures_font())
            p.setPen(C("text2"))
            p.drawText(QRectF(x, y, self.plan.groups_width - 84, ROW), RIGHT, f"{len(row.clients):,}")
            words = tr("no owner") if row.orphans else DOTS if row.broadcast else count(row.lag)
            role = row.trouble or "text2"
        p.setFont(figures_font(12, 600 if role in {"warn", "error"} else 400))
        p.setPen(C(role))
        p.drawText(QRectF(x, y, self.plan.groups_width - 12, ROW), RIGHT, words)


def _rounded(value: float | None) -> str:
    return DOTS if value is None else f"{value:,.0f}"


class QueueMap(SelectableCanvas):
    """Map of all queues: a column for each topic, a cell for each queue, with a frame around the visible topics.

    Emits ``scrolled(number)`` to bring the topic at the pointer into view.
    """

    scrolled = Signal(object)

    def __init__(self, link_of: LinkOf = no_link) -> None:
        super().__init__("cluster.map", tr("All queues"), MAP_HEIGHT, link_of=link_of)
        self._codes = np.zeros((0, 0), np.int8)
        self._names: tuple[str, ...] = ()
        self._visible_range = (0, 0)

    def show_cells(self, plan: CellsPlan, first_topic: int, end_topic: int) -> None:
        """Show the cells of the table and the range of its visible topics."""
        self._codes, self._visible_range = plan.cells, (first_topic, end_topic)
        self._names = tuple(topic.name for topic in plan.topics)
        self.setAccessibleDescription(
            tr_plural(
                "{n:,} topic, {m:,} of them visible",
                "{n:,} topics, {m:,} of them visible",
                n=len(self._names),
                m=end_topic - first_topic,
            )
        )
        self.update()

    def item_at(self, point: QPointF) -> Selection:
        number = int((point.x() / scale() - 16) // max(self._step, 0.01))
        return Selection("topic", self._names[number]) if 0 <= number < len(self._names) else Selection()

    def columns(self) -> Sequence[Sequence[Box]]:
        return (
            [
                (QRectF(16 + n * self._step, 24, self._step, 66), Selection("topic", name))
                for n, name in enumerate(self._names)
            ],
        )

    def right_of(self, chosen: Selection) -> Selection | None:
        """Return the next topic."""
        return self._next(chosen, 1)

    def left_of(self, chosen: Selection) -> Selection | None:
        """Return the previous topic."""
        return self._next(chosen, -1)

    def _next(self, chosen: Selection, step: int) -> Selection | None:
        if not self._names:
            return None
        index = self._names.index(chosen.name) + step if chosen.name in self._names else 0
        return Selection("topic", self._names[min(max(index, 0), len(self._names) - 1)])

    @property
    def _step(self) -> float:
        return (self.width() / scale() - 32) / max(len(self._names), 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        p, z = QPainter(self), scale()
        p.fillRect(event.rect(), C("pane"))
        p.scale(z, z)
        width, height = self.width() / z, float(MAP_HEIGHT)
        p.fillRect(QRectF(0, height - 1, width, 1), C("hair"))
        queues = int((self._codes >= 0).sum())
        p.setFont(words_font())
        p.setPen(C("text2"))
        p.drawText(
            QRectF(16, 3, width * 0.5, 18),
            LEFT,
            tr_plural(
                "{n:,} queue · a column is a topic, a cell a queue",
                "All {n:,} queues · a column is a topic, a cell a queue",
                n=queues,
            ),
        )
        self._legend(p, width)
        if not queues:
            return
        target = QRectF(16, 24, width - 32, 66)
        p.drawImage(target, self._image(round(target.width()), round(target.height())))
        first_topic, end_topic = self._visible_range
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(C("accent", 0.08))
        p.drawRoundedRect(
            QRectF(13 + first_topic * self._step, 21, (end_topic - first_topic) * self._step + 4, 72), 2, 2
        )
        self.paint_focus(p)

    def _image(self, width: int, height: int) -> QImage:
        """Render all cells as one image, computed with arrays."""
        codes = self._codes.T
        rows, columns = codes.shape
        ground = C("pane").rgb()
        table = np.array([cell_colour(code).rgb() for code in range(5)] + [ground], np.uint32)
        column_numbers = np.minimum(np.arange(width) * columns // width, columns - 1)
        row_numbers = np.minimum(np.arange(height) * rows // height, rows - 1)
        picture = table[codes[row_numbers[:, None], column_numbers[None, :]]]
        if width >= columns * 4:
            edges = np.nonzero(np.diff(column_numbers, prepend=column_numbers[0]))[0]
            picture[:, edges] = picture[:, np.maximum(edges - 1, 0)] = ground
        if height >= rows * 3:
            picture[np.nonzero(np.diff(row_numbers, prepend=row_numbers[0]))[0], :] = ground
        pixels = np.ascontiguousarray(picture)
        return QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32).copy()

    @staticmethod
    def _legend(p: QPainter, width: float) -> None:
        x = width - 16
        entries = (
            (NO_OWNER, tr("no owner")),
            (FAR_BEHIND, tr("1,000 and more behind")),
            (SOME_BEHIND, tr("10 and more")),
            (FEW, tr("less than 10")),
        )
        for code, words in entries:
            w = p.fontMetrics().horizontalAdvance(words)
            p.setPen(C("text2"))
            p.drawText(QRectF(x - w, 3, w + 2, 18), LEFT, words)
            p.fillRect(QRectF(x - w - 18, 7, 11, 11), cell_colour(code))
            x -= w + 36


class TopicQueues(SelectableCanvas):
    """The selected topic: each of its queues as a small Line, with next offset, lag and owner."""

    STEP, HEIGHT, ACROSS, HELD = 30, 138, 270, 38

    def __init__(self, link_of: LinkOf = no_link) -> None:
        super().__init__("cluster.topic", tr("Queues of the chosen topic"), self.HEIGHT, link_of=link_of)
        self._rows: tuple[QueueRow, ...] = ()

    def show_topic(self, model: ClusterModel, row: TopicRow | None) -> None:
        """Show the queues of this topic."""
        self.model, self._rows = model, row.queues if row is not None else ()
        self.update()

    @property
    def _held_width(self) -> int:
        """Width for held pulls, if a broker reports them."""
        return self.HELD if any(row.held_pulls is not None for row in self._rows) else 0

    def _place(self, number: int) -> QRectF:
        max_columns = max(int((self.width() / scale() - 24) // (self.ACROSS + self._held_width)), 1)
        column_count = min(max_columns, max(math.ceil(len(self._rows) / 4), 3))
        column_width = (self.width() / scale() - 24) / column_count
        return QRectF(12 + (number // 4) * column_width, 8 + (number % 4) * self.STEP, column_width - 8, self.STEP - 4)

    def columns(self) -> Sequence[Sequence[Box]]:
        canvas_rect = QRectF(self.rect())
        boxes = [
            (self._place(index), Selection("queue", group=row.group, queue=row.queue))
            for index, row in enumerate(self._rows)
        ]
        shown = [item for item in boxes if item[0].right() * scale() <= canvas_rect.right() + 1]
        return [shown[index : index + 4] for index in range(0, len(shown), 4)]

    def right_of(self, chosen: Selection) -> Selection | None:
        """Return the queue four positions further."""
        return self._step(chosen, 4)

    def left_of(self, chosen: Selection) -> Selection | None:
        """Return the queue four positions earlier."""
        return self._step(chosen, -4)

    def _step(self, chosen: Selection, step: int) -> Selection | None:
        if not self._rows:
            return None
        index = next((queue_index for queue_index, row in enumerate(self._rows) if row.queue == chosen.queue), 0) + step
        row = self._rows[min(max(index, 0), len(self._rows) - 1)]
        return Selection("queue", group=row.group, queue=row.queue)

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
        if any(row.held_pulls for row in self._rows):
            mark(p, "held", QPointF(22, self.HEIGHT - 9), 4)
            p.setPen(C("text3"))
            p.drawText(QRectF(32, self.HEIGHT - 16, 240, 14), LEFT, tr("pull held by the broker"))
        if shown < len(self._rows):
            box = QRectF(12, self.HEIGHT - 16, self.width() / z - 24, 14)
            p.drawText(
                box,
                RIGHT,
                tr_plural("{n:,} more queue: see Tables", "{n:,} more queues: see Tables", n=len(self._rows) - shown),
            )
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
        line = QRectF(box.left() + 74, y - 4, max(box.width() - 74 - 186 - self._held_width, 20), 8)
        badge = model.badge(row.owners[0]) if row.owners else None
        p.fillRect(line, C("posLog", 0.42 if theme.dark else 0.30))
        lag, is_late = row.lag, (row.lag or 0) >= MIN_SHOWN_LAG
        if lag is not None:
            x = line.right() - line.width() * min(lag, LINE_ENTRIES) / LINE_ENTRIES
            if is_late:
                p.fillRect(QRectF(x, line.top(), line.right() - x, line.height()), C("warn", 0.85))
            p.fillRect(
                QRectF(x - 3, line.top() - 4, 3, line.height() + 8),
                client_colour(badge.place) if badge is not None else C("text3"),
            )
        p.setPen(C("accent"))
        offset = row.next_offset if row.group else row.ends.max_offset
        p.drawText(QRectF(line.right() + 6, box.top(), 86, box.height()), RIGHT, count(offset))
        p.setFont(figures_font(12, 600 if is_late else 400))
        p.setPen(C("error" if row.orphan else "warn" if is_late else "text2"))
        p.drawText(QRectF(line.right() + 94, box.top(), 54, box.height()), RIGHT, count(lag) if row.group else "")
        if row.held_pulls:
            x = line.right() + 180
            if row.held_pulls > 1:
                p.setFont(figures_font(11))
                p.setPen(C("text2"))
                p.drawText(QRectF(x - 30, y - 10, 22, 20), RIGHT, f"{row.held_pulls:,}")
            mark(p, "held", QPointF(x, y), 4.4)
        badge_box = QRectF(line.right() + 152 + self._held_width, y - 8, 30, 16)
        if badge is not None:
            draw_badge(p, badge_box, badge)
        elif row.orphan:
            mark(p, "error", badge_box.center(), 4.5)
