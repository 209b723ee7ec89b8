"""The strip of bars over store time: stacked by topic, with the time from born to stored as two lines.

Dragging chooses a range, the wheel zooms, a click leads to the first message of a bar. Keys and a menu do the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QGuiApplication,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QMenu

from viewer.look.assets import tr, words
from viewer.look.formats import span
from viewer.look.theme import C, dark, mono, px, theme, ui
from viewer.look.topic_colours import colours_of
from viewer.pane.histogram_model import ZOOM, Bar, HistogramModel, tick_words
from viewer.widgets.canvas import Canvas
from viewer.widgets.record_menu import MenuOpener

HEIGHT = 92
SIDE = 12
TOP, FOOT = 18, 16
DRAG_PX = 4
TICKS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000),
    *(1_800_000, 3_600_000, 2 * 3_600_000, 6 * 3_600_000, 12 * 3_600_000, 86_400_000, 7 * 86_400_000),
    *(28 * 86_400_000, 364 * 86_400_000),
)
LINES = (("p50", "text2"), ("p99", "accent"))


class TimeHistogram(Canvas):
    """Draws a :class:`HistogramModel`.

    Emits ``rangeBrushed(begin, end)`` in ms, ``offsetChosen(offset)`` of the first message of a bar, ``moved()`` when
    another part of the time is shown, ``undoRequested()`` for Esc without a range, ``fillRequested()`` for Enter or a
    click without bars, and ``shown()``.
    """

    rangeBrushed = Signal(object, object)
    offsetChosen = Signal(object)
    moved = Signal()
    undoRequested = Signal()
    fillRequested = Signal()
    shown = Signal()
    hidden = Signal()

    first_words = words("Go to its first message")
    filter_words = words("Filter by the time of this bar")
    has_bytes = True
    """True if the bars can show bytes, too."""

    def __init__(self, name: str, model: HistogramModel | None = None, height: int = HEIGHT) -> None:
        super().__init__(name, tr("Time histogram"), height, Qt.FocusPolicy.StrongFocus, followed=False)
        self.model = model if model is not None else HistogramModel()
        self._pressed: QPointF | None = None
        self._is_dragged = False
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setMouseTracking(True)
        self.menu = MenuOpener(self, self._menu_at)
        self._moved_timer = QTimer(self, singleShot=True, interval=150)
        self._moved_timer.timeout.connect(self.moved)

    def look_again(self) -> None:
        """The model has changed."""
        self.setAccessibleDescription(self.model.summary())
        self.update()

    def color_of(self, topic: str) -> QColor:
        """The colour of a part of the bars."""
        color = colours_of(self).color(topic)
        if color is None:
            return C("text3", 0.45)
        if not theme.contrast:
            color.setAlphaF(0.7 if dark() else 0.8)
        return color

    def name_of(self, topic: str) -> str:
        """The name of a part of the bars in the legend."""
        return topic or tr("other topics")

    # -- places

    @property
    def _room(self) -> QRectF:
        return QRectF(px(SIDE), px(TOP), max(self.width() - 2 * px(SIDE), 1), self.height() - px(TOP) - px(FOOT))

    def x_of(self, ms: float) -> float:
        """Return where a time is drawn."""
        room, model = self._room, self.model
        return room.left() + (ms - model.begin) / max(model.end - model.begin, 1) * room.width()

    def time_at(self, x: float) -> float:
        """Return the time that is drawn at ``x``, within the time that is shown."""
        room, model = self._room, self.model
        share = min(max((x - room.left()) / room.width(), 0.0), 1.0)
        return model.begin + share * (model.end - model.begin)

    def words_under(self, point: QPointF) -> str:
        bar = self._bar_under(point.x())
        return self.model.bar_words(bar) if bar is not None else self.model.head_words()

    def _bar_under(self, x: float) -> Bar | None:
        """The bar under ``x``, or the nearest one that is as near as two pixels: thin bars can be hit."""
        for shift in (0, -1, 1, -2, 2):
            bar = self.model.bar_at(self.time_at(x + shift))
            if bar is not None:
                return bar
        return None

    # -- painting

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(self.rect(), C("pane"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        room, bars = self._room, self.model.bars()
        p.fillRect(QRectF(room.left(), room.bottom(), room.width(), 1), C("hair"))
        self._paint_head(p, bars)
        if bars:
            self._paint_bars(p, room, bars)
            self._paint_ticks(p, room)
            self._paint_lines(p, room, bars)
            self._paint_brush(p, room)
        elif self.model.words:
            p.setFont(ui(12))
            p.setPen(C("text3"))
            p.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), self.model.words)
        if self.hasFocus():
            self._paint_focus(p, room)

    def _paint_head(self, p: QPainter, bars: Sequence[Bar]) -> None:
        p.setFont(ui(11))
        metrics = QFontMetrics(p.font())
        x, y, height = float(px(SIDE)), 0, px(TOP)
        p.setPen(C("text2"))
        head = self.model.head_words()
        p.drawText(QRectF(x, y, self.width(), height), int(Qt.AlignmentFlag.AlignVCenter), head)
        x += metrics.horizontalAdvance(head) + px(14)
        right = self.width() - px(SIDE)
        notes = self.model.notes()
        if self.model.words and bars:
            notes.insert(0, self.model.words)
        if notes:
            text = metrics.elidedText(" · ".join(notes), Qt.TextElideMode.ElideRight, int(max((right - x) * 0.6, 1)))
            width = metrics.horizontalAdvance(text)
            p.setPen(C("warn") if self.model.notes() else C("text3"))
            align = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
            p.drawText(QRectF(right - width - 1, y, width + 1, height), align, text)
            right -= width + px(14)
        if bars:
            self._paint_legend(p, metrics, x, right)

    def _paint_legend(self, p: QPainter, metrics: QFontMetrics, x: float, right: float) -> None:
        """Draw the lines' names, then as many topics as have room."""
        height = px(TOP)
        has_lines = any(value >= 0 for value in self.model.shown.p50)
        entries = [(name, C(role), True) for name, role in LINES] if has_lines else []
        entries += [(self.name_of(topic), self.color_of(topic), False) for topic in self.model.shown.topics]
        for name, color, is_line in entries:
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, px(150))
            width = px(12) + metrics.horizontalAdvance(text)
            if x + width > right:
                return
            swatch = QRectF(x, height / 2 - (1 if is_line else px(4)), px(8), 2 if is_line else px(8))
            p.fillRect(swatch, color)
            p.setPen(C("text3"))
            p.drawText(QRectF(x + px(12), 0, width, height), int(Qt.AlignmentFlag.AlignVCenter), text)
            x += width + px(10)

    def _paint_bars(self, p: QPainter, room: QRectF, bars: Sequence[Bar]) -> None:
        highest = max((self.model.value(bar) for bar in bars), default=0) or 1
        gap = 1 if self.x_of(bars[0].end) - self.x_of(bars[0].begin) > px(5) else 0
        colors = {topic: self.color_of(topic) for topic in self.model.shown.topics}
        order = {topic: number for number, topic in enumerate(self.model.shown.topics)}
        for bar in bars:
            left, right = max(self.x_of(bar.begin), room.left()), min(self.x_of(bar.end) - gap, room.right())
            y, width = room.bottom(), max(right - left, 1.0)
            for topic, messages, byte_count in sorted(bar.parts, key=lambda part: order[part[0]]):
                part_height = (byte_count if self.model.shows_bytes else messages) / highest * room.height()
                y -= part_height
                p.fillRect(QRectF(left, y, width, part_height), colors[topic])
            total = room.bottom() - y
            if total < 1:  # a bar with few messages is no bar without any
                p.fillRect(QRectF(left, room.bottom() - 1, width, 1), C("text3"))

    def _paint_lines(self, p: QPainter, room: QRectF, bars: Sequence[Bar]) -> None:
        """Draw p50 and p99 over the bars, on a logarithmic scale of their own, whose top is at the right."""
        slowest = max((bar.p99 for bar in bars), default=-1)
        if slowest < 0:
            return
        top = math.log1p(max(slowest, 10))
        p.save()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setBrush(Qt.BrushStyle.NoBrush)
        for name, pen in (
            *((name, QPen(C("pane", 0.75), 3.4)) for name, _ in LINES),
            *((name, QPen(C(role), 1.4)) for name, role in LINES),
        ):
            p.setPen(pen)
            points: list[QPointF] = []
            for bar in [*bars, None]:
                value = getattr(bar, name) if bar is not None else -1
                is_next = bool(points) and bar is not None and self.x_of(bar.begin) - points[-1].x() <= px(2)
                if points and not (is_next and value >= 0):
                    p.drawPolyline(QPolygonF(points))
                    points = []
                if bar is not None and value >= 0:
                    y = room.bottom() - math.log1p(value) / top * (room.height() - 2) - 1
                    ends = max(self.x_of(bar.begin), room.left()), min(self.x_of(bar.end), room.right())
                    points += [QPointF(ends[0], y), QPointF(ends[1], y)]
        p.restore()
        p.setFont(mono(10))
        slowest_words = span(max(slowest, 10))
        width = QFontMetrics(p.font()).horizontalAdvance(slowest_words)
        box = QRectF(room.right() - width - px(4), room.top(), width + px(4), px(13))
        p.fillRect(box, C("pane", 0.8))
        p.setPen(C("accent"))
        p.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), slowest_words)

    def _paint_ticks(self, p: QPainter, room: QRectF) -> None:
        p.setFont(mono(10))
        metrics = QFontMetrics(p.font())
        length = self.model.end - self.model.begin
        label = metrics.horizontalAdvance("2026-11-30") + px(16)
        step = next((step for step in TICKS if step / length * room.width() >= label), TICKS[-1])
        shift = _zone_shift(self.model.begin)
        tick = -(-(self.model.begin + shift) // step) * step - shift
        p.setPen(C("text3"))
        free = room.left() - 1
        while tick < self.model.end and length / step < 1000:
            x, text = self.x_of(tick), tick_words(tick, step)
            width = metrics.horizontalAdvance(text)
            left = min(max(x - width / 2, room.left()), room.right() - width)
            if left > free:
                p.fillRect(QRectF(x, room.bottom(), 1, px(3)), C("text3"))
                p.drawText(QRectF(left, room.bottom() + px(2), width + 1, px(13)), 0, text)
                free = left + width + px(8)
            tick += step

    def _paint_brush(self, p: QPainter, room: QRectF) -> None:
        brush = self.model.brush
        if brush is None:
            return
        left, right = (min(max(self.x_of(ms), room.left()), room.right()) for ms in brush)
        box = QRectF(left, room.top(), max(right - left, 1), room.height())
        p.fillRect(box, C("accent", 0.18))
        p.setPen(QPen(C("accent"), 1))
        p.drawLine(box.topLeft(), box.bottomLeft())
        p.drawLine(box.topRight(), box.bottomRight())

    def _paint_focus(self, p: QPainter, room: QRectF) -> None:
        bar = self.framed_bar()
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(Qt.BrushStyle.NoBrush)
        if bar is None:
            p.drawRect(QRectF(self.rect()).adjusted(1, 1, -1, -1))
            return
        left = max(self.x_of(bar.begin), room.left())
        right = min(self.x_of(bar.end), room.right())
        p.drawRect(QRectF(left - 1, room.top(), max(right - left, 2) + 2, room.height()))

    # -- pointer

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if not self.model.overview.starts:
            self.fillRequested.emit()
        elif event.position().y() < px(TOP):
            self.set_bytes(not self.model.shows_bytes)
        else:
            self._pressed, self._is_dragged = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            return
        x = event.position().x()
        if not self._is_dragged and abs(x - self._pressed.x()) < DRAG_PX:
            return
        self._is_dragged = True
        times = sorted((self.time_at(self._pressed.x()), self.time_at(x)))
        self.model.brush = math.floor(times[0]), max(math.ceil(times[1]), math.floor(times[0]) + 1)
        self.look_again()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None or event.button() != Qt.MouseButton.LeftButton:
            return
        pressed, self._pressed = self._pressed, None
        if self._is_dragged:
            self._filter_by(self.model.brush)
        else:
            self.model.brush = None
            bar = self._bar_under(pressed.x())
            if bar is not None:
                self.model.framed = bar.begin
                self.offsetChosen.emit(bar.first)
            self.look_again()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and event.position().y() >= px(TOP):
            self.show_all()

    def show_all(self) -> None:
        """Show the whole time."""
        self.model.show_all()
        self._after_move()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom; with Shift, or over a wheel that goes sideways, move."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier or not self.model.overview.starts:
            event.ignore()
            return
        steps, sideways = event.angleDelta().y() / 120, event.angleDelta().x() / 120
        if sideways or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.model.pan(-round((sideways or steps) * (self.model.end - self.model.begin) / 10))
        else:
            self.model.zoom(ZOOM**-steps, self.time_at(event.position().x()))
        event.accept()
        self._after_move()

    def _after_move(self) -> None:
        self.look_again()
        self._moved_timer.start()

    # -- menu

    def _menu_at(self, point: QPointF | None) -> tuple[QMenu, QPointF] | None:
        """Return the menu of the bar under ``point``, or of the framed bar, and where it opens."""
        model = self.model
        if not model.overview.starts:
            return None
        if point is not None and (bar := self._bar_under(point.x())) is not None:
            model.framed = bar.begin
            self.look_again()
        bar = self.framed_bar()
        place = point if point is not None else QPointF(self.x_of(bar.begin) if bar else px(SIDE), px(TOP))
        return self.menu_of(bar), place

    def framed_bar(self) -> Bar | None:
        """Return the bar that the keys or the menu have reached."""
        return self.model.bar_at(self.model.framed) if self.model.framed is not None else None

    def menu_of(self, bar: Bar | None) -> QMenu:
        """Build the menu of a bar, or of the strip between the bars."""
        model = self.model
        menu = QMenu(self)
        menu.setObjectName(f"{self.objectName()}.menu")
        chosen = model.brush or ((bar.begin, bar.end) if bar is not None else None)
        name = tr("Filter by the chosen range") if model.brush is not None else tr(self.filter_words)
        menu.addAction(name, lambda: self._filter_by(chosen)).setEnabled(chosen is not None)
        first = menu.addAction(tr(self.first_words), lambda: bar and self.offsetChosen.emit(bar.first))
        first.setEnabled(bar is not None)
        menu.addAction(tr("Take the last range back"), self.undoRequested.emit)
        menu.addSeparator()
        menu.addAction(tr("Zoom in"), lambda: self._zoom(1 / ZOOM))
        menu.addAction(tr("Zoom out"), lambda: self._zoom(ZOOM)).setEnabled(model.is_zoomed)
        menu.addAction(tr("Show the whole time"), self.show_all).setEnabled(model.is_zoomed)
        menu.addSeparator()
        if self.has_bytes:
            bytes_action = menu.addAction(tr("Bytes instead of messages"))
            bytes_action.setCheckable(True)
            bytes_action.setChecked(model.shows_bytes)
            bytes_action.toggled.connect(self.set_bytes)
            table = tr("Copy the bars as a table")
            menu.addAction(table, lambda: QGuiApplication.clipboard().setText(model.markdown()))
        return menu

    def _filter_by(self, part: tuple[int, int] | None) -> None:
        self.model.brush = None
        self.look_again()
        if part is not None:
            self.rangeBrushed.emit(*part)

    def _zoom(self, factor: float) -> None:
        model = self.model
        model.zoom(factor, model.framed if model.framed is not None else (model.begin + model.end) / 2)
        self._after_move()

    # -- keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        model, key = self.model, event.key()
        is_shifted = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        begin_end = model.begin, model.end
        centre = model.framed if model.framed is not None else (model.begin + model.end) / 2
        if key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            (model.brush_to if is_shifted else model.step)(1 if key == Qt.Key.Key_Right else -1)
            if not is_shifted:
                model.brush = None
        elif key in {Qt.Key.Key_Plus, Qt.Key.Key_Equal}:
            model.zoom(1 / ZOOM, centre)
        elif key in {Qt.Key.Key_Minus, Qt.Key.Key_Underscore}:
            model.zoom(ZOOM, centre)
        elif key == Qt.Key.Key_0:
            model.show_all()
        elif key in {Qt.Key.Key_Home, Qt.Key.Key_End}:
            model.frame_end(last=key == Qt.Key.Key_End)
        elif key == Qt.Key.Key_Space:
            self.set_bytes(not model.shows_bytes)
        elif key == Qt.Key.Key_Escape and model.brush is not None:
            model.brush = None
        elif key == Qt.Key.Key_Escape:
            self.undoRequested.emit()
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._enter(goes_there=is_shifted)
        else:
            super().keyPressEvent(event)
            return
        self.look_again()
        if (model.begin, model.end) != begin_end:
            self._moved_timer.start()

    def _enter(self, *, goes_there: bool) -> None:
        """Filter by the chosen range or the framed bar, or go to the first message of that bar."""
        bar = self.framed_bar()
        if not self.model.overview.starts:
            self.fillRequested.emit()
        elif goes_there and bar is not None:
            self.offsetChosen.emit(bar.first)
        elif self.model.brush is not None or bar is not None:
            self._filter_by(self.model.brush or ((bar.begin, bar.end) if bar is not None else None))

    def set_bytes(self, on: bool) -> None:
        """Make the bars as high as their bytes, or as their number of messages."""
        self.model.shows_bytes = on and self.has_bytes
        self.look_again()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.hidden.emit()


def _zone_shift(ms: int) -> int:
    """Return how far the zone that is shown is from UTC (ms), so that ticks are at full hours of it."""
    from viewer.look.formats import zone_text

    try:
        text = zone_text(ms)
    except (ValueError, OverflowError, OSError):
        return 0
    hours, _, minutes = text[1:].partition(":")
    if not hours.isdigit() or not minutes[:2].isdigit():
        return 0
    return (int(hours) * 60 + int(minutes[:2])) * 60_000 * (-1 if text[0] in "-−" else 1)
