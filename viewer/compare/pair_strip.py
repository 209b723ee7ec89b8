"""Two logs on one scale, and between them a lane that shows where they differ. Old is left, new is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from viewer.compare.pair_columns import OTHER, OWN, SIGN_WORDS
from viewer.compare.pair_rows import DifferenceSpan, DifferenceSpans
from viewer.look.assets import tr
from viewer.look.formats import number
from viewer.look.theme import C, mono, px, ui
from viewer.look.topic_colours import colours_of
from viewer.widgets.canvas import Canvas
from viewer.widgets.line_strip import paint_mixes
from viewer.widgets.log_line import TopicMix
from viewer.widgets.paint import mark

HEIGHT = 96
SIDE_PX, NAME_PX = 12, 24
OWN_TOP, LANE_TOP, OTHER_TOP, LABEL_TOP, LEGEND_TOP = 10, 29, 43, 61, 77
BAND, LANE = 15, 10
MARK_PX = 8
"""Differences nearer than this share one mark."""
LANE_ROLES = {"own": "warn", "other": "warn", "unrelated": "warn", "head": "disabled"}
LEGEND = ("differs", "own", "other", "unrelated")
"""Signs that the legend explains if they are drawn."""


@dataclass(frozen=True, slots=True)
class BandExtent:
    """The parts of the rows' positions that a log covers, and its files as (start, end) for the gaps between them."""

    parts: tuple[tuple[int, int], ...] = ()
    edges: tuple[int, ...] = ()


@dataclass(slots=True)
class StripContent:
    """The data of the strip."""

    low: int = 0
    high: int = 0
    bands: dict[str, BandExtent] = field(default_factory=dict)
    fork: int | None = None
    """From here on rows are messages, not bytes."""
    spans: DifferenceSpans = field(default_factory=DifferenceSpans)
    drawn: Sequence[DifferenceSpan] = ()
    heads: Sequence[DifferenceSpan] = ()
    is_compared: bool = False


