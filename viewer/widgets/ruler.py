"""The ruler: every position of a store on one line, at two scales.

Above the line are the positions of the log itself, below it those that are built from the log or known only by
time. An overview of all files is on top. Below it a lens shows the tail; a wedge joins both. Words on the band
say what is known of a stretch, also when nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from viewer.look.assets import tr
from viewer.look.broken import UnreadableRange
from viewer.look.formats import size as size_text
from viewer.look.theme import C, dark, follow, ink, mono, over, px, scale, ui
from viewer.widgets.drawn_marks import DrawnMark, broken_mark, place_mark
from viewer.widgets.flag_layout import (
    SMALL_GAP,
    FlagPlace,
    FlagRequest,
    Scale,
    inside_gap,
    place_flags,
    place_words,
    share_flags,
)
from viewer.widgets.focus import FocusRing
from viewer.widgets.paint import broken_box, free_part, hatch
from viewer.widgets.record_menu import Found, MarkMenu

LEFT = 24
BAND = 26
MIB = 1 << 20
_TICKS = [1 << k for k in range(10, 48)]


@dataclass(frozen=True, slots=True)
class RulerFlag:
    """A position. ``above`` the band: positions of the log; below it: positions of structures built from it, or known
    by a time. ``note`` may be a time.
    """

    name: str
    offset: int
    role: str
    above: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class RulerBand:
    """A stretch [start, end) of the log. ``kind``: ``disk``, ``files`` (in the files, flushed or not), ``cache``,
    ``pool`` (hatched).
    """

    start: int
    end: int
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class RulerGap:
    """The distance between two positions, with its words; ``above`` or below the band. ``short`` is only its size,
    for a gap that is too small for an arrow.
    """

    start: int
    end: int
    words: str
    above: bool
    short: str = ""


@dataclass(frozen=True, slots=True)
class RulerView:
    """Everything that the ruler shows. ``files`` are (start, end, name), with offsets in the log."""

    files: tuple[tuple[int, int, str], ...] = ()
    minimum: int = 0
    wrote: int = 0
    flags: tuple[RulerFlag, ...] = ()
    bands: tuple[RulerBand, ...] = ()
    gaps: tuple[RulerGap, ...] = ()
    pins: tuple[tuple[int, str], ...] = ()
    broken: tuple[UnreadableRange, ...] = ()

    def lens(self) -> tuple[int, int]:
        """The stretch from 1 MiB before the lowest position of interest to a tenth beyond the written end."""
        interest = [flag.offset for flag in self.flags] or [self.minimum]
        start = max(self.minimum, min(interest) - MIB)
        tail = max(self.wrote, *interest) - start
        if tail < 64:
            start = max(self.minimum, start - MIB)
            tail = max(64, self.wrote - start)
        return start, start + tail + max(1, tail // 10)


class Ruler(QWidget):
    """Emits ``offset_chosen(offset)`` on a double click or Enter on a flag. The wheel zooms, F fits, arrows go
    through the flags.
    """

    offset_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("positions.ruler")
        self.setAccessibleName(tr("Positions on the log"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        FocusRing(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._view: RulerView | None = None
        self._lens: tuple[int, int] | None = None
        self._flag = -1
        self.menu = MarkMenu(self, self.mark_at)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        """Set the height that the lowest flag needs: a third level below the band takes more room."""
        levels = max([place.level for _, _, place in self._placed(above=False)], default=0)
        self.setFixedHeight(px(max(248, 240 + 20 * levels)))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def show_view(self, view: RulerView | None) -> None:
        """Show these positions. A zoom by the user stays while it still shows the end."""
        self._view = view
        if view is None:
            self._lens = None
        words = [] if view is None else [f"{f.name} {f.offset:,} {f.note}".strip() for f in view.flags]
        self.setAccessibleDescription("; ".join(words))
        self._fit()

    def lens(self) -> tuple[int, int]:
        """The stretch that the lens shows."""
        if self._lens is not None:
            return self._lens
        return self._view.lens() if self._view else (0, 1)

    def fit(self) -> None:
        """Show the stretch with every position again."""
        self._lens = None
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(900, self.minimumHeight())

    # ---- mouse and keys ------------------------------------------------------------------------------------------
    def wheelEvent(self, event: QWheelEvent) -> None:
        view = self._view
        if view is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        lens_start, lens_end = self.lens()
        offset = self._to_x().offset(event.position().x())
        factor = 0.8 if event.angleDelta().y() > 0 else 1.25
        log_start, log_end = self._whole()
        start = max(log_start, int(offset - (offset - lens_start) * factor))
        end = min(log_end, int(offset + (lens_end - offset) * factor))
        if end - start >= 64:
            self._lens = (start, end)
        self._fit()
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        view = self._view
        key = event.key()
        if view is None:
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_F:
            self.fit()
        elif key in (Qt.Key.Key_Right, Qt.Key.Key_Left) and view.flags:
            order = sorted(range(len(view.flags)), key=lambda n: view.flags[n].offset)
            index = order.index(self._flag) if self._flag in order else -1
            index = index + (1 if key == Qt.Key.Key_Right else -1)
            self._flag = order[min(max(index, 0), len(order) - 1)]
            flag = view.flags[self._flag]
            self.setAccessibleDescription(f"{flag.name} {flag.offset:,} {flag.note}".strip())
            self.update()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and 0 <= self._flag < len(view.flags):
            self.offset_chosen.emit(view.flags[self._flag].offset)
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._view is not None:
            self.offset_chosen.emit(self._offset_under(event))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._view is not None:
            offset = self._offset_under(event)
            file = next((name for start, end, name in self._view.files if start <= offset < end), "")
            QToolTip.showText(event.globalPosition().toPoint(), f"{offset:,}\n{file}".strip(), self)

    def _offset_under(self, event: QMouseEvent) -> int:
        return self._offset_at(event.position())

    def _offset_at(self, point: QPointF) -> int:
        if point.y() < 40 * scale():
            return Scale(*self._whole(), LEFT, self.width() - 2 * LEFT).offset(point.x())
        return self._to_x().offset(point.x())

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The position whose flag is under the point, else the damage, else the offset. Without a point, the chosen
        flag.
        """
        view = self._view
        if view is None:
            return None
        if point is None:
            if not view.flags:
                return None
            flag = view.flags[self._flag] if 0 <= self._flag < len(view.flags) else view.flags[0]
            return self._flag_mark(flag), QPointF(self._to_x().x(flag.offset), 138 * scale())
        hit = self._flag_at(point)
        if hit is not None:
            return self._flag_mark(hit), point
        offset = max(0, self._offset_at(point))
        broken = next((damage for damage in view.broken if damage.start <= offset < damage.end), None)
        return (broken_mark(broken) if broken is not None else place_mark("rulerMark", "", offset, "")), point

    def _flag_mark(self, flag: RulerFlag) -> DrawnMark:
        return place_mark("rulerMark", flag.name, flag.offset, f"{flag.name} {_figures(flag)}", "position")

    def _flag_at(self, point: QPointF) -> RulerFlag | None:
        y, z, band_height = 138 * scale(), scale(), BAND * scale()
        for above in (True, False):
            for flag, request, place in self._placed(above=above):
                top = y - (54 + 20 * place.level) * z if above else y + band_height + (34 + 20 * place.level) * z
                side = point.y() < y + 7 if above else point.y() > y + band_height - 7
                on_stem = side and point.y() > 40 * z and abs(point.x() - request.x) < 5 * z
                if on_stem or QRectF(place.left, top, request.width, 18 * z).contains(point):
                    return flag
        return None

    # ---- painting ------------------------------------------------------------------------------------------------
    def _whole(self) -> tuple[int, int]:
        view = self._view or RulerView()
        starts = [view.minimum, *(f[0] for f in view.files[:1])]
        ends = [view.wrote, *(f[1] for f in view.files[-1:]), *(damage.end for damage in view.broken)]
        return min(starts), max(*ends, min(starts) + 1)

    def _to_x(self) -> Scale:
        return Scale(*self.lens(), LEFT, self.width() - 2 * LEFT)

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        if self._view is None:
            return
        y = 138 * scale()
        self._paint_wedge(p, y)
        self._paint_overview(p)
        self._paint_bands(p, y)
        self._paint_gaps(p, y)
        self._paint_flags(p, y, above=True)
        self._paint_flags(p, y, above=False)
        self._paint_foot(p)

    def _paint_overview(self, p: QPainter) -> None:
        view, z = self._view, scale()
        assert view is not None
        overview = Scale(*self._whole(), LEFT, self.width() - 2 * LEFT)
        top, height = 20 * z, 12 * z
        end = 0.0
        p.setFont(mono(11))
        for start, stop, name in view.files:
            left_x, right_x = overview.x(start), overview.x(stop)
            width = max(1.0, right_x - left_x - (2 if right_x - left_x > 6 else 0))
            p.fillRect(QRectF(left_x, top, width, height), C("sunken"))
            written = overview.x(min(stop, max(start, view.wrote)))
            p.fillRect(QRectF(left_x, top, max(0.0, min(written - left_x, width)), height), C("posLog", 0.7))
            text_width = QFontMetrics(p.font()).horizontalAdvance(name)
            if left_x >= end and left_x + text_width < self.width():
                p.setPen(C("text3"))
                p.drawText(QRectF(left_x, 2 * z, text_width + 4, 16 * z), Qt.AlignmentFlag.AlignVCenter, name)
                end = left_x + text_width + 12
        for damage in view.broken:
            left_x = overview.x(damage.start)
            broken_box(p, QRectF(left_x, top, max(2.0, overview.x(damage.end) - left_x - 1), height), damage.kind)
        for offset, kind in view.pins:
            x = overview.x(offset)
            p.setPen(QPen(C(kind), 2))
            p.drawLine(QPointF(x, top - 3), QPointF(x, top + height + 3))
        x = overview.x(view.minimum)
        p.setPen(QPen(C("posMin"), 2))
        p.drawLine(QPointF(x, top - 2), QPointF(x, top + 18 * z))
        p.setFont(ui(11, 600))
        p.drawText(QRectF(x + 6, top + 13 * z, 220 * z, 16 * z), Qt.AlignmentFlag.AlignVCenter, f"min {view.minimum:,}")

    def _paint_wedge(self, p: QPainter, y: float) -> None:
        z = scale()
        overview = Scale(*self._whole(), LEFT, self.width() - 2 * LEFT)
        lens_start, lens_end = self.lens()
        left_x = overview.x(lens_start)
        lens = QRectF(left_x - 2, 17 * z, max(12.0, overview.x(lens_end) - left_x + 4), 18 * z)
        if lens.right() > self.width() - 8:
            lens.moveRight(self.width() - 8)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("accent", 0.10))
        foot = y - 62 * z
        p.drawPolygon(
            QPolygonF(
                [
                    QPointF(lens.left(), lens.bottom()),
                    QPointF(lens.right(), lens.bottom()),
                    QPointF(self.width() - LEFT, foot),
                    QPointF(LEFT, foot),
                ]
            )
        )
        p.setPen(QPen(C("accent"), 1.5))
        p.setBrush(Qt.BrushStyle.NoBrush)
        p.drawRoundedRect(lens, 2, 2)

    def _paint_bands(self, p: QPainter, y: float) -> None:
        assert self._view is not None
        to_x, height = self._to_x(), BAND * scale()
        start, end = self.lens()
        p.fillRect(QRectF(LEFT, y, self.width() - 2 * LEFT, height), C("sunken"))
        labels: list[tuple[QRectF, QColor, str]] = []
        for band in self._view.bands:
            if band.end <= start or band.start >= end or band.end <= band.start:
                continue
            left_x, right_x = to_x.x(band.start), to_x.x(band.end)
            box = QRectF(left_x, y, max(1.0, right_x - left_x), height)
            fill = _band_color(band.kind)
            p.fillRect(box, fill)
            if band.kind == "pool":
                hatch(p, box, "pane", 0.5, 7)
            p.setFont(ui(12, 600))
            text_width = QFontMetrics(p.font()).horizontalAdvance(band.words)
            holes = [(to_x.x(damage.start), to_x.x(damage.end)) for damage in self._view.broken]
            box = free_part(box, holes)
            if text_width < box.width() - 12:
                middle = QRectF(box.center().x() - text_width / 2 - 4, y, text_width + 8, height)
                labels.append((middle, over(fill, C("sunken")), band.words))
        self._paint_broken(p, y, height)
        self._paint_file_edges(p, y, height)
        for box, ground, text in labels:  # after the file edges, which would cut the words
            p.fillRect(box, ground)
            p.setPen(ink(ground))
            p.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
        step = _tick(end - start)
        for n in range(-(-start // step), end // step + 1):
            x = to_x.x(n * step)
            p.setPen(QPen(C("line"), 1))
            p.drawLine(QPointF(x, y + height), QPointF(x, y + height + (6 if n % 2 == 0 else 3)))

    def _paint_broken(self, p: QPainter, y: float, height: float) -> None:
        """Hatch the parts that are missing on disk over the bands, with a word if it fits."""
        assert self._view is not None
        to_x = self._to_x()
        start, end = self.lens()
        for damage in self._view.broken:
            if damage.end <= start or damage.start >= end:
                continue
            left_x, right_x = to_x.x(max(start, damage.start)), to_x.x(min(end, damage.end))
            box = QRectF(left_x, y, max(2.0, right_x - left_x), height)
            broken_box(p, box, damage.kind)
            word = damage.words.partition(" · ")[0]
            p.setFont(ui(12, 600))
            text_width = QFontMetrics(p.font()).horizontalAdvance(word)
            if text_width < box.width() - 20:
                p.fillRect(QRectF(box.center().x() - text_width / 2 - 6, y + 3, text_width + 12, height - 6), C("pane"))
                p.setPen(C("text2" if damage.kind == "unread" else "error"))
                p.drawText(box, Qt.AlignmentFlag.AlignCenter, word)

    def _paint_file_edges(self, p: QPainter, y: float, height: float) -> None:
        assert self._view is not None
        lens_start, lens_end = self.lens()
        for start, _, _name in self._view.files:
            if lens_start < start < lens_end:
                p.fillRect(QRectF(self._to_x().x(start) - 1, y, 2, height), C("pane"))

    def _paint_gaps(self, p: QPainter, y: float) -> None:
        assert self._view is not None
        to_x, z = self._to_x(), scale()
        p.setFont(ui(12, 600))
        measure = QFontMetrics(p.font())
        for above in (True, False):
            level = y - 12 * z if above else y + (BAND + 17) * z
            shown = [gap for gap in self._view.gaps if gap.above == above and gap.end > gap.start]
            gaps = [(to_x.x(gap.start), to_x.x(gap.end), gap) for gap in shown]
            texts = [g.short if g.short and end_x - start_x < SMALL_GAP else g.words for start_x, end_x, g in gaps]
            requests = [(g[0], g[1], float(measure.horizontalAdvance(s))) for g, s in zip(gaps, texts, strict=True)]
            for start_x, end_x, _ in requests:
                if end_x - start_x >= SMALL_GAP:
                    _double_arrow(p, start_x + 3, end_x - 3, level)
            places = place_words(requests, 4, self.width() - 4)
            for text, request, text_x in zip(texts, requests, places, strict=True):
                box = QRectF(text_x, level - 9 * z, request[2] + 4, 18 * z)
                if inside_gap(*request):
                    p.fillRect(box.adjusted(-6, 0, 2, 0), C("pane"))
                p.setPen(C("text"))
                p.drawText(box, Qt.AlignmentFlag.AlignVCenter, text)

    def _placed(self, *, above: bool) -> list[tuple[RulerFlag, FlagRequest, FlagPlace]]:
        """The flags of one side inside the lens with their places. Equal flags of one family are merged."""
        if self._view is None:
            return []
        lens_start, lens_end = self.lens()
        flags = [f for f in self._view.flags if f.above == above and lens_start <= f.offset <= lens_end]
        shared = []
        for timed in (False, True):
            family = [f for f in flags if bool(f.note) == timed]
            notes = {f.offset: f.note for f in family}
            shared += [
                RulerFlag(name, offset, role, above, notes[offset])
                for name, offset, role in share_flags((f.name, f.offset, f.role) for f in family)
            ]
        requests = [self._flag_request(flag) for flag in shared]
        places = place_flags(requests, 4, self.width() - 4, 3 if above else 6)
        return list(zip(shared, requests, places, strict=True))

    def _paint_flags(self, p: QPainter, y: float, *, above: bool) -> None:
        assert self._view is not None
        chosen = self._view.flags[self._flag].offset if 0 <= self._flag < len(self._view.flags) else None
        for flag, request, place in sorted(self._placed(above=above), key=lambda placed: -placed[2].level):
            self._paint_flag(p, flag, request, place, y, framed=flag.offset == chosen)

    def _flag_request(self, flag: RulerFlag) -> FlagRequest:
        x = self._to_x().x(flag.offset)
        wide = QFontMetrics(ui(12, 600)).horizontalAdvance(flag.name)
        wide += QFontMetrics(mono(11)).horizontalAdvance(_figures(flag)) + 22
        return FlagRequest(x, wide, 1 if x < self.width() * 0.45 else -1)

    def _paint_flag(
        self, p: QPainter, flag: RulerFlag, request: FlagRequest, place: FlagPlace, y: float, *, framed: bool
    ) -> None:
        z, height, color = scale(), BAND * scale(), C(flag.role)
        x = request.x
        top = y - (54 + 20 * place.level) * z if flag.above else y + height + (34 + 20 * place.level) * z
        edge = y - 5 if flag.above else y + height + 5
        p.setPen(QPen(color, 2))
        p.drawLine(QPointF(x, top + 9 * z), QPointF(x, edge))
        tip, foot = (y, y - 7) if flag.above else (y + height, y + height + 7)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(color)
        p.drawPolygon(QPolygonF([QPointF(x - 5, foot), QPointF(x + 5, foot), QPointF(x, tip)]))
        box = QRectF(place.left, top, request.width, 18 * z)
        p.setPen(QPen(C("accent") if framed else color, 2 if framed else 1))
        p.setBrush(C("raised"))
        p.drawRoundedRect(box, 3, 3)
        p.setFont(ui(12, 600))
        p.setPen(C("text"))  # the frame carries the colour: light blue and amber are too pale for words
        p.drawText(box.adjusted(7, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, flag.name)
        p.setFont(mono(11))
        p.setPen(C("text2"))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        p.drawText(box.adjusted(0, 0, -7, 0), right, _figures(flag))

    def _paint_foot(self, p: QPainter) -> None:
        lens_start, lens_end = self.lens()
        words = tr(
            "{span} shown · one tick {tick} · wheel zooms, F fits",
            span=size_text(lens_end - lens_start),
            tick=size_text(_tick(lens_end - lens_start)),
        )
        p.setFont(ui(11))
        p.setPen(C("text3"))
        box = QRectF(LEFT, self.height() - 20 * scale(), self.width() - 2 * LEFT, 16 * scale())
        p.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, words)


def _band_color(kind: str) -> QColor:
    if kind == "disk":
        return C("posLog3", 0.85 if dark() else 0.9)
    return {"files": C("posLog", 0.62), "cache": C("posLog", 0.62), "pool": C("posLog2", 0.42)}[kind]


def _tick(span: int) -> int:
    """The step between ticks: a power of two that gives at most 24 of them."""
    return next((step for step in _TICKS if span // step <= 24), _TICKS[-1])


def _figures(flag: RulerFlag) -> str:
    return f"{flag.offset:,}" + (f"  {flag.note}" if flag.note else "")


def _double_arrow(p: QPainter, start_x: float, end_x: float, y: float) -> None:
    p.setPen(QPen(C("text2"), 1.2))
    p.setBrush(Qt.BrushStyle.NoBrush)
    p.drawLine(QPointF(start_x, y), QPointF(end_x, y))
    for x, direction in ((start_x, 1), (end_x, -1)):
        p.drawPolyline([QPointF(x + 5 * direction, y - 4), QPointF(x, y), QPointF(x + 5 * direction, y + 4)])
