"""A treemap of areas in two levels, the second with bands from old (light) to new (dark); pointer and keys choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)

from viewer.look.assets import tr
from viewer.look.formats import number, plain, size
from viewer.look.theme import C, dark, mono, px, scale, ui
from viewer.look.topic_colours import TopicColours, colours_of
from viewer.widgets.areas import Area, find
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import area_mark
from viewer.widgets.paint import hatch
from viewer.widgets.record_menu import Found, MarkMenu

Path = tuple[str, ...]
SIDE, TOP, GAP = 12, 8, 3
HEAD = 24
LIGHTEST, DARKEST, PLAIN = 0.22, 0.62, 0.36
SMALLEST = 3.0
"""Px below which an area is not drawn by itself."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An area and its box; ``head``: its name stands in a strip of its own above what is in it."""

    path: Path
    area: Area
    box: Box
    head: bool = False
    band: bool = False


class Treemap(Canvas):
    """``chosen(path)`` as the choice moves, ``followed(path)`` on Enter and double click."""

    chosen = Signal(object)
    followed = Signal(object)

    def __init__(self, name: str = "space.treemap") -> None:
        super().__init__(name, tr("Bytes as areas"), followed=False)
        self._root = Area("", "", 0)
        self._path: Path = ()
        self._words = ""
        self._placed: list[Placed] | None = None
        self._order: tuple[str, ...] = ()
        """The colours in which the ground is drawn."""
        self._ground: QPixmap | None = None
        self.menu = MarkMenu(self, self.mark_at)

    def sizeHint(self) -> QSize:
        return QSize(px(660), px(600))

    def minimumSizeHint(self) -> QSize:
        return QSize(px(240), px(160))

    def show_areas(self, root: Area, words: str = "") -> None:
        """Draw another account; ``words`` where there is nothing to draw. What is chosen stays where it still is."""
        self._root, self._words = root, words
        while self._path and find(root, self._path) is None:
            self._path = self._path[:-1]
        self._forget()
        self._tell()

    def choose(self, path: Path) -> None:
        """Frame the area at ``path``; () for none. Says nothing to others."""
        if path != self._path and (not path or find(self._root, path) is not None):
            self._path = path
            self._tell()
            self.update()

    @property
    def path(self) -> Path:
        """The chosen area's path."""
        return self._path

    def placed(self) -> list[Placed]:
        """Every area that is drawn, with its box, outer ones first."""
        if self._placed is None:
            self._placed = list(self._lay_out())
        return self._placed

    def at(self, x: float, y: float) -> Placed | None:
        """The innermost area under a point."""
        return next((one for one in reversed(self.placed()) if one.box.holds(x, y)), None)

    # ---- laying out --------------------------------------------------------------------------------------------------

    def _lay_out(self) -> list[Placed]:
        z = scale()
        room = Box(SIDE * z, TOP * z, self.width() - 2 * SIDE * z + GAP, self.height() - 2 * TOP * z + GAP)
        found: list[Placed] = []
        tops = self._root.children
        for area, box in zip(tops, squarify([one.bytes for one in tops], room), strict=True):
            inside = box.inset(0, 0, GAP, GAP)
            if inside.width < 1 or inside.height < 1:
                continue
            head = bool(area.children) and inside.height > 60 * z and inside.width > 70 * z
            found.append(Placed((area.key,), area, inside, head))
            body = inside.inset(0, HEAD * z if head else 0, 0, 0)
            below = area.children
            if min(body.width, body.height) < 4 * SMALLEST:
                continue
            for inner, place in zip(below, squarify([one.bytes for one in below], body), strict=True):
                own = place.inset(1, 1, 1, 1)
                if min(own.width, own.height) < SMALLEST:
                    continue
                found.append(Placed((area.key, inner.key), inner, own))
                days = inner.children
                for day, band in zip(days, bands([one.bytes for one in days], own), strict=True):
                    found.append(Placed((area.key, inner.key, day.key), day, band, band=True))
        return found

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        ratio, order = self.devicePixelRatioF(), colours_of(self).order
        if order != self._order:
            self._order, self._ground = order, None
        if self._ground is None or self._ground.size() != self.size() * ratio:
            self._ground = QPixmap(self.size() * ratio)
            self._ground.setDevicePixelRatio(ratio)
            painter = QPainter(self._ground)
            self._paint_ground(painter)
            painter.end()
        p = QPainter(self)
        p.drawPixmap(0, 0, self._ground)
        chosen = next((one for one in self.placed() if one.path == self._path), None)
        if chosen is not None:
            p.setPen(QPen(C("accent"), 2.5))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(_rect(chosen.box).adjusted(1, 1, -1, -1))
        if self.hasFocus():
            p.setPen(QPen(C("accent"), 2))
            p.drawRect(self.rect().adjusted(1, 1, -1, -1))

    def _paint_ground(self, p: QPainter) -> None:
        p.fillRect(self.rect(), C("pane"))
        if not self._root.children:
            p.setFont(ui(12))
            p.setPen(C("text3"))
            across = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWrapAnywhere
            p.drawText(self.rect().adjusted(px(24), 0, -px(24), 0), across, self._words)
            return
        colours = colours_of(self)
        for one in self.placed():
            if one.band:
                p.fillRect(_rect(one.box), _shade(one.area, colours))
            elif len(one.path) == 1:
                self._paint_top(p, one)
            elif not one.area.children:
                p.fillRect(_rect(one.box), _shade(one.area, colours))
        filled = {one.path[0] for one in self.placed() if len(one.path) == 2}
        for one in self.placed():
            if not one.band and (len(one.path) > 1 or one.head or one.path[0] not in filled):
                self._paint_name(p, one)  # where there is no room for a head, what is in it has the words

    def _paint_top(self, p: QPainter, one: Placed) -> None:
        box = _rect(one.box)
        color = colours_of(self).color(one.area.topic)
        if color is None:
            p.fillRect(box, C("sunken"))
        else:
            color.setAlphaF(0.20)
            p.fillRect(box, color)
        if one.area.hatch:
            if one.area.hatch == "error":
                p.fillRect(box, C("errorFill"))
            hatch(p, box, one.area.hatch, 1, 8 * scale())
            if box.width() > 60 * scale() and box.height() > 24 * scale():
                ground = QRectF(box.left() + 3, box.top() + 3, min(box.width() - 6, 150 * scale()), 38 * scale())
                p.fillRect(ground & box, C("errorFill" if one.area.hatch == "error" else "sunken"))

    def _paint_name(self, p: QPainter, one: Placed) -> None:
        z, box = scale(), one.box
        top = len(one.path) == 1
        least = (60, 20) if top else (56, 34)
        if box.width < least[0] * z or box.height < least[1] * z:
            return
        p.setFont((mono(11) if one.area.code else ui(12, 600)) if top else mono(11) if one.area.code else ui(11))
        metrics = QFontMetrics(p.font())
        left = 7 * z if top else 6 * z
        name = metrics.elidedText(plain(one.area.name), Qt.TextElideMode.ElideMiddle, int(box.width - 2 * left))
        width = metrics.horizontalAdvance(name)
        p.setPen(C("text"))
        line = 18 * z if top else 15 * z
        p.drawText(QRectF(box.x + left, box.y + 3 * z, box.width - left, line), Qt.AlignmentFlag.AlignVCenter, name)
        p.setFont(mono(11))
        words = size(one.area.bytes)
        room = QFontMetrics(p.font()).horizontalAdvance(words)
        if top and box.width > width + room + 3 * left:
            p.setPen(C("text2"))
            place = QRectF(box.x + 2 * left + width, box.y + 3 * z, room + 4, line)
        elif box.height > (42 if top else 34) * z and box.width > room + left and not one.head:
            place = QRectF(box.x + left, box.y + 3 * z + line, room + 4, line)
        else:
            return
        p.drawText(place, Qt.AlignmentFlag.AlignVCenter, words)

    def _fit(self) -> None:
        super()._fit()
        self._forget()

    def _forget(self) -> None:
        self._placed = self._ground = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another room, other boxes."""
        super().resizeEvent(event)
        self._forget()

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        one = self.at(event.position().x(), event.position().y())
        if event.button() == Qt.MouseButton.LeftButton and one is not None:
            self._take(one.path[:2])

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        one = self.at(event.position().x(), event.position().y())
        if event.button() == Qt.MouseButton.LeftButton and one is not None:
            self._take(one.path[:2])
            self.followed.emit(self._path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        ways = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
        if key in ways:
            self._take(self._beside(*ways[key]))
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._path:
            self.followed.emit(self._path)
        elif key in {Qt.Key.Key_PageDown, Qt.Key.Key_Plus}:
            at = find(self._root, self._path)
            if at is not None and at.children:
                self._take((*self._path, at.children[0].key))
        elif key in {Qt.Key.Key_PageUp, Qt.Key.Key_Minus, Qt.Key.Key_Backspace}:
            self._take(self._path[:-1])
        elif key == Qt.Key.Key_Home and self._root.children:
            self._take((self._root.children[0].key,))
        else:
            super().keyPressEvent(event)

    def _beside(self, right: int, down: int) -> Path:
        """The nearest area of the same level in a direction; the largest one where nothing is chosen yet."""
        level = [one for one in self.placed() if len(one.path) == max(len(self._path), 1)]
        here = next((one for one in level if one.path == self._path), None)
        if here is None:
            return level[0].path if level else ()
        x, y = here.box.middle
        best, nearest = here.path, float("inf")
        for one in level:
            dx, dy = one.box.middle[0] - x, one.box.middle[1] - y
            ahead, aside = (dx * right, abs(dy)) if right else (dy * down, abs(dx))
            if ahead > 1 and ahead + 2 * aside < nearest:
                best, nearest = one.path, ahead + 2 * aside
        return best

    def _take(self, path: Path) -> None:
        if path != self._path:
            self._path = path
            self._tell()
            self.update()
            self.chosen.emit(path)

    def _tell(self) -> None:
        self.setAccessibleDescription(self.words_of(self._path) or self._words)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The area under the point, or the chosen one."""
        if point is None:
            one = next((one for one in self.placed() if one.path == self._path), None)
        else:
            one = self.at(point.x(), point.y())
        if one is None:
            return None
        outer = find(self._root, one.path[:1])
        topic = one.area.topic or (outer.topic if outer is not None else "")
        mark = area_mark(one.area.target, topic, plain(one.area.name), self.words_of(one.path))
        return mark, point if point is not None else QPointF(*one.box.middle)

    def words_under(self, point: QPointF) -> str:
        """The area in full."""
        one = self.at(point.x(), point.y())
        return self.words_of(one.path) if one is not None else ""

    def words_of(self, path: Path) -> str:
        """What an area is, in full."""
        names = [area.name for n in range(len(path)) if (area := find(self._root, path[: n + 1])) is not None]
        area = find(self._root, path)
        if not path or area is None:
            return ""
        share = area.bytes / (self._root.bytes or 1)
        parts = [
            " › ".join(plain(name) for name in names),
            f"{number(area.bytes)} B · {size(area.bytes)} · {share:.1%}",
        ]
        if area.messages:
            mean = round(area.bytes / area.messages)
            parts.append(tr("{n:,} messages, {mean:,} B each", n=area.messages, mean=mean))
        return "\n".join([*parts, *([area.note] if area.note else [])])