class PairStrip(Canvas):
    """Emits ``positionChosen(position)`` for a click, a drag or a key."""

    positionChosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "pair.line", tr("Both logs as lines"), HEIGHT, Qt.FocusPolicy.TabFocus, followed=True, parent=parent
        )
        self._content = StripContent()
        self._mixes: dict[str, list[TopicMix]] = {OWN: [], OTHER: []}
        self._frame = (0, 0)
        self._ground: QPixmap | None = None

    def minimumSizeHint(self) -> QSize:
        return QSize(120, px(HEIGHT))

    def show_content(self, content: StripContent) -> None:
        """Show other logs, or what comparing them gave."""
        if content.high <= content.low:
            self._mixes = {OWN: [], OTHER: []}
        self._content = content
        self._redraw()

    def add_mixes(self, side: str, mixes: Sequence[TopicMix]) -> None:
        """Draw samples of the topics of a log."""
        self._mixes[side] += mixes
        self._redraw()

    def set_frame(self, start: int, end: int) -> None:
        """Frame the rows on the screen."""
        if (start, end) != self._frame:
            self._frame = (start, end)
            self.setAccessibleDescription(
                tr("showing {low:,} to {high:,} of {first:,} to {last:,}", low=start, high=end, **self._range())
            )
            self.update()

    def _range(self) -> dict[str, int]:
        return {"first": self._content.low, "last": self._content.high}

    # ---- geometry ----------------------------------------------------------------------------------------------------

    def _left(self) -> int:
        return px(SIDE_PX + NAME_PX)

    def _x(self, position: int) -> float:
        content = self._content
        share = (position - content.low) / max(1, content.high - content.low)
        return self._left() + (self.width() - self._left() - px(SIDE_PX)) * min(1.0, max(0.0, share))

    def _position_at(self, x: float) -> int:
        content = self._content
        share = (x - self._left()) / max(1, self.width() - self._left() - px(SIDE_PX))
        return content.low + int((content.high - content.low) * min(1.0, max(0.0, share)))

    # ---- painting ----------------------------------------------------------------------------------------------------

    def _redraw(self) -> None:
        self._ground = None
        self.update()

    def _fit(self) -> None:
        super()._fit()
        self._redraw()

    def paintEvent(self, _event: QPaintEvent) -> None:
        ratio = self.devicePixelRatioF()
        if self._ground is None or self._ground.size() != self.size() * ratio:
            self._ground = QPixmap(self.size() * ratio)
            self._ground.setDevicePixelRatio(ratio)
            ground_painter = QPainter(self._ground)
            self._paint_ground(ground_painter)
            ground_painter.end()
        p = QPainter(self)
        p.drawPixmap(0, 0, self._ground)
        self._paint_frame(p)
        if self.hasFocus():
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(self.rect().adjusted(1, 1, -1, -2))

    def _paint_ground(self, p: QPainter) -> None:
        content = self._content
        p.fillRect(self.rect(), C("pane"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        for side, name, top in ((OWN, "A", OWN_TOP), (OTHER, "B", OTHER_TOP)):
            p.setFont(ui(12, 600))
            p.setPen(C("accent" if content.high > content.low else "disabled"))
            name_box = QRectF(px(SIDE_PX), px(top), px(NAME_PX), px(BAND))
            p.drawText(name_box, int(Qt.AlignmentFlag.AlignVCenter), name)
            track = QRectF(self._left(), px(top), self.width() - self._left() - px(SIDE_PX), px(BAND))
            p.fillRect(track, C("sunken"))
            if content.high > content.low:
                self._paint_band(p, side, top)
        if content.high > content.low:
            self._paint_lane(p)
            self._paint_labels(p)
            self._paint_legend(p)

    def _paint_band(self, p: QPainter, side: str, top: int) -> None:
        band = self._content.bands.get(side, BandExtent())
        for start, end in band.parts:
            p.fillRect(QRectF(self._x(start), px(top), max(1.0, self._x(end) - self._x(start)), px(BAND)), C("line"))
        fork = self._content.fork
        mixes = [mix for mix in self._mixes[side] if fork is None or mix.end <= fork]  # behind it rows are no bytes
        paint_mixes(p, mixes, self._x, px(top), px(BAND), colours_of(self))
        for edge in band.edges if len(band.edges) * 4 < self.width() else ():
            p.fillRect(QRectF(self._x(edge) - 1, px(top), 1, px(BAND)), C("pane"))

    def _paint_lane(self, p: QPainter) -> None:
        content = self._content
        middle = px(LANE_TOP) + px(LANE) / 2
        first_x, last_x = self._x(content.low), self._x(content.high)
        if content.is_compared:
            p.fillRect(QRectF(first_x, middle - 0.5, last_x - first_x, 1), C("line"))
        for span in content.heads:
            self._paint_span(p, span, "head")
        marks: list[float] = []
        for span in content.drawn:
            if span.sign in LANE_ROLES:
                self._paint_span(p, span, span.sign)
            elif not marks or self._x(span.start) - marks[-1] >= px(MARK_PX):
                marks.append(self._x(span.start))
        for x in marks:
            mark(p, "error", QPointF(x, middle), px(36) / 10)
        if content.fork is not None and content.low < content.fork < content.high:
            p.setPen(QPen(C("text3"), 1, Qt.PenStyle.DashLine))
            x = self._x(content.fork)
            p.drawLine(QPointF(x, px(OWN_TOP) - 3), QPointF(x, px(OTHER_TOP + BAND) + 3))

    def _paint_span(self, p: QPainter, span: DifferenceSpan, sign: str) -> None:
        left_x = self._x(span.start)
        width = max(float(px(3)), self._x(span.end) - left_x)
        part = {"own": (0.0, 0.5), "other": (0.5, 0.5)}.get(sign, (0.0, 1.0))
        top = px(LANE_TOP) + part[0] * px(LANE)
        p.fillRect(QRectF(left_x, top, width, part[1] * px(LANE)), C(LANE_ROLES[sign]))

    def _paint_labels(self, p: QPainter) -> None:
        content = self._content
        p.setFont(mono(11))
        p.setPen(C("text2"))
        metrics = QFontMetrics(p.font())
        next_free = 0.0
        for number_of_label in range(5):
            position = content.low + (content.high - content.low) * number_of_label // 4
            if content.fork is not None and position >= content.fork:
                break
            text = number(position)
            width = metrics.horizontalAdvance(text)
            x = min(self._x(position), self.width() - px(SIDE_PX) - width)
            if x >= next_free:
                p.drawText(QRectF(x, px(LABEL_TOP), width + 4, px(15)), int(Qt.AlignmentFlag.AlignVCenter), text)
                next_free = x + width + px(24)
        if content.fork is not None:
            text = tr("from here by message") if content.fork > content.low else tr("level by message")
            x = min(self._x(max(content.fork, content.low)), self.width() - px(180))
            if x >= next_free:
                p.setFont(ui(11))
                p.setPen(C("text3"))
                p.drawText(QRectF(x, px(LABEL_TOP), px(178), px(15)), int(Qt.AlignmentFlag.AlignVCenter), text)

    def _paint_legend(self, p: QPainter) -> None:
        content, x = self._content, float(self._left())
        p.setFont(ui(11))
        metrics = QFontMetrics(p.font())
        y = px(LEGEND_TOP)
        present = {span.sign for span in content.drawn}
        entries = [(sign, tr(SIGN_WORDS[sign])) for sign in LEGEND if sign in present]
        if content.heads:
            entries.append(("head", tr("one log begins later")))
        if not content.is_compared:
            entries = [("", tr("not compared yet"))]
        elif not entries:
            entries = [("same", tr("no message differs"))]
        for sign, text in entries:
            box = QRectF(x, y + px(3), px(12), px(7))
            if sign == "differs":
                mark(p, "error", QPointF(x + px(6), y + px(7)), px(36) / 10)
            elif sign in LANE_ROLES:
                half = QRectF(box.left(), box.top() + (box.height() / 2 if sign == "other" else 0), px(12), px(7) / 2)
                p.fillRect(half if sign in {"own", "other"} else box, C(LANE_ROLES[sign]))
            elif sign == "same":
                p.fillRect(QRectF(x, y + px(6), px(12), 1), C("text3"))
            p.setPen(C("text2"))
            p.setFont(ui(11))
            width = metrics.horizontalAdvance(text)
            p.drawText(QRectF(x + px(18), y, width + 4, px(14)), int(Qt.AlignmentFlag.AlignVCenter), text)
            x += px(18) + width + px(24)

    def _paint_frame(self, p: QPainter) -> None:
        start, end = self._frame
        if end <= start or self._content.high <= self._content.low:
            return
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        x = self._x(start)
        width = max(float(px(5)), self._x(end) - x)
        x = min(x, self.width() - px(SIDE_PX) - width + 3)
        p.setPen(QPen(C("accent"), 2))
        p.setBrush(C("accent", 0.14))
        p.drawRoundedRect(QRectF(x - 1, px(OWN_TOP) - 4, width + 2, px(OTHER_TOP + BAND - OWN_TOP) + 8), 2, 2)

    # ---- pointer and keys --------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._content.high > self._content.low:
            self.positionChosen.emit(self._near_span(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton and self._content.high > self._content.low:
            self.positionChosen.emit(self._position_at(event.position().x()))

    def _near_span(self, x: float) -> int:
        """Return the begin of a difference that is drawn under the pointer, else the position."""
        position = self._position_at(x)
        spans = self._content.spans
        for number_ in (spans.step(1, position - 1), spans.step(-1, position + 1)):
            if number_ is not None and abs(self._x(spans.spans[number_].start) - x) <= px(5):
                return spans.spans[number_].start
        return position

    def keyPressEvent(self, event: QKeyEvent) -> None:
        content = self._content
        length = content.high - content.low
        steps = {Qt.Key.Key_Left: -0.01, Qt.Key.Key_Right: 0.01, Qt.Key.Key_PageUp: -0.1, Qt.Key.Key_PageDown: 0.1}
        key = Qt.Key(event.key())
        if key in steps and length > 0:
            position = self._frame[0] + int(steps[key] * length)
            self.positionChosen.emit(min(content.high, max(content.low, position)))
        elif key == Qt.Key.Key_Home and length > 0:
            self.positionChosen.emit(content.low)
        elif key == Qt.Key.Key_End and length > 0:
            self.positionChosen.emit(content.high)
        else:
            super().keyPressEvent(event)

    def words_under(self, point: QPointF) -> str:
        content = self._content
        if content.high <= content.low:
            return ""
        position = self._near_span(point.x())
        lines = [number(position)] if content.fork is None or position < content.fork else []
        number_ = content.spans.number_at(position)
        if number_ is not None:
            lines.append(tr(SIGN_WORDS[content.spans.spans[number_].sign]))
        elif any(span.start <= position < span.end for span in content.heads):
            lines.append(tr("one log begins later"))
        elif content.is_compared:
            lines.append(tr(SIGN_WORDS["same"]))
        else:
            lines.append(tr("not compared yet"))
        return "\n".join(lines)
