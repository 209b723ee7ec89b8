"""What both pictures of a cluster are drawn with: colours, badges, lines; and a canvas of things that one chooses."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPen

from viewer.cluster.cluster_model import NOTHING, Chosen, ClusterModel
from viewer.cluster.plan import Bands
from viewer.cluster.rows import Badge
from viewer.cluster.words import client_words, queue_name, queue_words, title_of
from viewer.look.theme import TOPICS_DARK, TOPICS_LIGHT, C, ink, mono, scale, theme, ui
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import Mark
from viewer.widgets.record_menu import Found, MarkMenu
from viewer.widgets.row_commands import Facts

LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
RIGHT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
CENTRE = Qt.AlignmentFlag.AlignCenter
WIDEST = 14
"""Px of the widest letter in a picture: what is shorter fits, whatever it says."""
Box = tuple[QRectF, Chosen]


@lru_cache(maxsize=32)
def words_font(size: int = 12, weight: int = 400) -> QFont:
    """The font of words in a picture that is scaled as a whole."""
    font = ui(size, weight)
    font.setPixelSize(size)
    return font


@lru_cache(maxsize=32)
def figures_font(size: int = 12, weight: int = 400) -> QFont:
    """The same for what stands in a cluster."""
    font = mono(size, weight)
    font.setPixelSize(size)
    return font


def client_colour(place: int) -> QColor:
    """One of the eight; grey for a client that has none."""
    return QColor((TOPICS_DARK if theme.dark else TOPICS_LIGHT)[place]) if place >= 0 else C("text3")


def draw_badge(p: QPainter, box: QRectF, badge: Badge, *, gone: bool = False) -> None:
    """A client's short name on its colour."""
    colour = C("disabled") if gone else client_colour(badge.place)
    p.setPen(Qt.PenStyle.NoPen)
    p.setBrush(colour)
    p.drawRoundedRect(box, box.height() / 2, box.height() / 2)
    p.setPen(ink(colour))
    p.setFont(words_font(11, 600))
    p.drawText(box, int(CENTRE), badge.name)


def draw_bands(p: QPainter, bands: Bands, strong: str, top: float, bottom: float, *, faint: float = 0.5) -> None:
    """The lines of a stretch; those of client ``strong`` on top and at full strength."""
    p.setBrush(Qt.BrushStyle.NoBrush)
    seen = sorted(bands.seen(top, bottom).tolist(), key=lambda number: bands.whose[number] == strong)
    for number in seen:
        on = bool(strong) and bands.whose[number] == strong
        colour = client_colour(int(bands.place[number]))
        colour.setAlphaF(1.0 if on else faint)
        dashed = bool(bands.dashed[number])
        width = float(bands.width[number])
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        p.setPen(QPen(colour, width, style, Qt.PenCapStyle.FlatCap))
        a = QPointF(bands.x0[number], bands.y0[number])
        b = QPointF(bands.x1[number], bands.y1[number])
        middle = (a.x() + b.x()) / 2
        path = QPainterPath(a)
        path.cubicTo(QPointF(middle, a.y()), QPointF(middle, b.y()), b)
        p.drawPath(path)


def elided(p: QPainter, text: str, width: float, mode: Qt.TextElideMode = Qt.TextElideMode.ElideMiddle) -> str:
    """As much of a name as there is room for, in the painter's font."""
    return _elided(text, p.font().toString(), mode, int(width)) if len(text) * WIDEST > width else text


@lru_cache(maxsize=4096)
def _elided(text: str, font: str, mode: Qt.TextElideMode, width: int) -> str:
    made = QFont()
    made.fromString(font)
    return QFontMetrics(made).elidedText(text, mode, width)