def _rect(box: Box) -> QRectF:
    return QRectF(box.x, box.y, box.width, box.height)


def _shade(area: Area, colours: TopicColours) -> QColor:
    """The area's colour: its topic's, the darker the newer."""
    found = colours.color(area.topic)
    color = C("text3") if found is None else found
    alpha = PLAIN if area.age is None else LIGHTEST + (DARKEST - LIGHTEST) * area.age
    color.setAlphaF(alpha * (0.6 if dark() else 1.0))
    return color


class Box(NamedTuple):
    """A rectangle in px."""

    x: float
    y: float
    width: float
    height: float

    def inset(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The box without its margins; never of negative size."""
        return Box(
            self.x + left, self.y + top, max(self.width - left - right, 0.0), max(self.height - top - bottom, 0.0)
        )

    def holds(self, x: float, y: float) -> bool:
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


def squarify(sizes: Sequence[float], room: Box) -> list[Box]:
    """A box for each of ``sizes`` (largest first, none negative), areas in their proportion, as square as may be.

    Boxes of size 0 are empty and stand in the room's far corner.
    """
    found: list[Box] = []
    left = float(sum(sizes))
    number = 0
    while number < len(sizes) and sizes[number] > 0 and room.width > 0 and room.height > 0:
        end = _row_end(sizes, number, left, room)
        line = float(sum(sizes[number:end]))
        share = line / left
        if room.width >= room.height:
            width, y = room.width * share, room.y
            for size in sizes[number:end]:
                height = room.height * size / line
                found.append(Box(room.x, y, width, height))
                y += height
            room = Box(room.x + width, room.y, room.width - width, room.height)
        else:
            height, x = room.height * share, room.x
            for size in sizes[number:end]:
                width = room.width * size / line
                found.append(Box(x, room.y, width, height))
                x += width
            room = Box(room.x, room.y + height, room.width, room.height - height)
        left -= line
        number = end
    corner = Box(room.x + room.width, room.y + room.height, 0.0, 0.0)
    return found + [corner] * (len(sizes) - len(found))


def _row_end(sizes: Sequence[float], start: int, left: float, room: Box) -> int:
    """Up to which size a row along the shorter side gets no worse by one more."""
    area = room.width * room.height / left
    short = min(room.width, room.height) ** 2
    total, largest, best, end = 0.0, sizes[start] * area, float("inf"), start
    while end < len(sizes) and sizes[end] > 0:
        one = sizes[end] * area
        total += one
        worst = max(short * largest / total**2, total**2 / (short * one))
        if worst > best:
            break
        best = worst
        end += 1
    return max(end, start + 1)


def bands(sizes: Sequence[float], room: Box) -> list[Box]:
    """Boxes one below the other over the whole width, heights in proportion."""
    total, y, found = float(sum(sizes)) or 1.0, room.y, []
    for one in sizes:
        height = room.height * one / total
        found.append(Box(room.x, y, room.width, height))
        y += height
    return found
