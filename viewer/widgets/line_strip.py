"""The Line: the whole log on one strip, with every file as a block, sampled topics, findings as pins, and a frame at
the table's place.

Old is left, new is right, as in every view. A click goes to that place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from viewer.look.assets import tr
from viewer.look.broken import UnreadableRange
from viewer.look.formats import full_moment, moment, number, size
from viewer.look.theme import C, dark, mono, px, scale, ui
from viewer.look.topic_colours import TopicColours, colours_of
from viewer.widgets.canvas import Canvas
from viewer.widgets.drawn_marks import broken_mark, file_mark, pin_mark
from viewer.widgets.log_line import LinePin, LogLine, TopicMix, joined, reaching, worst_pins
from viewer.widgets.paint import broken_box, mark
from viewer.widgets.record_menu import Found, MarkMenu

HEIGHT = 62
SIDE = 12
TOP = 17
BAND = 24
MAX_GAP_FILES = 400
MAX_MIXES = 512
"""Maximum number of samples. If there are more, neighbours are merged."""
REDRAW_THRESHOLD_PX = 0.5
"""Pixels by which a growing line may move without being drawn again."""


class LineStrip(Canvas):
    """Emits ``offsetChosen(offset)`` when the user clicks, drags or presses Enter, and ``resized()`` when other labels
    have room.
    """

    offsetChosen = Signal(object)
    resized = Signal()
    lineMoved = Signal()
    """Offsets are drawn elsewhere now."""

    def __init__(self, name: str = "units.line", parent: QWidget | None = None) -> None:
        super().__init__(name, tr("The log as a line"), HEIGHT, Qt.FocusPolicy.TabFocus, parent=parent)
        self._log_line = self._line = LogLine(0, 0, 0)
        """The log as it is, and the line that is drawn: up to the end of the missing ranges after its files.
        """
        self._drawn = self._line
        self._mixes: list[TopicMix] = []
        self._times: dict[int, int] = {}
        self._pins: tuple[LinePin, ...] = ()
        self._broken: tuple[UnreadableRange, ...] = ()
        self._frame = (0, 0)
        self._words = ""
        self._cached: tuple[tuple[int, int, float], ...] = ()
        self._order: tuple[str, ...] = ()
        """The topic colours of the drawn background."""
        self._ground: QPixmap | None = None
        self._marks: QPixmap | None = None
        self._places: list[tuple[float, int]] | None = None
        self.menu = MarkMenu(self, self.mark_at)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, px(HEIGHT))

    def set_line(self, line: LogLine) -> None:
        """Show another log, or the same one after it has grown. Samples of places that still exist stay."""
        if line.low != self._log_line.low or line.written < self._log_line.written:
            self._mixes = []
        if line.high <= line.low:
            self._frame = (0, 0)
        self._log_line = line
        self._extend_line()

    def set_words(self, words: str) -> None:
        """Set the text that is shown while the log has no bytes."""
        if words != self._words:
            self._words = words
            self.setAccessibleDescription(words)
            self.update()

    def _extend_line(self) -> None:
        old, self._line = self._line, reaching(self._log_line, self._broken)
        if not self._looks_as_drawn(old):
            self._forget()

    def _looks_as_drawn(self, old: LogLine) -> bool:
        """Return True if the line, which was ``old`` before, still lies where it was drawn.

        A growing log changes at each reading, but rarely by a visible amount.
        """
        line, drawn = self._line, self._drawn
        if drawn.high <= drawn.low or (line.low, len(line.files)) != (old.low, len(old.files)):
            return False
        return abs(line.share(drawn.written) - drawn.share(drawn.written)) * self.width() < REDRAW_THRESHOLD_PX

    def add_mixes(self, mixes: Sequence[TopicMix]) -> None:
        """Add samples and draw them."""
        self._mixes += mixes
        if len(self._mixes) > MAX_MIXES:
            self._mixes = joined(self._mixes, 2 * (self._line.written - self._line.low) // MAX_MIXES)
        if self._ground is not None and self._ground.size() == self.size() * self.devicePixelRatioF():
            p = QPainter(self._ground)
            self._paint_mixes(p, mixes)
            p.end()
        self.update()

    def set_times(self, times: dict[int, int]) -> None:
        """Set the times (ms) of the first units of files, by start offset."""
        self._times = dict(times)
        self.update()

    @property
    def broken(self) -> tuple[UnreadableRange, ...]:
        """The hatched ranges."""
        return self._broken

    def set_broken(self, broken: Sequence[UnreadableRange]) -> None:
        """Hatch these missing or damaged ranges."""
        if tuple(broken) != self._broken:
            self._broken = tuple(broken)
            self._marks = None
            self._extend_line()
            self.update()

    def set_pins(self, pins: Sequence[LinePin]) -> None:
        """Set the pins of findings, bookmarks and other places."""
        if tuple(pins) != self._pins:
            self._pins = tuple(pins)
            self._marks = None
            self.update()

    def set_cached(self, shares: Sequence[tuple[int, int, float]]) -> None:
        """Set how much of the log is in memory, as (start, end, share from 0 to 1). It is drawn as a line under the
        band.
        """
        self._cached = tuple(shares)
        self._marks = None
        self.update()

    def set_frame(self, start: int, end: int) -> None:
        """Frame the offsets on the table's screen, or the chosen ones. There is no frame if ``end`` is not above
        ``start``.
        """
        if (start, end) != self._frame:
            self._frame = (start, end)
            line = self._line
            self.setAccessibleDescription(
                tr(
                    "showing {low:,} to {high:,} of {first:,} to {last:,}",
                    low=start,
                    high=end,
                    first=line.low,
                    last=line.high,
                )
            )
            self.update()

    def label_files(self) -> list[int]:
        """Start offsets of the files whose label has room. Only their times need to be read."""
        return [start for _, start in self._labels()]

    # ---- geometry ----------------------------------------------------------------------------------------------------

    @property
    def line(self) -> LogLine:
        """The line that is drawn."""
        return self._line

    def x_of(self, offset: int) -> float:
        """Return the place of an offset, for what stands below the strip."""
        return self._x(offset)

    def _x(self, offset: int) -> float:
        return px(SIDE) + (self.width() - 2 * px(SIDE)) * self._line.share(offset)

    def _offset_at(self, x: float) -> int:
        return self._line.offset((x - px(SIDE)) / max(1, self.width() - 2 * px(SIDE)))

    def _labels(self) -> list[tuple[float, int]]:
        """(left edge, start offset) of the labels below the band, without overlaps; computed once."""
        if self._places is None:
            self._places = self._find_places()
        return self._places

    def _find_places(self) -> list[tuple[float, int]]:
        metrics = QFontMetrics(mono(11))
        places: list[tuple[float, int]] = []
        next_free = 0.0
        for file in self._line.files:
            x = self._x(file.start)
            if x < next_free:
                continue
            width = metrics.horizontalAdvance(number(file.start) + " 11-17 22:04") + 40 * scale()
            if x + width < self.width() - 150 * scale():
                places.append((x, file.start))
                next_free = x + max(width, (self.width() - 24) / 4.6)
        return places

    # ---- painting ----------------------------------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        order = colours_of(self).order
        if order != self._order:
            self._order, self._ground = order, None
        self._ground = self._layer(self._ground, self._paint_ground)
        self._marks = self._layer(self._marks, self._paint_marks)
        p = QPainter(self)
        p.drawPixmap(0, 0, self._ground)
        p.drawPixmap(0, 0, self._marks)
        if self._line.high > self._line.low:
            self._paint_labels(p)
            self._paint_frame(p)
        elif self._words:
            band = QRectF(px(SIDE), px(TOP), self.width() - 2 * px(SIDE), px(BAND))
            p.fillRect(band, C("sunken"))
            p.setFont(ui(12))
            p.setPen(C("text2"))
            p.drawText(band, Qt.AlignmentFlag.AlignCenter, self._words)
        if self.hasFocus():
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(self.rect().adjusted(1, 1, -1, -2))

    def _layer(self, cached: QPixmap | None, paint: Callable[[QPainter], None]) -> QPixmap:
        """Return ``cached``, or a new picture if the widget's size has changed."""
        ratio = self.devicePixelRatioF()
        if cached is not None and cached.size() == self.size() * ratio:
            return cached
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        p = QPainter(picture)
        paint(p)
        p.end()
        return picture

    def _paint_ground(self, p: QPainter) -> None:
        """Paint the band and the samples."""
        self._drawn = self._line
        p.fillRect(self.rect(), C("pane"))
        p.fillRect(QRect(0, self.height() - 1, self.width(), 1), C("hair"))
        line = self._line
        if line.high <= line.low:
            return
        top, height = px(TOP), px(BAND)
        p.fillRect(QRectF(self._x(line.low), top, self._x(line.written) - self._x(line.low), height), C("line"))
        if line.high > line.written:
            p.fillRect(
                QRectF(self._x(line.written), top, self._x(line.high) - self._x(line.written), height), C("sunken")
            )
        self._paint_mixes(p, self._mixes)

    def _paint_marks(self, p: QPainter) -> None:
        """Paint broken ranges, gaps between files, cached ranges and pins."""
        if self._line.high <= self._line.low:
            return
        top, height = px(TOP), px(BAND)
        for damage in self._broken:
            left_x = self._x(damage.start)
            broken_box(p, QRectF(left_x, top, max(2.0, self._x(damage.end) - left_x), height), damage.kind)
        self._paint_gaps(p, top, height)
        for start, end, share in self._cached:
            if share > 0:
                x = self._x(start)
                under = QRectF(x, top + height + 1, max(self._x(end) - x, 0.6), max(px(2), 2))
                p.fillRect(under, C("posLog", 0.25 + 0.75 * share))
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        places = [self._x(pin.offset) for pin in self._pins]
        for x, pin in worst_pins(self._pins, places, 7 * scale()):
            p.setPen(QPen(C("text3" if pin.kind == "chat" else pin.kind), 1))
            p.drawLine(QPointF(x, top - px(4)), QPointF(x, top))
            mark(p, pin.kind, QPointF(x, top - px(9)), 3.6 * scale())

    def _paint_mixes(self, p: QPainter, mixes: Sequence[TopicMix]) -> None:
        paint_mixes(p, mixes, self._x, px(TOP), px(BAND), colours_of(self))

    def _paint_gaps(self, p: QPainter, top: int, height: int) -> None:
        files = self._line.files
        if len(files) > MAX_GAP_FILES or len(files) * 4 > self.width():
            return
        ends = {file.end for file in files}
        for file in files[1:]:
            p.fillRect(QRectF(self._x(file.start) - 1.5, top, 1.5, height), C("pane"))
            if file.start not in ends:
                p.fillRect(QRectF(self._x(file.start) - 2, top - 2, 2, height + 4), C("error"))

    def _paint_labels(self, p: QPainter) -> None:
        p.setFont(mono(11))
        metrics = QFontMetrics(p.font())
        y = px(TOP + BAND) + px(3)
        frame_left, frame_text = self._frame_label()
        frame_right = frame_left + QFontMetrics(mono(11, 600)).horizontalAdvance(frame_text)
        for x, start in self._labels():
            text = number(start)
            width = metrics.horizontalAdvance(text)
            if x + width > frame_left - 8 and x < frame_right + 8:
                continue
            p.setPen(C("text2"))
            p.drawText(QRectF(x, y, width + 4, px(15)), Qt.AlignmentFlag.AlignVCenter, text)
            time = self._times.get(start)
            if time is not None:
                when = moment(time)[5:16]
                if x > frame_right or x + width + px(8) + metrics.horizontalAdvance(when) < frame_left - 8:
                    p.setPen(C("text3"))
                    p.drawText(QRectF(x + width + px(8), y, px(120), px(15)), Qt.AlignmentFlag.AlignVCenter, when)

    def _frame_label(self) -> tuple[float, str]:
        """Left edge and text of the label under the frame; far outside if there is no frame."""
        if self._frame[1] <= self._frame[0]:
            return -1e6, ""
        text = number(self._frame[0])
        width = QFontMetrics(mono(11, 600)).horizontalAdvance(text)
        x = self._x(self._frame[0])
        return min(max(float(px(SIDE)), x - width / 2), self.width() - px(SIDE) - width), text

    def _paint_frame(self, p: QPainter) -> None:
        start, end = self._frame
        if end <= start:
            return
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        x = self._x(start)
        width = max(5.0 * scale(), self._x(min(end, self._line.high)) - x)
        x = min(x, self.width() - px(SIDE) - width + 3)
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(C("accent", 0.14))
        p.drawRoundedRect(QRectF(x - 1, px(TOP) - 3, width + 2, px(BAND) + 6), 2, 2)
        label_x, text = self._frame_label()
        p.setFont(mono(11, 600))
        p.setPen(C("accent"))
        p.drawText(QPointF(label_x, px(TOP + BAND + 3) + px(15) * 0.75), text)

    def _forget(self) -> None:
        self._ground = self._marks = self._places = None
        self.update()
        self.lineMoved.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()
        self._places = None

    def _fit(self) -> None:
        super()._fit()
        self._forget()

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.offsetChosen.emit(self._offset_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.offsetChosen.emit(self._offset_at(event.position().x()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -0.01, Qt.Key.Key_Right: 0.01, Qt.Key.Key_PageUp: -0.1, Qt.Key.Key_PageDown: 0.1}
        key = Qt.Key(event.key())
        if key in steps:
            self.offsetChosen.emit(self._line.offset(min(1.0, max(0.0, self._line.share(self._frame[0]) + steps[key]))))
        elif key == Qt.Key.Key_Home:
            self.offsetChosen.emit(self._line.low)
        elif key == Qt.Key.Key_End:
            self.offsetChosen.emit(self._log_line.written)
        else:
            super().keyPressEvent(event)

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The pin under the point, else the damage, else the file. Without a point, the one at the frame."""
        line = self._line
        if line.high <= line.low:
            return None
        x = self._x(self._frame[0] if self._frame[1] > self._frame[0] else line.low) if point is None else point.x()
        offset = self._offset_at(x) if point is not None else max(self._frame[0], line.low)
        below = QPointF(x, px(TOP + BAND))
        near = [pin for pin in self._pins if abs(self._x(pin.offset) - x) < 5 * scale() and pin.text]
        if near:
            return pin_mark(min(near, key=lambda pin: (pin.finding is None, abs(self._x(pin.offset) - x)))), below
        broken = next((damage for damage in self._broken if damage.start <= offset < damage.end), None)
        if broken is not None:
            return broken_mark(broken), below
        file = line.file_at(offset)
        return (file_mark(file, offset), below) if file is not None else None

    def words_under(self, point: QPointF) -> str:
        return self.words_at(point.x())

    def words_at(self, x: float) -> str:
        """Describe the place at ``x``: file, offset, time, topics."""
        line = self._line
        if line.high <= line.low:
            return ""
        offset = self._offset_at(x)
        near = [pin for pin in self._pins if abs(self._x(pin.offset) - x) < 5 and pin.text]
        file = line.file_at(offset)
        words = [pin.text for pin in near[:3]] + [number(offset)]
        words += [damage.words for damage in self._broken if damage.start <= offset < damage.end][:2]
        if file is not None:
            words.append(tr("file {name}, {size}", name=file.name, size=size(file.end - file.start)))
        if offset > line.written:
            words.append(tr("zero tail: nothing was written here"))
        cached_share = next((share for start, end, share in self._cached if start <= offset < end), None)
        if cached_share is not None:
            words.append(tr("in memory {share:.0%}", share=cached_share))
        mix = next((m for m in self._mixes if m.start <= offset < m.end), None)
        if mix is not None:
            if mix.time is not None:
                words.append(full_moment(mix.time))
            words += [f"{topic} {part:.0%}" for topic, part in mix.shares[:8]]
            words.append(tr("sampled"))
        return "\n".join(words)


def paint_mixes(
    p: QPainter,
    mixes: Sequence[TopicMix],
    x_of: Callable[[int], float],
    top: int,
    height: int,
    colours: TopicColours,
) -> None:
    """Paint all pieces of one colour in one call; one call for each piece takes ten times as long. Edges are on whole
    pixels, or the background shows between neighbours.
    """
    order = {topic: n for n, topic in enumerate(colours.order)}
    ground: dict[bool, list[QRectF]] = {True: [], False: []}
    pieces: dict[str, list[QRectF]] = {}
    for mix in mixes:
        left_x = round(x_of(mix.start))
        width = max(round(x_of(mix.end)) - left_x, 1)
        ground[bool(mix.shares)].append(QRectF(left_x, top, width, height))
        y = float(top)
        for topic, part in sorted(mix.shares, key=lambda share: order.get(share[0], 99)):
            pieces.setdefault(topic, []).append(QRectF(left_x, y, width, part * height))
            y += part * height
    p.setPen(Qt.PenStyle.NoPen)
    for readable, boxes in ground.items():
        p.setBrush(C("pane" if readable else "sunken"))
        p.drawRects(boxes)
    for topic, boxes in pieces.items():
        color = colours.color(topic)
        if color is None:
            color = C("text3", 0.35)
        else:
            color.setAlphaF(0.7 if dark() else 0.78)
        p.setBrush(color)
        p.drawRects(boxes)