class ThingCanvas(Canvas):
    """A picture of things: ``chose(Chosen)`` by a click or the arrows, ``followed(Chosen)`` by a second click or Enter.

    Subclasses give :meth:`columns`: of each column its things from top to bottom, and where they are drawn (px at
    100 %).
    """

    chose = Signal(object)
    followed = Signal(object)

    def __init__(self, name: str, title: str, height: int | None = None) -> None:
        super().__init__(name, title, height, Qt.FocusPolicy.StrongFocus, followed=True)
        self.model = ClusterModel()
        self.link_of: Callable[[Chosen], object | None] = lambda _chosen: None
        """Where a thing leads to in the open store; None for nowhere."""
        self.menu = MarkMenu(self, self.mark_at)

    def columns(self) -> Sequence[Sequence[Box]]:
        """What can be chosen, column by column."""
        return ()

    def right_of(self, _chosen: Chosen) -> Chosen | None:
        """What a line leads to from here, to the right."""
        return None

    def left_of(self, _chosen: Chosen) -> Chosen | None:
        """What a line comes from, at the left."""
        return None

    def thing_at(self, point: QPointF) -> Chosen:
        """What lies under a point of the widget."""
        at = point / scale()
        for column in self.columns():
            for box, thing in column:
                if box.contains(at):
                    return thing
        return NOTHING

    def box_of(self, chosen: Chosen) -> QRectF | None:
        """Where a thing is drawn, px at 100 %."""
        return next((box for column in self.columns() for box, thing in column if same(thing, chosen)), None)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """For the menu."""
        thing = self.thing_at(point) if point is not None else self.model.chosen
        box = self.box_of(thing) if thing.kind else None
        if box is None:
            return None
        below = QPointF(box.center().x(), box.bottom()) * scale()
        return thing_mark(self.model, thing, self.link_of(thing)), below

    def words_under(self, point: QPointF) -> str:
        thing = self.thing_at(point)
        return thing_words(self.model, thing) if thing.kind else ""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        thing = self.thing_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and thing.kind:
            self.chose.emit(thing)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        thing = self.thing_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and thing.kind:
            self.followed.emit(thing)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, chosen = Qt.Key(event.key()), self.model.chosen
        if key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and chosen.kind:
            self.followed.emit(chosen)
            return
        goal = self._goal(key, chosen)
        if goal is None:
            super().keyPressEvent(event)
        else:
            self.chose.emit(goal)

    def _goal(self, key: Qt.Key, chosen: Chosen) -> Chosen | None:
        columns = [[thing for _, thing in column] for column in self.columns()]
        here = next((column for column in columns if any(same(one, chosen) for one in column)), None)
        if key == Qt.Key.Key_Right:
            return self.right_of(chosen)
        if key == Qt.Key.Key_Left:
            return self.left_of(chosen)
        if key not in {Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home, Qt.Key.Key_End}:
            return None
        if here is None:
            return next((column[0] for column in (columns[1:2] + columns) if column), None)
        at = next(number for number, one in enumerate(here) if same(one, chosen))
        last = len(here) - 1
        step = {Qt.Key.Key_Up: at - 1, Qt.Key.Key_Down: at + 1, Qt.Key.Key_Home: 0, Qt.Key.Key_End: last}[key]
        return here[min(max(step, 0), last)]

    def paint_focus(self, p: QPainter) -> None:
        """While the keys are here: the frame around the chosen thing, around everything where nothing is chosen."""
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


def same(one: Chosen, other: Chosen) -> bool:
    """Whether two speak of one thing: a queue is the same whichever group is looked at."""
    if one.kind != other.kind:
        return False
    if one.kind == "queue":
        return one.queue == other.queue
    return (one.name, one.group if one.kind == "client" else "") == (
        other.name,
        other.group if other.kind == "client" else "",
    )


def thing_words(model: ClusterModel, thing: Chosen) -> str:
    """A thing in a sentence, for tips, copies and screen readers."""
    if thing.kind == "queue":
        row = model.find_queue(thing.queue)
        return queue_words(model, row) if row is not None else ""
    if thing.kind == "client":
        client = model.find_client(thing.group, thing.name)
        return client_words(client) if client is not None else thing.name
    name, note = title_of(model, thing)
    if thing.kind == "producer":
        return f"{name} {thing.name}"
    return f"{name}  {note}".strip()


def thing_mark(model: ClusterModel, thing: Chosen, link: object | None) -> Mark:
    """A thing for its menu."""
    queue, field = thing.queue, {"queue": "queueId", "topic": "topic", "group": "group"}.get(thing.kind, "")
    topic = queue.topic if queue is not None else thing.name if thing.kind == "topic" else ""
    row = model.find_queue(queue)
    facts = Facts(
        "clusterMark",
        field,
        link,
        topic=topic,
        queue_id=queue.queue_id if queue is not None else None,
        queue_offset=row.next_offset if row is not None else None,
        group=thing.name if thing.kind == "group" else thing.group if thing.kind == "client" else "",
        command=shlex.join(["storescope", "cluster", model.address]),
    )
    return Mark(facts, queue_name(queue) if queue is not None else thing.name, thing_words(model, thing))
