"""Drawing shared by both cluster pictures: colours, badges, lines, and a canvas of selectable items."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPen

from viewer.cluster.cluster_model import NOTHING, ClusterModel, Selection
from viewer.cluster.details import title_of
from viewer.cluster.plan import LineSegments
from viewer.cluster.rows import Badge
from viewer.cluster.words import client_words, queue_name, queue_words
from viewer.look.theme import TOPICS_DARK, TOPICS_LIGHT, C, ink, mono, scale, theme, ui
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import DrawnMark
from viewer.widgets.record_menu import Found, MarkMenu
from viewer.widgets.row_commands import Facts

LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
RIGHT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
CENTRE = Qt.AlignmentFlag.AlignCenter
MAX_LETTER_WIDTH = 14
"""Width of the widest letter in a picture, px: shorter texts fit without measuring."""
Box = tuple[QRectF, Selection]


@lru_cache(maxsize=32)
def words_font(size: int = 12, weight: int = 400) -> QFont:
    """Font for words in a picture that is scaled as a whole."""
    font = ui(size, weight)
    font.setPixelSize(size)
    return font


@lru_cache(maxsize=32)
def figures_font(size: int = 12, weight: int = 400) -> QFont:
    """Font for numbers and names from the cluster."""
    font = mono(size, weight)
    font.setPixelSize(size)
    return font


def client_colour(place: int) -> QColor:
    """Return one of the eight client colours; grey for a client without one."""
    return QColor((TOPICS_DARK if theme.dark else TOPICS_LIGHT)[place]) if place >= 0 else C("text3")


def draw_badge(p: QPainter, box: QRectF, badge: Badge, *, has_left: bool = False) -> None:
    """Draw a client's short name on its colour."""
    colour = C("disabled") if has_left else client_colour(badge.place)
    p.setPen(Qt.PenStyle.NoPen)
    p.setBrush(colour)
    p.drawRoundedRect(box, box.height() / 2, box.height() / 2)
    p.setPen(ink(colour))
    p.setFont(words_font(11, 600))
    p.drawText(box, int(CENTRE), badge.name)


def draw_bands(p: QPainter, bands: LineSegments, strong: str, top: float, bottom: float, *, faint: float = 0.5) -> None:
    """Draw the visible lines; those of client ``strong`` on top and at full strength."""
    p.setBrush(Qt.BrushStyle.NoBrush)
    visible = sorted(bands.crossing(top, bottom).tolist(), key=lambda number: bands.client_ids[number] == strong)
    for number in visible:
        is_strong = bool(strong) and bands.client_ids[number] == strong
        colour = client_colour(int(bands.place[number]))
        colour.setAlphaF(1.0 if is_strong else faint)
        dashed = bool(bands.dashed[number])
        width = float(bands.width[number])
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        p.setPen(QPen(colour, width, style, Qt.PenCapStyle.FlatCap))
        start = QPointF(bands.x0[number], bands.y0[number])
        stop = QPointF(bands.x1[number], bands.y1[number])
        middle = (start.x() + stop.x()) / 2
        path = QPainterPath(start)
        path.cubicTo(QPointF(middle, start.y()), QPointF(middle, stop.y()), stop)
        p.drawPath(path)


def elided(p: QPainter, text: str, width: float, mode: Qt.TextElideMode = Qt.TextElideMode.ElideMiddle) -> str:
    """Shorten a name to the width, in the painter's font."""
    return _elided(text, p.font().toString(), mode, int(width)) if len(text) * MAX_LETTER_WIDTH > width else text


@lru_cache(maxsize=4096)
def _elided(text: str, font: str, mode: Qt.TextElideMode, width: int) -> str:
    font_of_text = QFont()
    font_of_text.fromString(font)
    return QFontMetrics(font_of_text).elidedText(text, mode, width)


LinkOf = Callable[[Selection], object | None]
"""Returns the place of an item in the open store; None if there is none."""


def no_link(_chosen: Selection) -> None:
    """Return no place."""


