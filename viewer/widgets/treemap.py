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

from viewer.look.assets import tr, tr_plural
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
MIN_AREA_PX = 3.0
"""Minimum px of an area that is drawn."""


@dataclass(frozen=True, slots=True)
class PlacedArea:
    """An area and its box. With ``head`` its name stands in its own strip above its children."""

    path: Path
    area: Area
    box: Box
    head: bool = False
    band: bool = False


class Treemap(Canvas):
    """Emits ``chosen(path)`` as the choice moves, and ``areaFollowed(path)`` on Enter and double click."""

    chosen = Signal(object)
    areaFollowed = Signal(object)

    def __init__(self, name: str = "space.treemap") -> None:
        super().__init__(name, tr("Bytes as areas"), followed=False)
        self._root = Area("", "", 0)
        self._path: Path = ()
        self._words = ""
        self._placed: list[PlacedArea] | None = None
        self._order: tuple[str, ...] = ()
        """The topic colours of the drawn background."""
        self._ground: QPixmap | None = None
        self.menu = MarkMenu(self, self.mark_at)

    def sizeHint(self) -> QSize:
        return QSize(px(660), px(600))

    def minimumSizeHint(self) -> QSize:
        return QSize(px(240), px(160))

    def show_areas(self, root: Area, words: str = "") -> None:
        """Draw other areas; ``words`` are shown if there are none. The choice stays if its area still exists."""
        self._root, self._words = root, words
        while self._path and find(root, self._path) is None:
            self._path = self._path[:-1]
        self._forget()
        self._tell()

    def choose(self, path: Path) -> None:
        """Frame the area at ``path``; () for none. Emits nothing."""
        if path != self._path and (not path or find(self._root, path) is not None):
            self._path = path
            self._tell()
            self.update()

    @property
    def path(self) -> Path:
        """The path of the chosen area."""
        return self._path

    def placed_areas(self) -> list[PlacedArea]:
        """Every drawn area with its box, outer ones first."""
        if self._placed is None:
            self._placed = list(self._lay_out())
        return self._placed

    def at(self, x: float, y: float) -> PlacedArea | None:
        """The innermost area under a point, or None."""
        return next((placed for placed in reversed(self.placed_areas()) if placed.box.holds(x, y)), None)

    # ---- laying out --------------------------------------------------------------------------------------------------

    def _lay_out(self) -> list[PlacedArea]:
        z = scale()
        room = Box(SIDE * z, TOP * z, self.width() - 2 * SIDE * z + GAP, self.height() - 2 * TOP * z + GAP)
        placed: list[PlacedArea] = []
        tops = self._root.children
        for area, box in zip(tops, squarify([child.bytes for child in tops], room), strict=True):
            inside = box.inset(0, 0, GAP, GAP)
            if inside.width < 1 or inside.height < 1:
                continue
            head = bool(area.children) and inside.height > 60 * z and inside.width > 70 * z
            placed.append(PlacedArea((area.key,), area, inside, head))
            body = inside.inset(0, HEAD * z if head else 0, 0, 0)
            below = area.children
            if min(body.width, body.height) < 4 * MIN_AREA_PX:
                continue
            for inner, place in zip(below, squarify([child.bytes for child in below], body), strict=True):
                inner_box = place.inset(1, 1, 1, 1)
                if min(inner_box.width, inner_box.height) < MIN_AREA_PX:
                    continue
                placed.append(PlacedArea((area.key, inner.key), inner, inner_box))
                days = inner.children
                for day, band in zip(days, bands([child.bytes for child in days], inner_box), strict=True):
                    placed.append(PlacedArea((area.key, inner.key, day.key), day, band, band=True))
        return placed

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
        chosen = next((placed for placed in self.placed_areas() if placed.path == self._path), None)
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
            alignment = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWrapAnywhere
            p.drawText(self.rect().adjusted(px(24), 0, -px(24), 0), alignment, self._words)
            return
        colours = colours_of(self)
        for placed in self.placed_areas():
            if placed.band:
                p.fillRect(_rect(placed.box), _shade(placed.area, colours))
            elif len(placed.path) == 1:
                self._paint_top(p, placed)
            elif not placed.area.children:
                p.fillRect(_rect(placed.box), _shade(placed.area, colours))
        filled = {placed.path[0] for placed in self.placed_areas() if len(placed.path) == 2}
        for placed in self.placed_areas():
            if not placed.band and (len(placed.path) > 1 or placed.head or placed.path[0] not in filled):
                self._paint_name(p, placed)  # without room for a head only the children have names

    def _paint_top(self, p: QPainter, placed: PlacedArea) -> None:
        box = _rect(placed.box)
        color = colours_of(self).color(placed.area.topic)
        if color is None:
            p.fillRect(box, C("sunken"))
        else:
            color.setAlphaF(0.20)
            p.fillRect(box, color)
        if placed.area.hatch:
            if placed.area.hatch == "error":
                p.fillRect(box, C("errorFill"))
            hatch(p, box, placed.area.hatch, 1, 8 * scale())
            if box.width() > 60 * scale() and box.height() > 24 * scale():
                ground = QRectF(box.left() + 3, box.top() + 3, min(box.width() - 6, 150 * scale()), 38 * scale())
                p.fillRect(ground & box, C("errorFill" if placed.area.hatch == "error" else "sunken"))

    def _paint_name(self, p: QPainter, placed: PlacedArea) -> None:
        z, box = scale(), placed.box
        top = len(placed.path) == 1
        least = (60, 20) if top else (56, 34)
        if box.width < least[0] * z or box.height < least[1] * z:
            return
        p.setFont((mono(11) if placed.area.code else ui(12, 600)) if top else mono(11) if placed.area.code else ui(11))
        metrics = QFontMetrics(p.font())
        padding = 7 * z if top else 6 * z
        name = metrics.elidedText(plain(placed.area.name), Qt.TextElideMode.ElideMiddle, int(box.width - 2 * padding))
        width = metrics.horizontalAdvance(name)
        p.setPen(C("text"))
        line_height = 18 * z if top else 15 * z
        p.drawText(
            QRectF(box.x + padding, box.y + 3 * z, box.width - padding, line_height),
            Qt.AlignmentFlag.AlignVCenter,
            name,
        )
        p.setFont(mono(11))
        words = size(placed.area.bytes)
        words_width = QFontMetrics(p.font()).horizontalAdvance(words)
        if top and box.width > width + words_width + 3 * padding:
            p.setPen(C("text2"))
            place = QRectF(box.x + 2 * padding + width, box.y + 3 * z, words_width + 4, line_height)
        elif box.height > (42 if top else 34) * z and box.width > words_width + padding and not placed.head:
            place = QRectF(box.x + padding, box.y + 3 * z + line_height, words_width + 4, line_height)
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
        super().resizeEvent(event)
        self._forget()

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        hit = self.at(event.position().x(), event.position().y())
        if event.button() == Qt.MouseButton.LeftButton and hit is not None:
            self._take(hit.path[:2])

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        hit = self.at(event.position().x(), event.position().y())
        if event.button() == Qt.MouseButton.LeftButton and hit is not None:
            self._take(hit.path[:2])
            self.areaFollowed.emit(self._path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        ways = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
        if key in ways:
            self._take(self._beside(*ways[key]))
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._path:
            self.areaFollowed.emit(self._path)
        elif key in {Qt.Key.Key_PageDown, Qt.Key.Key_Plus}:
            area = find(self._root, self._path)
            if area is not None and area.children:
                self._take((*self._path, area.children[0].key))
        elif key in {Qt.Key.Key_PageUp, Qt.Key.Key_Minus, Qt.Key.Key_Backspace}:
            self._take(self._path[:-1])
        elif key == Qt.Key.Key_Home and self._root.children:
            self._take((self._root.children[0].key,))
        else:
            super().keyPressEvent(event)

    def _beside(self, right: int, down: int) -> Path:
        """The nearest area of the same level in a direction; the largest one if nothing is chosen yet."""
        level = [placed for placed in self.placed_areas() if len(placed.path) == max(len(self._path), 1)]
        current = next((placed for placed in level if placed.path == self._path), None)
        if current is None:
            return level[0].path if level else ()
        x, y = current.box.middle
        best, nearest = current.path, float("inf")
        for placed in level:
            dx, dy = placed.box.middle[0] - x, placed.box.middle[1] - y
            ahead, aside = (dx * right, abs(dy)) if right else (dy * down, abs(dx))
            if ahead > 1 and ahead + 2 * aside < nearest:
                best, nearest = placed.path, ahead + 2 * aside
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
        """The mark of the area under the point, or of the chosen area."""
        if point is None:
            placed = next((placed for placed in self.placed_areas() if placed.path == self._path), None)
        else:
            placed = self.at(point.x(), point.y())
        if placed is None:
            return None
        outer = find(self._root, placed.path[:1])
        topic = placed.area.topic or (outer.topic if outer is not None else "")
        mark = area_mark(placed.area.target, topic, plain(placed.area.name), self.words_of(placed.path))
        return mark, point if point is not None else QPointF(*placed.box.middle)

    def words_under(self, point: QPointF) -> str:
        placed = self.at(point.x(), point.y())
        return self.words_of(placed.path) if placed is not None else ""

    def words_of(self, path: Path) -> str:
        """Describe an area completely."""
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
            parts.append(
                tr_plural(
                    "{n:,} message, {mean:,} B each", "{n:,} messages, {mean:,} B each", n=area.messages, mean=mean
                )
            )
        return "\n".join([*parts, *([area.note] if area.note else [])])


def _rect(box: Box) -> QRectF:
    return QRectF(box.x, box.y, box.width, box.height)


def _shade(area: Area, colours: TopicColours) -> QColor:
    """The colour of the area's topic, darker for newer areas."""
    topic_color = colours.color(area.topic)
    color = C("text3") if topic_color is None else topic_color
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
        """The box without its margins; its size is never negative."""
        return Box(
            self.x + left, self.y + top, max(self.width - left - right, 0.0), max(self.height - top - bottom, 0.0)
        )

    def holds(self, x: float, y: float) -> bool:
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


# Boxes fill the room in rows along its shorter side, the largest sizes first. A size joins the row as long as the worst
# shape in the row gets no worse; then the row is closed and the rest of the room is filled the same way:
#
#     ┌───────┬────┬──┐      1. rows a b, along the left side: with c all three would be flatter
#     │   a   │ c  │ e│      2. c d, in the room that remains
#     ├───────┼────┼──┤      3. e f
#     │   b   │ d  │ f│
#     └───────┴────┴──┘      (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000)


def squarify(sizes: Sequence[float], room: Box) -> list[Box]:
    """Return a box for each of ``sizes`` (largest first, none negative), with areas in proportion and as square as
    possible.

    Boxes of size 0 are empty and stand in the room's far corner.
    """
    boxes: list[Box] = []
    remaining = float(sum(sizes))
    number = 0
    while number < len(sizes) and sizes[number] > 0 and room.width > 0 and room.height > 0:
        end = _row_end(sizes, number, remaining, room)
        line = float(sum(sizes[number:end]))
        share = line / remaining
        if room.width >= room.height:
            width, y = room.width * share, room.y
            for size in sizes[number:end]:
                height = room.height * size / line
                boxes.append(Box(room.x, y, width, height))
                y += height
            room = Box(room.x + width, room.y, room.width - width, room.height)
        else:
            height, x = room.height * share, room.x
            for size in sizes[number:end]:
                width = room.width * size / line
                boxes.append(Box(x, room.y, width, height))
                x += width
            room = Box(room.x, room.y + height, room.width, room.height - height)
        remaining -= line
        number = end
    corner = Box(room.x + room.width, room.y + room.height, 0.0, 0.0)
    return boxes + [corner] * (len(sizes) - len(boxes))


def _row_end(sizes: Sequence[float], start: int, remaining: float, room: Box) -> int:
    """Return the end of a row along the shorter side. One more size would make its boxes less square."""
    area = room.width * room.height / remaining
    side_squared = min(room.width, room.height) ** 2
    total, largest, best, end = 0.0, sizes[start] * area, float("inf"), start
    while end < len(sizes) and sizes[end] > 0:
        tile_area = sizes[end] * area
        total += tile_area
        worst = max(side_squared * largest / total**2, total**2 / (side_squared * tile_area))
        if worst > best:
            break
        best = worst
        end += 1
    return max(end, start + 1)


def bands(sizes: Sequence[float], room: Box) -> list[Box]:
    """Return boxes one below the other over the full width, with heights in proportion."""
    total, y, boxes = float(sum(sizes)) or 1.0, room.y, []
    for area_size in sizes:
        height = room.height * area_size / total
        boxes.append(Box(room.x, y, room.width, height))
        y += height
    return boxes
