"""The ruler: every position of a store on one line, at two scales. Above the line what the log itself does, below it
what is built from the log and what only the clock knows.

An overview of all files on top; below it a lens on the tail, joined to it by a wedge. Words on the band say what is
known of a stretch, and a stretch of which nothing is known says that.
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
from viewer.look.broken import Broken
from viewer.look.formats import size as size_text
from viewer.look.theme import C, dark, follow, ink, mono, over, px, scale, ui
from viewer.widgets.drawn_marks import Mark, broken_mark, place_mark
from viewer.widgets.flag_layout import (
    SMALL_GAP,
    FlagPlace,
    FlagWish,
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
    """A position: ``above`` the band what the log does, below it what is built from it or known by time; ``note``
    may be a time.
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
    """The way between two positions, with its words; ``above`` or below the band. ``short`` is its size alone, for a
    gap that is too small for an arrow.
    """

    start: int
    end: int
    words: str
    above: bool
    short: str = ""


@dataclass(frozen=True, slots=True)
class RulerView:
    """All that the ruler shows: ``files`` as (start, end, name), offsets in bytes of the log."""

    files: tuple[tuple[int, int, str], ...] = ()
    minimum: int = 0
    wrote: int = 0
    flags: tuple[RulerFlag, ...] = ()
    bands: tuple[RulerBand, ...] = ()
    gaps: tuple[RulerGap, ...] = ()
    pins: tuple[tuple[int, str], ...] = ()
    broken: tuple[Broken, ...] = ()

    def lens(self) -> tuple[int, int]:
        """From 1 MiB in front of the lowest position of interest to a tenth beyond what was written."""
        interest = [flag.offset for flag in self.flags] or [self.minimum]
        low = max(self.minimum, min(interest) - MIB)
        tail = max(self.wrote, *interest) - low
        if tail < 64:
            low = max(self.minimum, low - MIB)
            tail = max(64, self.wrote - low)
        return low, low + tail + max(1, tail // 10)


class Ruler(QWidget):
    """``offset_chosen(offset)`` on a double click or Enter on a flag.

    The wheel zooms, F fits, arrows walk the flags.
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
        """As high as the lowest flag asks for: a third level below the band needs more room."""
        levels = max([place.level for _, _, place in self._placed(above=False)], default=0)
        self.setFixedHeight(px(max(248, 240 + 20 * levels)))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def show_view(self, view: RulerView | None) -> None:
        """Draw these positions; a zoom by hand stays as long as it still shows the end."""
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
        """Back to the stretch that shows every position."""
        self._lens = None
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(900, self.minimumHeight())

    # ---- hands ---------------------------------------------------------------------------------------------------
    def wheelEvent(self, event: QWheelEvent) -> None:
        view = self._view
        if view is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()
            return
        low, high = self.lens()
        at = self._to_x().offset(event.position().x())
        factor = 0.8 if event.angleDelta().y() > 0 else 1.25
        first, last = self._whole()
        left = max(first, int(at - (at - low) * factor))
        right = min(last, int(at + (high - at) * factor))
        if right - left >= 64:
            self._lens = (left, right)
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
            at = order.index(self._flag) if self._flag in order else -1
            at = at + (1 if key == Qt.Key.Key_Right else -1)
            self._flag = order[min(max(at, 0), len(order) - 1)]
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
        """The position whose flag or tip is under the point, or the chosen one; else damage, else the bare place."""
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
        broken = next((one for one in view.broken if one.start <= offset < one.end), None)
        return (broken_mark(broken) if broken is not None else place_mark("rulerMark", "", offset, "")), point

    def _flag_mark(self, flag: RulerFlag) -> Mark:
        return place_mark("rulerMark", flag.name, flag.offset, f"{flag.name} {_figures(flag)}", "position")

    def _flag_at(self, point: QPointF) -> RulerFlag | None:
        y, z, high = 138 * scale(), scale(), BAND * scale()
        for above in (True, False):
            for flag, wish, place in self._placed(above=above):
                top = y - (54 + 20 * place.level) * z if above else y + high + (34 + 20 * place.level) * z
                side = point.y() < y + 7 if above else point.y() > y + high - 7
                on_stem = side and point.y() > 40 * z and abs(point.x() - wish.x) < 5 * z
                if on_stem or QRectF(place.left, top, wish.width, 18 * z).contains(point):
                    return flag
        return None

    # ---- painting ------------------------------------------------------------------------------------------------
    def _whole(self) -> tuple[int, int]:
        view = self._view or RulerView()
        starts = [view.minimum, *(f[0] for f in view.files[:1])]
        ends = [view.wrote, *(f[1] for f in view.files[-1:]), *(one.end for one in view.broken)]
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
        whole = Scale(*self._whole(), LEFT, self.width() - 2 * LEFT)
        top, high = 20 * z, 12 * z
        end = 0.0
        p.setFont(mono(11))
        for start, stop, name in view.files:
            left, right = whole.x(start), whole.x(stop)
            width = max(1.0, right - left - (2 if right - left > 6 else 0))
            p.fillRect(QRectF(left, top, width, high), C("sunken"))
            written = whole.x(min(stop, max(start, view.wrote)))
            p.fillRect(QRectF(left, top, max(0.0, min(written - left, width)), high), C("posLog", 0.7))
            wide = QFontMetrics(p.font()).horizontalAdvance(name)
            if left >= end and left + wide < self.width():
                p.setPen(C("text3"))
                p.drawText(QRectF(left, 2 * z, wide + 4, 16 * z), Qt.AlignmentFlag.AlignVCenter, name)
                end = left + wide + 12
        for one in view.broken:
            left = whole.x(one.start)
            broken_box(p, QRectF(left, top, max(2.0, whole.x(one.end) - left - 1), high), one.kind)
        for offset, kind in view.pins:
            x = whole.x(offset)
            p.setPen(QPen(C(kind), 2))
            p.drawLine(QPointF(x, top - 3), QPointF(x, top + high + 3))
        x = whole.x(view.minimum)
        p.setPen(QPen(C("posMin"), 2))
        p.drawLine(QPointF(x, top - 2), QPointF(x, top + 18 * z))
        p.setFont(ui(11, 600))
        p.drawText(QRectF(x + 6, top + 13 * z, 220 * z, 16 * z), Qt.AlignmentFlag.AlignVCenter, f"min {view.minimum:,}")

    def _paint_wedge(self, p: QPainter, y: float) -> None:
        z = scale()
        whole = Scale(*self._whole(), LEFT, self.width() - 2 * LEFT)
        low, high = self.lens()
        left = whole.x(low)
        lens = QRectF(left - 2, 17 * z, max(12.0, whole.x(high) - left + 4), 18 * z)
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
        to_x, high = self._to_x(), BAND * scale()
        low, end = self.lens()
        p.fillRect(QRectF(LEFT, y, self.width() - 2 * LEFT, high), C("sunken"))
        said: list[tuple[QRectF, QColor, str]] = []
        for band in self._view.bands:
            if band.end <= low or band.start >= end or band.end <= band.start:
                continue
            left, right = to_x.x(band.start), to_x.x(band.end)
            box = QRectF(left, y, max(1.0, right - left), high)
            fill = _band_color(band.kind)
            p.fillRect(box, fill)
            if band.kind == "pool":
                hatch(p, box, "pane", 0.5, 7)
            p.setFont(ui(12, 600))
            wide = QFontMetrics(p.font()).horizontalAdvance(band.words)
            holes = [(to_x.x(one.start), to_x.x(one.end)) for one in self._view.broken]
            box = free_part(box, holes)
            if wide < box.width() - 12:
                middle = QRectF(box.center().x() - wide / 2 - 4, y, wide + 8, high)
                said.append((middle, over(fill, C("sunken")), band.words))
        self._paint_broken(p, y, high)
        self._paint_file_edges(p, y, high)
        for box, ground, text in said:  # over the edges of files, which would cut the words
            p.fillRect(box, ground)
            p.setPen(ink(ground))
            p.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
        step = _tick(end - low)
        for n in range(-(-low // step), end // step + 1):
            x = to_x.x(n * step)
            p.setPen(QPen(C("line"), 1))
            p.drawLine(QPointF(x, y + high), QPointF(x, y + high + (6 if n % 2 == 0 else 3)))

    def _paint_broken(self, p: QPainter, y: float, high: float) -> None:
        """Nothing of it is on disk: hatched over the bands, with a word where it fits."""
        assert self._view is not None
        to_x = self._to_x()
        low, end = self.lens()
        for one in self._view.broken:
            if one.end <= low or one.start >= end:
                continue
            left, right = to_x.x(max(low, one.start)), to_x.x(min(end, one.end))
            box = QRectF(left, y, max(2.0, right - left), high)
            broken_box(p, box, one.kind)
            said = one.words.partition(" · ")[0]
            p.setFont(ui(12, 600))
            wide = QFontMetrics(p.font()).horizontalAdvance(said)
            if wide < box.width() - 20:
                p.fillRect(QRectF(box.center().x() - wide / 2 - 6, y + 3, wide + 12, high - 6), C("pane"))
                p.setPen(C("text2" if one.kind == "unread" else "error"))
                p.drawText(box, Qt.AlignmentFlag.AlignCenter, said)

    def _paint_file_edges(self, p: QPainter, y: float, high: float) -> None:
        assert self._view is not None
        low, end = self.lens()
        for start, _, _name in self._view.files:
            if low < start < end:
                p.fillRect(QRectF(self._to_x().x(start) - 1, y, 2, high), C("pane"))

    def _paint_gaps(self, p: QPainter, y: float) -> None:
        assert self._view is not None
        to_x, z = self._to_x(), scale()
        p.setFont(ui(12, 600))
        measure = QFontMetrics(p.font())
        for above in (True, False):
            level = y - 12 * z if above else y + (BAND + 17) * z
            shown = [gap for gap in self._view.gaps if gap.above == above and gap.end > gap.start]
            gaps = [(to_x.x(gap.start), to_x.x(gap.end), gap) for gap in shown]
            said = [g.short if g.short and right - left < SMALL_GAP else g.words for left, right, g in gaps]
            wishes = [(g[0], g[1], float(measure.horizontalAdvance(s))) for g, s in zip(gaps, said, strict=True)]
            for left, right, _ in wishes:
                if right - left >= SMALL_GAP:
                    _double_arrow(p, left + 3, right - 3, level)
            places = place_words(wishes, 4, self.width() - 4)
            for text, wish, at in zip(said, wishes, places, strict=True):
                box = QRectF(at, level - 9 * z, wish[2] + 4, 18 * z)
                if inside_gap(*wish):
                    p.fillRect(box.adjusted(-6, 0, 2, 0), C("pane"))
                p.setPen(C("text"))
                p.drawText(box, Qt.AlignmentFlag.AlignVCenter, text)

    def _placed(self, *, above: bool) -> list[tuple[RulerFlag, FlagWish, FlagPlace]]:
        """The flags of one side inside the lens, equal ones of a family shared, with their places."""
        if self._view is None:
            return []
        low, high = self.lens()
        own = [f for f in self._view.flags if f.above == above and low <= f.offset <= high]
        shared = []
        for timed in (False, True):
            family = [f for f in own if bool(f.note) == timed]
            notes = {f.offset: f.note for f in family}
            shared += [
                RulerFlag(name, offset, role, above, notes[offset])
                for name, offset, role in share_flags((f.name, f.offset, f.role) for f in family)
            ]
        wishes = [self._wish(flag) for flag in shared]
        places = place_flags(wishes, 4, self.width() - 4, 3 if above else 6)
        return list(zip(shared, wishes, places, strict=True))

    def _paint_flags(self, p: QPainter, y: float, *, above: bool) -> None:
        assert self._view is not None
        chosen = self._view.flags[self._flag].offset if 0 <= self._flag < len(self._view.flags) else None
        for flag, wish, place in sorted(self._placed(above=above), key=lambda one: -one[2].level):
            self._paint_flag(p, flag, wish, place, y, framed=flag.offset == chosen)

    def _wish(self, flag: RulerFlag) -> FlagWish:
        x = self._to_x().x(flag.offset)
        wide = QFontMetrics(ui(12, 600)).horizontalAdvance(flag.name)
        wide += QFontMetrics(mono(11)).horizontalAdvance(_figures(flag)) + 22
        return FlagWish(x, wide, 1 if x < self.width() * 0.45 else -1)

    def _paint_flag(
        self, p: QPainter, flag: RulerFlag, wish: FlagWish, place: FlagPlace, y: float, *, framed: bool
    ) -> None:
        z, high, color = scale(), BAND * scale(), C(flag.role)
        x = wish.x
        top = y - (54 + 20 * place.level) * z if flag.above else y + high + (34 + 20 * place.level) * z
        edge = y - 5 if flag.above else y + high + 5
        p.setPen(QPen(color, 2))
        p.drawLine(QPointF(x, top + 9 * z), QPointF(x, edge))
        tip, foot = (y, y - 7) if flag.above else (y + high, y + high + 7)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(color)
        p.drawPolygon(QPolygonF([QPointF(x - 5, foot), QPointF(x + 5, foot), QPointF(x, tip)]))
        box = QRectF(place.left, top, wish.width, 18 * z)
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
        low, high = self.lens()
        words = tr(
            "{span} shown · one tick {tick} · wheel zooms, F fits",
            span=size_text(high - low),
            tick=size_text(_tick(high - low)),
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
    """The step between ticks: a power of two that leaves at most 24 of them."""
    return next((step for step in _TICKS if span // step <= 24), _TICKS[-1])


def _figures(flag: RulerFlag) -> str:
    return f"{flag.offset:,}" + (f"  {flag.note}" if flag.note else "")


def _double_arrow(p: QPainter, left: float, right: float, y: float) -> None:
    p.setPen(QPen(C("text2"), 1.2))
    p.setBrush(Qt.BrushStyle.NoBrush)
    p.drawLine(QPointF(left, y), QPointF(right, y))
    for x, way in ((left, 1), (right, -1)):
        p.drawPolyline([QPointF(x + 5 * way, y - 4), QPointF(x, y), QPointF(x + 5 * way, y + 4)])
