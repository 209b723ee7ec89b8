"""The Line over the files of the log, old left, new right: what retention takes, who still reads, what is in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen

from viewer.look.assets import tr
from viewer.look.broken import Broken
from viewer.look.formats import shorten_middle
from viewer.look.theme import C, mono, px, ui
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import file_mark
from viewer.widgets.flag_layout import MOST_LETTERS, FlagPlace, FlagWish, place_flags
from viewer.widgets.log_line import LineFile, LogLine, reaching
from viewer.widgets.paint import broken_box, draw_flag, flag_width, hatch
from viewer.widgets.record_menu import Found, MarkMenu

SIDE = 12
HEIGHT = 120
LEVEL, LEVELS = 19, 3
TOP, TALL = 62, 22
CACHE = 5
MOST_BLOCKS = 4000
FILLS = {"goes": "errorFill", "later": "warnFill"}


@dataclass(frozen=True, slots=True)
class Block:
    """One file: ``kind`` is goes, later or keep; ``shares`` tells how much of its stretches is in memory."""

    name: str
    start: int
    end: int
    kind: str = "keep"
    label: str = ""
    words: str = ""
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LineFlag:
    """Words on a stem at an offset; ``role`` colours the frame, ``side`` is tried first."""

    name: str
    offset: int
    role: str
    note: str = ""
    side: int = 1


class SpaceLine(Canvas):
    """``fileChosen(block)`` as the choice moves, ``fileFollowed(block)`` on Enter and double click."""

    fileChosen = Signal(object)
    fileFollowed = Signal(object)

    def __init__(self, name: str = "space.line") -> None:
        super().__init__(name, tr("The files of the log as a line"), HEIGHT)
        self._given = self._line = LogLine(0, 0, 0)
        self._blocks: tuple[Block, ...] = ()
        self._flags: tuple[LineFlag, ...] = ()
        self._words = ""
        self._broken: tuple[Broken, ...] = ()
        self._at: int | None = None
        self.menu = MarkMenu(self, self.mark_at)

    def show_files(self, line: LogLine, blocks: Sequence[Block], flags: Sequence[LineFlag], words: str = "") -> None:
        """Draw these; ``words`` says why there are none, or what of the page cache is not known."""
        name = self._blocks[self._at].name if self._at is not None else ""
        self._given, self._blocks, self._flags, self._words = line, tuple(blocks), tuple(flags), words
        self._line = reaching(line, self._broken)
        self._at = next((n for n, block in enumerate(self._blocks) if block.name == name), None)
        said = [f"{flag.name} {flag.note}".strip() for flag in flags]
        self.setAccessibleDescription("; ".join([tr("{n:,} files", n=len(blocks)), *said, words]).strip("; "))
        self.update()

    def show_broken(self, broken: Sequence[Broken]) -> None:
        """Hatch what is missing or not whole."""
        self._broken = tuple(broken)
        self._line = reaching(self._given, self._broken)
        self.update()

    def choose(self, name: str) -> None:
        """Frame a file by its name; says nothing to others."""
        self._at = next((n for n, block in enumerate(self._blocks) if block.name == name), None)
        self.update()

    @property
    def chosen(self) -> Block | None:
        """The framed file."""
        return self._blocks[self._at] if self._at is not None else None

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._blocks

    @property
    def flags(self) -> tuple[LineFlag, ...]:
        return self._flags

    def _x(self, offset: int) -> float:
        return px(SIDE) + (self.width() - 2 * px(SIDE)) * self._line.share(offset)

    def _number_at(self, x: float) -> int | None:
        share = (x - px(SIDE)) / max(1, self.width() - 2 * px(SIDE))
        offset = self._line.offset(min(max(share, 0.0), 0.999999))
        low, high = 0, len(self._blocks)
        while low < high:
            middle = (low + high) // 2
            if self._blocks[middle].start <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low else None

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(event.rect(), C("pane"))
        p.fillRect(QRect(0, self.height() - 1, self.width(), 1), C("hair"))
        if self.hasFocus():
            p.setPen(QPen(C("accent"), 2))
            p.drawRect(self.rect().adjusted(1, 1, -1, -2))
        if not self._blocks:
            p.setFont(ui(12))
            p.setPen(C("text3"))
            place = self.rect().adjusted(px(24), 0, -px(24), 0)
            p.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap, self._words)
            return
        self._paint_blocks(p)
        self._paint_broken(p)
        self._paint_labels(p)
        self._paint_flags(p)
        if self._at is not None:
            block = self._blocks[self._at]
            left = self._x(block.start)
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            wide = max(self._x(block.end) - left, 4.0)
            p.drawRect(QRectF(left - 1, px(TOP) - 2, wide + 1, px(TALL + CACHE) + 6))

    def _paint_blocks(self, p: QPainter) -> None:
        top, tall = px(TOP), px(TALL)
        many = len(self._blocks) > MOST_BLOCKS
        last = -1.0
        for block in self._blocks:
            left, right = self._x(block.start), self._x(block.end)
            if many and right - last < 1:
                continue
            last = right
            box = QRectF(left, top, max(right - left - (2 if right - left > 5 else 0), 0.5), tall)
            p.fillRect(box, C(FILLS.get(block.kind, "sunken")))
            if block.kind == "goes":
                hatch(p, box, "error")
            self._paint_cache(p, block, QRectF(left, top + tall + px(3), box.width(), px(CACHE)))

    def _paint_broken(self, p: QPainter) -> None:
        for one in self._broken:
            left = self._x(one.start)
            broken_box(p, QRectF(left, px(TOP), max(2.0, self._x(one.end) - left - 1), px(TALL)), one.kind)

    def _paint_cache(self, p: QPainter, block: Block, box: QRectF) -> None:
        if not block.shares:
            return
        p.fillRect(box, C("sunken"))
        wide = box.width() / len(block.shares)
        for number, share in enumerate(block.shares):
            if share > 0:
                color = C("posLog", 0.25 + 0.75 * share)
                p.fillRect(QRectF(box.left() + number * wide, box.top(), max(wide, 0.6), box.height()), color)

    def _paint_labels(self, p: QPainter) -> None:
        p.setFont(mono(11))
        p.setPen(C("text3"))
        metrics = QFontMetrics(p.font())
        y, free = px(TOP + TALL + CACHE + 6), 0.0
        for block in self._blocks:
            x, width = self._x(block.start), metrics.horizontalAdvance(block.label)
            if not block.label or x < free or x + width > self.width() - px(SIDE):
                continue
            p.drawText(QRectF(x, y, width + 4, px(16)), Qt.AlignmentFlag.AlignVCenter, block.label)
            free = x + max(width + px(24), self.width() / 5)

    def _paint_flags(self, p: QPainter) -> None:
        for flag, wish, place in self._placed_flags():
            top = px(4) + (LEVELS - 1 - place.level) * px(LEVEL)
            box = QRectF(place.left, top, wish.width, px(17))
            draw_flag(p, wish.x, top, px(TOP + TALL), flag.name, C(flag.role), box, flag.note, flag.role)

    def _placed_flags(self) -> list[tuple[LineFlag, FlagWish, FlagPlace]]:
        """Where the flags stand. Where they would touch, notes go first, then the last flags; the words have all."""
        full = [replace(flag, name=shorten_middle(flag.name, MOST_LETTERS)) for flag in self._flags]
        bare = [replace(flag, note="") for flag in full]
        for flags in (full, *(bare[:count] for count in range(len(bare), 0, -1))):
            wishes = [FlagWish(self._x(f.offset), float(flag_width(f.name, f.note)), f.side) for f in flags]
            places = place_flags(wishes, float(px(SIDE)), float(self.width() - px(SIDE)), levels=LEVELS)
            found = list(zip(flags, wishes, places, strict=True))
            if len(flags) == 1 or not any(_touch(one, two) for one, two in combinations(found, 2)):
                return found
        return []

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def _take(self, number: int | None) -> None:
        if number is not None and number != self._at and 0 <= number < len(self._blocks):
            self._at = number
            self.update()
            self.fileChosen.emit(self._blocks[number])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._blocks:
            self._take(self._number_at(event.position().x()))

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        if self._at is not None:
            self.fileFollowed.emit(self._blocks[self._at])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Qt.Key(event.key()), len(self._blocks) - 1
        at = -1 if self._at is None else self._at
        goals = {
            Qt.Key.Key_Left: max(at - 1, 0),
            Qt.Key.Key_Right: min(at + 1, last),
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        if key in goals and self._blocks:
            self._take(goals[key])
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._at is not None:
            self.fileFollowed.emit(self._blocks[self._at])
        else:
            super().keyPressEvent(event)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The file under the point, or the chosen one."""
        number = self._at if point is None else self._number_at(point.x()) if self._blocks else None
        if number is None:
            return None
        block = self._blocks[number]
        below = QPointF(self._x(block.start), self.height() / 2)
        return file_mark(LineFile(block.name, block.start, block.end), block.start), below

    def words_under(self, point: QPointF) -> str:
        """What lies under a point: a flag's words, else the file's."""
        near = [flag for flag in self._flags if abs(self._x(flag.offset) - point.x()) < 5 and point.y() < px(TOP)]
        if near:
            return "\n".join(f"{flag.name} {flag.note}".strip() for flag in near)
        number = self._number_at(point.x()) if self._blocks else None
        told = [one.words for one in self._broken if self._x(one.start) <= point.x() <= self._x(one.end)][:2]
        if told and point.y() < px(TOP + TALL):
            return "\n".join(told)
        return self._blocks[number].words if number is not None else self._words


def _touch(one: tuple[LineFlag, FlagWish, FlagPlace], two: tuple[LineFlag, FlagWish, FlagPlace]) -> bool:
    """Whether two flags' boxes overlap, or the stem of the higher runs through the lower."""
    (_, wide, low), (_, wide_too, high) = sorted((one, two), key=lambda flag: flag[2].level)
    if low.level == high.level:
        return low.left < high.left + wide_too.width and high.left < low.left + wide.width
    return low.left < wide_too.x < low.left + wide.width - 1 and abs(wide.x - wide_too.x) > 1