class SelectableCanvas(Canvas):
    """A picture of selectable items.

    Emits ``chosen(Selection)`` on a click or arrow key, ``itemFollowed(Selection)`` on a double click or Enter.
    Subclasses implement :meth:`columns`: the items of each column from top to bottom, with their boxes (px at 100
    %).
    """

    chosen = Signal(object)
    itemFollowed = Signal(object)

    def __init__(self, name: str, title: str, height: int | None = None, link_of: LinkOf = no_link) -> None:
        super().__init__(name, title, height, Qt.FocusPolicy.StrongFocus, followed=True)
        self.model = ClusterModel()
        self.link_of = link_of
        self.menu = MarkMenu(self, self.mark_at)

    def columns(self) -> Sequence[Sequence[Box]]:
        """Return the selectable items, column by column."""
        return ()

    def right_of(self, _chosen: Selection) -> Selection | None:
        """Return the item that a line leads to from here, to the right."""
        return None

    def left_of(self, _chosen: Selection) -> Selection | None:
        """Return the item that a line comes from, at the left."""
        return None

    def item_at(self, point: QPointF) -> Selection:
        """Return the item under a point of the widget."""
        position = point / scale()
        for column in self.columns():
            for box, item in column:
                if box.contains(position):
                    return item
        return NOTHING

    def box_of(self, chosen: Selection) -> QRectF | None:
        """Return the box of an item, px at 100 %."""
        return next((box for column in self.columns() for box, item in column if same(item, chosen)), None)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """Return the mark of an item for its menu."""
        item = self.item_at(point) if point is not None else self.model.chosen
        box = self.box_of(item) if item.kind else None
        if box is None:
            return None
        below = QPointF(box.center().x(), box.bottom()) * scale()
        return item_mark(self.model, item, self.link_of(item)), below

    def words_under(self, point: QPointF) -> str:
        item = self.item_at(point)
        return item_words(self.model, item) if item.kind else ""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        item = self.item_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and item.kind:
            self.chosen.emit(item)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        item = self.item_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and item.kind:
            self.itemFollowed.emit(item)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, chosen = Qt.Key(event.key()), self.model.chosen
        if key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and chosen.kind:
            self.itemFollowed.emit(chosen)
            return
        target = self._goal(key, chosen)
        if target is None:
            super().keyPressEvent(event)
        else:
            self.chosen.emit(target)

    def _goal(self, key: Qt.Key, chosen: Selection) -> Selection | None:
        columns = [[item for _, item in column] for column in self.columns()]
        own_column = next((column for column in columns if any(same(member, chosen) for member in column)), None)
        if key == Qt.Key.Key_Right:
            return self.right_of(chosen)
        if key == Qt.Key.Key_Left:
            return self.left_of(chosen)
        if key not in {Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home, Qt.Key.Key_End}:
            return None
        if own_column is None:
            return next((column[0] for column in (columns[1:2] + columns) if column), None)
        index = next(number for number, member in enumerate(own_column) if same(member, chosen))
        last_index = len(own_column) - 1
        new_index = {
            Qt.Key.Key_Up: index - 1,
            Qt.Key.Key_Down: index + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last_index,
        }[key]
        return own_column[min(max(new_index, 0), last_index)]

    def paint_focus(self, p: QPainter) -> None:
        """With keyboard focus, draw a frame around the selected item, or around everything without one."""
        if not self.hasFocus():
            return
        box = self.box_of(self.model.chosen) if self.model.chosen.kind else None
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(Qt.BrushStyle.NoBrush)
        if box is not None:
            p.drawRoundedRect(box.adjusted(-1, -1, 1, 1), 4, 4)
        else:
            p.resetTransform()
            p.drawRect(self.visibleRegion().boundingRect().adjusted(1, 1, -2, -2))


def same(item: Selection, other_item: Selection) -> bool:
    """Return True if both select the same item: a queue is the same in every group."""
    if item.kind != other_item.kind:
        return False
    if item.kind == "queue":
        return item.queue == other_item.queue
    return (item.name, item.group if item.kind == "client" else "") == (
        other_item.name,
        other_item.group if other_item.kind == "client" else "",
    )


def item_words(model: ClusterModel, item: Selection) -> str:
    """Describe an item in a sentence, for tooltips, copies and screen readers."""
    if item.kind == "queue":
        row = model.find_queue(item.queue)
        return queue_words(model, row) if row is not None else ""
    if item.kind == "client":
        client = model.find_client(item.group, item.name)
        return client_words(client) if client is not None else item.name
    name, note = title_of(model, item)
    if item.kind == "producer":
        return f"{name} {item.name}"
    return f"{name}  {note}".strip()


def item_mark(model: ClusterModel, item: Selection, link: object | None) -> DrawnMark:
    """Return the mark of an item for its menu."""
    queue, field = item.queue, {"queue": "queueId", "topic": "topic", "group": "group"}.get(item.kind, "")
    topic = queue.topic if queue is not None else item.name if item.kind == "topic" else ""
    row = model.find_queue(queue)
    facts = Facts(
        "clusterMark",
        field,
        link,
        topic=topic,
        queue_id=queue.queue_id if queue is not None else None,
        queue_offset=row.next_offset if row is not None else None,
        group=item.name if item.kind == "group" else item.group if item.kind == "client" else "",
        command=shlex.join(["storescope", "cluster", model.address]),
    )
    return DrawnMark(facts, queue_name(queue) if queue is not None else item.name, item_words(model, item))
