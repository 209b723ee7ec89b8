"""The Line over the files of the log: what retention deletes, who still reads, what is in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen

from viewer.look.assets import tr, tr_plural
from viewer.look.broken import UnreadableRange
from viewer.look.formats import shorten_middle
from viewer.look.theme import C, mono, px, ui
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import file_mark
from viewer.widgets.flag_layout import MAX_NAME_CHARACTERS, FlagPlace, FlagRequest, place_flags
from viewer.widgets.log_line import LineFile, LogLine, reaching
from viewer.widgets.paint import broken_box, draw_flag, flag_width, hatch
from viewer.widgets.record_menu import Found, MarkMenu

SIDE = 12
HEIGHT = 120
LEVEL_HEIGHT, LEVEL_COUNT = 19, 3
TOP, BLOCK_HEIGHT = 62, 22
CACHE_HEIGHT = 5
MAX_BLOCKS = 4000
FILLS = {"goes": "errorFill", "later": "warnFill"}


@dataclass(frozen=True, slots=True)
class Block:
    """A file: ``kind`` is goes, later or keep; ``shares`` says how much of each part of it is in memory."""

    name: str
    start: int
    end: int
    kind: str = "keep"
    label: str = ""
    words: str = ""
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LineFlag:
    """A label on a stem at an offset; ``role`` is its colour, ``side`` is tried first."""

    name: str
    offset: int
    role: str
    note: str = ""
    side: int = 1


class SpaceLine(Canvas):
    """Emits ``fileChosen(block)`` when the selection moves, ``fileFollowed(block)`` on Enter and double click."""

    fileChosen = Signal(object)
    fileFollowed = Signal(object)

    def __init__(self, name: str = "space.line") -> None:
        super().__init__(name, tr("The files of the log as a line"), HEIGHT)
        self._full_line = self._line = LogLine(0, 0, 0)
        self._blocks: tuple[Block, ...] = ()
        self._flags: tuple[LineFlag, ...] = ()
        self._words = ""
        self._broken: tuple[UnreadableRange, ...] = ()
        self._selected: int | None = None
        self.menu = MarkMenu(self, self.mark_at)

    def show_files(self, line: LogLine, blocks: Sequence[Block], flags: Sequence[LineFlag], words: str = "") -> None:
        """Draw the files; ``words`` says why there are none, or what of the page cache is unknown."""
        name = self._blocks[self._selected].name if self._selected is not None else ""
        self._full_line, self._blocks, self._flags, self._words = line, tuple(blocks), tuple(flags), words
        self._line = reaching(line, self._broken)
        self._selected = next((n for n, block in enumerate(self._blocks) if block.name == name), None)
        flag_texts = [f"{flag.name} {flag.note}".strip() for flag in flags]
        self.setAccessibleDescription(
            "; ".join([tr_plural("{n:,} file", "{n:,} files", n=len(blocks)), *flag_texts, words]).strip("; ")
        )
        self.update()

    def show_broken(self, broken: Sequence[UnreadableRange]) -> None:
        """Hatch the ranges that are missing or damaged."""
        self._broken = tuple(broken)
        self._line = reaching(self._full_line, self._broken)
        self.update()

    def choose(self, name: str) -> None:
        """Frame a file by its name without emitting a signal."""
        self._selected = next((n for n, block in enumerate(self._blocks) if block.name == name), None)
        self.update()

    @property
    def chosen(self) -> Block | None:
        """The framed file."""
        return self._blocks[self._selected] if self._selected is not None else None

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
        start, end = 0, len(self._blocks)
        while start < end:
            middle = (start + end) // 2
            if self._blocks[middle].start <= offset:
                start = middle + 1
            else:
                end = middle
        return start - 1 if start else None

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
        if self._selected is not None:
            block = self._blocks[self._selected]
            block_left = self._x(block.start)
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            block_width = max(self._x(block.end) - block_left, 4.0)
            p.drawRect(QRectF(block_left - 1, px(TOP) - 2, block_width + 1, px(BLOCK_HEIGHT + CACHE_HEIGHT) + 6))

    def _paint_blocks(self, p: QPainter) -> None:
        top, height = px(TOP), px(BLOCK_HEIGHT)
        skips_narrow = len(self._blocks) > MAX_BLOCKS
        last_right = -1.0
        for block in self._blocks:
            block_left, block_right = self._x(block.start), self._x(block.end)
            if skips_narrow and block_right - last_right < 1:
                continue
            last_right = block_right
            box = QRectF(
                block_left, top, max(block_right - block_left - (2 if block_right - block_left > 5 else 0), 0.5), height
            )
            p.fillRect(box, C(FILLS.get(block.kind, "sunken")))
            if block.kind == "goes":
                hatch(p, box, "error")
            self._paint_cache(p, block, QRectF(block_left, top + height + px(3), box.width(), px(CACHE_HEIGHT)))

    def _paint_broken(self, p: QPainter) -> None:
        for broken in self._broken:
            range_left = self._x(broken.start)
            broken_box(
                p,
                QRectF(range_left, px(TOP), max(2.0, self._x(broken.end) - range_left - 1), px(BLOCK_HEIGHT)),
                broken.kind,
            )

    def _paint_cache(self, p: QPainter, block: Block, box: QRectF) -> None:
        if not block.shares:
            return
        p.fillRect(box, C("sunken"))
        part_width = box.width() / len(block.shares)
        for number, share in enumerate(block.shares):
            if share > 0:
                color = C("posLog", 0.25 + 0.75 * share)
                p.fillRect(
                    QRectF(box.left() + number * part_width, box.top(), max(part_width, 0.6), box.height()), color
                )

    def _paint_labels(self, p: QPainter) -> None:
        p.setFont(mono(11))
        p.setPen(C("text3"))
        metrics = QFontMetrics(p.font())
        y, free = px(TOP + BLOCK_HEIGHT + CACHE_HEIGHT + 6), 0.0
        for block in self._blocks:
            x, width = self._x(block.start), metrics.horizontalAdvance(block.label)
            if not block.label or x < free or x + width > self.width() - px(SIDE):
                continue
            p.drawText(QRectF(x, y, width + 4, px(16)), Qt.AlignmentFlag.AlignVCenter, block.label)
            free = x + max(width + px(24), self.width() / 5)

    def _paint_flags(self, p: QPainter) -> None:
        for flag, request, place in self._placed_flags():
            top = px(4) + (LEVEL_COUNT - 1 - place.level) * px(LEVEL_HEIGHT)
            box = QRectF(place.left, top, request.width, px(17))
            draw_flag(p, request.x, top, px(TOP + BLOCK_HEIGHT), flag.name, C(flag.role), box, flag.note, flag.role)

    def _placed_flags(self) -> list[tuple[LineFlag, FlagRequest, FlagPlace]]:
        """Place the flags so that none touches another.

        If there is no room, drop the notes first, then the last flags; the accessible description keeps all.
        """
        with_notes = [replace(flag, name=shorten_middle(flag.name, MAX_NAME_CHARACTERS)) for flag in self._flags]
        without_notes = [replace(flag, note="") for flag in with_notes]
        for flags in (with_notes, *(without_notes[:count] for count in range(len(without_notes), 0, -1))):
            requests = [FlagRequest(self._x(f.offset), float(flag_width(f.name, f.note)), f.side) for f in flags]
            places = place_flags(requests, float(px(SIDE)), float(self.width() - px(SIDE)), levels=LEVEL_COUNT)
            placed = list(zip(flags, requests, places, strict=True))
            if len(flags) == 1 or not any(
                _touch(first_flag, second_flag) for first_flag, second_flag in combinations(placed, 2)
            ):
                return placed
        return []

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def _select(self, number: int | None) -> None:
        if number is not None and number != self._selected and 0 <= number < len(self._blocks):
            self._selected = number
            self.update()
            self.fileChosen.emit(self._blocks[number])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._blocks:
            self._select(self._number_at(event.position().x()))

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        if self._selected is not None:
            self.fileFollowed.emit(self._blocks[self._selected])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last_number = Qt.Key(event.key()), len(self._blocks) - 1
        current = -1 if self._selected is None else self._selected
        targets = {
            Qt.Key.Key_Left: max(current - 1, 0),
            Qt.Key.Key_Right: min(current + 1, last_number),
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last_number,
        }
        if key in targets and self._blocks:
            self._select(targets[key])
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._selected is not None:
            self.fileFollowed.emit(self._blocks[self._selected])
        else:
            super().keyPressEvent(event)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """Return the mark of the file under the point, or of the selected file."""
        number = self._selected if point is None else self._number_at(point.x()) if self._blocks else None
        if number is None:
            return None
        block = self._blocks[number]
        anchor = QPointF(self._x(block.start), self.height() / 2)
        return file_mark(LineFile(block.name, block.start, block.end), block.start), anchor

    def words_under(self, point: QPointF) -> str:
        """Describe what lies under a point: a flag, a damaged range, else the file."""
        near_flags = [flag for flag in self._flags if abs(self._x(flag.offset) - point.x()) < 5 and point.y() < px(TOP)]
        if near_flags:
            return "\n".join(f"{flag.name} {flag.note}".strip() for flag in near_flags)
        number = self._number_at(point.x()) if self._blocks else None
        broken_texts = [
            broken.words for broken in self._broken if self._x(broken.start) <= point.x() <= self._x(broken.end)
        ][:2]
        if broken_texts and point.y() < px(TOP + BLOCK_HEIGHT):
            return "\n".join(broken_texts)
        return self._blocks[number].words if number is not None else self._words


def _touch(
    first_flag: tuple[LineFlag, FlagRequest, FlagPlace], second_flag: tuple[LineFlag, FlagRequest, FlagPlace]
) -> bool:
    """Return True if two flags' boxes overlap, or the stem of the higher runs through the lower."""
    (_, lower_request, lower), (_, higher_request, higher) = sorted(
        (first_flag, second_flag), key=lambda flag: flag[2].level
    )
    if lower.level == higher.level:
        return lower.left < higher.left + higher_request.width and higher.left < lower.left + lower_request.width
    return (
        lower.left < higher_request.x < lower.left + lower_request.width - 1
        and abs(lower_request.x - higher_request.x) > 1
    )
