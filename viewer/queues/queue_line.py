"""A consume queue as a line: its files, minimum and maximum, the next offsets of groups, and entries with problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from viewer.look.assets import tr
from viewer.look.formats import shorten_middle
from viewer.look.theme import C, follow, mono, px, scale, ui
from viewer.look.topic_colours import colours_of
from viewer.widgets.drawn_marks import entry_mark
from viewer.widgets.flag_layout import MAX_NAME_CHARACTERS, FlagRequest, Scale, place_flags
from viewer.widgets.focus import FocusRing
from viewer.widgets.paint import draw_flag, hatch, mark
from viewer.widgets.record_menu import Found, MarkMenu

MARGIN = 12
LANE = 18


@dataclass(frozen=True, slots=True)
class QueueFile:
    """A file of the queue: its name, and the queue offsets it has room for, [start, end)."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class QueueFlag:
    """A group's next offset (or another mark) on the line, with a note in figures."""

    name: str
    offset: int
    role: str
    note: str = ""
    group: str = ""
    """The one group that reads next there; empty for several and for other marks."""
    link: object = field(default=None, compare=False)
    """Where the group is shown."""


@dataclass(frozen=True, slots=True)
class QueueSpan:
    """Content of the line. Offsets are queue offsets; ``files`` may be empty (a queue without files)."""

    files: tuple[QueueFile, ...] = ()
    minimum: int = 0
    maximum: int = 0
    flags: tuple[QueueFlag, ...] = ()
    pins: tuple[tuple[int, str], ...] = ()
    topic: str = ""
    queue_id: int | None = None
    moved: tuple[int, int] | None = None
    """Messages that are only in tiered storage, [start, end)."""

    @property
    def low(self) -> int:
        """First offset drawn."""
        starts = [self.minimum, *(f.start for f in self.files[:1])]
        if self.moved is not None:
            starts.append(self.moved[0])
        return min(starts)

    @property
    def high(self) -> int:
        """Last offset that is drawn; a little more than the queue's end."""
        used = max(1, self.maximum - self.low)
        end = self.files[-1].end if self.files else self.maximum
        return max(self.low + 1, min(max(end, self.maximum), self.maximum + max(1, used // 24)))


class QueueLine(QWidget):
    """``entry_chosen(queue offset)`` on a click, on the arrow keys, and on the flags' own places."""

    entry_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("queue.line")
        self.setAccessibleName(tr("The queue as a line"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        FocusRing(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._span: QueueSpan | None = None
        self._window = (0, 0)
        self._topic = ""
        self.menu = MarkMenu(self, self.mark_at)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedHeight(px(92))
        self.update()

    def show_span(self, span: QueueSpan | None, topic: str = "") -> None:
        """Draw another queue, of ``topic`` and in its colour."""
        self._span, self._topic = span, topic
        words = []
        if span is not None:
            words = [tr("entries {low:,} to {high:,}", low=span.minimum, high=span.maximum)]
            if span.moved is not None:
                low, high = span.moved
                words.append(tr("entries {low:,} to {high:,} in tiered storage", low=low, high=high))
            words += [f"{flag.name} {flag.offset:,} {flag.note}" for flag in span.flags]
        self.setAccessibleDescription("; ".join(words))
        self.update()

    def show_window(self, start_offset: int, end_offset: int) -> None:
        """Frame the entries that the table shows, [low, high)."""
        self._window = (start_offset, end_offset)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(700, self.minimumHeight())

    def _scale(self) -> Scale:
        span = self._span or QueueSpan()
        return Scale(span.low, span.high, MARGIN, self.width() - 2 * MARGIN)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The flag under the point, else the entry there; by key the first entry that the table shows."""
        span, to_x = self._span, self._scale()
        if span is None or span.queue_id is None:
            return None
        x = to_x.x(max(self._window[0], span.low)) if point is None else point.x()
        below = QPointF(x, (44 + LANE) * scale())
        for flag, _, box in self._flag_boxes():
            if point is None or point.y() >= 44 * scale():
                break
            if box.contains(point) or abs(to_x.x(flag.offset) - x) < 5 * scale():
                words = " ".join(part for part in (flag.name, f"{flag.offset:,}", flag.note) if part)
                return entry_mark(span.topic, span.queue_id, flag.offset, words, flag.group, flag.link), below
        offset = max(self._window[0], span.low) if point is None else to_x.offset(x)
        offset = min(max(offset, span.low), max(span.low, span.maximum - 1))
        return entry_mark(span.topic, span.queue_id, offset, tr("entry {entry:,}", entry=offset)), below

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._span is not None and event.button() == Qt.MouseButton.LeftButton:
            offset = self._scale().offset(event.position().x())
            self.entry_chosen.emit(min(max(offset, self._span.low), max(self._span.low, self._span.maximum - 1)))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._span is not None:
            offset = self._scale().offset(event.position().x())
            file = next((f.name for f in self._span.files if f.start <= offset < f.end), "")
            near = [f for f in self._span.flags if abs(self._scale().x(f.offset) - event.position().x()) < 5]
            words = [tr("entry {entry:,}", entry=offset), file]
            if self._span.moved is not None and self._span.moved[0] <= offset < self._span.moved[1]:
                words.append(tr("in tiered storage"))
            words += [f"{flag.name} {flag.offset:,} {flag.note}" for flag in near]
            QToolTip.showText(event.globalPosition().toPoint(), "\n".join(word for word in words if word), self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        span = self._span
        if span is None or event.key() not in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End):
            super().keyPressEvent(event)
            return
        window_start, window_end = self._window
        page = max(1, window_end - window_start)
        last_offset = max(span.low, span.maximum - 1)
        goal = {
            Qt.Key.Key_Left: window_start - page,
            Qt.Key.Key_Right: window_end,
            Qt.Key.Key_Home: span.low,
            Qt.Key.Key_End: last_offset,
        }[Qt.Key(event.key())]
        self.entry_chosen.emit(min(max(goal, span.low), last_offset))

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        if self._span is None:
            return
        top = 44 * scale()
        self._paint_files(p, top)
        self._paint_pins(p, top)
        self._paint_flags(p, top)
        self._paint_window(p, top)

    def _paint_files(self, p: QPainter, top: float) -> None:
        span, to_x, lane = self._span, self._scale(), LANE * scale()
        assert span is not None
        files = span.files or (QueueFile("", span.low, span.high),)
        end = -1.0
        for file in files:
            left_x, right = to_x.x(file.start), to_x.x(min(file.end, span.high))
            p.fillRect(QRectF(left_x, top, max(1.0, right - left_x - 2), lane), C("sunken"))
            p.setFont(mono(11))
            words = f"{max(file.start, span.low):,}"
            wide = QFontMetrics(p.font()).horizontalAdvance(words)
            if left_x < end + 12:
                continue
            p.setPen(C("text3"))
            p.drawText(QRectF(left_x + 1, top + lane + 3, wide + 4, 15 * scale()), Qt.AlignmentFlag.AlignVCenter, words)
            end = left_x + wide
            name = f"{tr('file')} …{file.name[-10:]}"
            note = QFontMetrics(p.font()).horizontalAdvance(name)
            named = left_x + wide + 12
            room = min(max(right, left_x + 8), self.width())
            pinned = any(named - 8 < to_x.x(offset) < named + note + 8 for offset, _ in span.pins)
            if file.name and named + note < room and not pinned:
                p.drawText(
                    QRectF(named, top + lane + 3, note + 4, 15 * scale()),
                    Qt.AlignmentFlag.AlignVCenter,
                    name,
                )
                end += 12 + note
        color = colours_of(self).color(self._topic) or C("posLog")
        color.setAlphaF(0.75)
        min_offset = max(span.minimum, span.low)
        left_x, right = to_x.x(min_offset), to_x.x(span.maximum)
        p.fillRect(QRectF(left_x, top, max(0.0, right - left_x), lane), color)
        for file in files[1:]:
            p.fillRect(QRectF(to_x.x(file.start) - 2, top, 2, lane), C("pane"))
        if span.minimum > span.low:
            hatch(p, QRectF(to_x.x(span.low), top, max(2.0, left_x - to_x.x(span.low)), lane), "text3", 0.8)
        if span.moved is not None:
            moved_left, moved_right = to_x.x(span.moved[0]), to_x.x(span.moved[1])
            p.fillRect(QRectF(moved_left, top, max(2.0, moved_right - moved_left), lane), C("noteFill"))
            p.setPen(QPen(C("note"), 1))
            p.drawRect(QRectF(moved_left, top, max(2.0, moved_right - moved_left - 1), lane - 1))
            p.setFont(ui(11))
            words = tr("in tiered storage")
            if QFontMetrics(p.font()).horizontalAdvance(words) + 8 < moved_right - moved_left:
                p.drawText(QRectF(moved_left, top, moved_right - moved_left, lane), Qt.AlignmentFlag.AlignCenter, words)

    def _paint_pins(self, p: QPainter, top: float) -> None:
        assert self._span is not None
        lane, to_x = LANE * scale(), self._scale()
        for offset, kind in self._span.pins:
            x = to_x.x(offset)
            p.setPen(QPen(C(kind), 2))
            p.drawLine(QPointF(x, top - 2), QPointF(x, top + lane + 2))
            mark(p, kind, QPointF(x, top + lane + 9 * scale()), 4)

    def _flag_boxes(self) -> list[tuple[QueueFlag, FlagRequest, QRectF]]:
        """The flags as they are drawn, each with its box."""
        assert self._span is not None
        to_x = self._scale()
        flags = [replace(flag, name=shorten_middle(flag.name, MAX_NAME_CHARACTERS)) for flag in self._span.flags]
        requests = []
        for flag in flags:
            wide = QFontMetrics(ui(11, 600)).horizontalAdvance(flag.name) + 12
            wide += QFontMetrics(mono(11)).horizontalAdvance(flag.note) + 6 if flag.note else 0
            x = to_x.x(flag.offset)
            requests.append(FlagRequest(x, wide, 1 if x < self.width() / 2 else -1))
        places = place_flags(requests, 2, self.width() - 2, 2)
        return [
            (flag, request, QRectF(place.left, (24 - 20 * place.level) * scale(), request.width, 17 * scale()))
            for flag, request, place in zip(flags, requests, places, strict=True)
        ]

    def _paint_flags(self, p: QPainter, top: float) -> None:
        for flag, request, box in self._flag_boxes():
            draw_flag(p, request.x, box.top(), top + LANE * scale(), flag.name, C(flag.role), box, flag.note)

    def _paint_window(self, p: QPainter, top: float) -> None:
        start_offset, end_offset = self._window
        if end_offset <= start_offset:
            return
        to_x = self._scale()
        left_x = to_x.x(start_offset)
        width = max(7.0, to_x.x(end_offset) - left_x)
        left_x = min(left_x, self.width() - MARGIN / 2 - width)
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(C("accent", 0.14))
        p.drawRoundedRect(QRectF(left_x, top - 4, width, LANE * scale() + 8), 2, 2)


def choose_flags(groups: Sequence[QueueFlag], max_flags: int = 5) -> list[QueueFlag]:
    """Choose the flags to draw. Groups at one offset share a flag; if more than ``max_flags`` are left, those in
    trouble and those furthest behind stay.
    """
    shared: dict[tuple[int, str], list[QueueFlag]] = {}
    for group in groups:
        shared.setdefault((group.offset, group.role), []).append(group)
    flags = [
        QueueFlag(
            " · ".join(g.name for g in same[:3]) + (f" +{len(same) - 3}" if len(same) > 3 else ""),
            offset,
            role,
            same[0].note,
            same[0].group if len(same) == 1 else "",
            same[0].link if len(same) == 1 else None,
        )
        for (offset, role), same in shared.items()
    ]
    flags.sort(key=lambda flag: (flag.role != "error", flag.offset))
    return flags[:max_flags]
