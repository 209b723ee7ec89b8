"""A line cut into named parts: what stays, what is read again, what goes. Recovery and retention use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from viewer.look.theme import C, dark, ink, mono, over, px, scale, ui
from viewer.widgets.canvas import Boxes, MarkCanvas
from viewer.widgets.drawn_marks import place_mark, range_mark
from viewer.widgets.flag_layout import FlagPlace, FlagRequest, place_flags
from viewer.widgets.paint import broken_box, draw_flag, free_part, hatch
from viewer.widgets.record_menu import Found

MIN_SHARE = 0.012
LEVEL = 19
"""Px at 100 % from one level of flags to the next."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch: its share of the line (0..1), what becomes of it, and the words inside it where they fit.

    ``kind``: ``keep`` stays as it is, ``again`` is read and dispatched again, ``drop`` goes, ``gone`` goes by
    assumption, ``zero`` was never written; of a store that is alive ``disk`` is safe, ``cache`` in the page cache,
    ``pool`` in the transient pool; ``unread`` is on disk and was not looked at. ``start``, ``end``: its bytes in the
    log of the store that is open; None for a stretch of another store, or of none.
    """

    share: float
    kind: str
    words: str = ""
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class LineFlag:
    """A flag at ``at`` (0..1) in the colour of ``role``, for the ``offset`` of the log."""

    at: float
    words: str
    role: str
    offset: int | None = None


def shares(lengths: Sequence[int]) -> list[float]:
    """Return the shares of the line for stretches of these lengths in bytes. A stretch that would be too thin to see
    is widened; then the line is not to scale.
    """
    total = sum(lengths)
    if total <= 0:
        return [0.0 for _ in lengths]
    raw = [0.0 if length <= 0 else max(MIN_SHARE, length / total) for length in lengths]
    return [share / sum(raw) for share in raw]


def share_at(place: int, lengths: Sequence[int], widths: Sequence[float]) -> float:
    """Return where byte ``place`` of stretches of these ``lengths`` lies on a line that gives them these ``widths``."""
    share = 0.0
    for length, width in zip(lengths, widths, strict=True):
        if length > 0 and place > 0:
            share += width * min(place, length) / length
        place -= max(0, length)
    return share


class RecoveryLine(MarkCanvas):
    """Parts, flags above them, ticks with offsets below."""

    def __init__(self, name: str, title: str, lane: int = 20) -> None:
        super().__init__(name, title)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._lane, self._levels = lane, 1
        self._parts: tuple[Part, ...] = ()
        self._flags: tuple[LineFlag, ...] = ()
        self._ticks: tuple[tuple[float, str], ...] = ()
        self._broken: tuple[tuple[float, float, str], ...] = ()
        self._fit()

    def show_parts(
        self,
        parts: Sequence[Part],
        flags: Sequence[LineFlag] = (),
        ticks: Sequence[tuple[float, str]] = (),
        broken: Sequence[tuple[float, float, str]] = (),
    ) -> None:
        """Draw these parts; parts of share 0 are not drawn. ``broken``: (from, to, kind) of the missing, damaged or
        unread stretches that are hatched over the parts.
        """
        self._broken = tuple(broken)
        self._parts = tuple(part for part in parts if part.share > 0)
        self._flags, self._ticks = tuple(flags), tuple(ticks)
        self.setAccessibleDescription(
            "; ".join([p.words for p in self._parts if p.words] + [f.words for f in self._flags])
        )
        self._fit()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(600, self.minimumHeight())

    def _fit(self) -> None:
        self._levels = 1 + max((place.level for _, place in self._placed()), default=0)
        self.setFixedHeight(px(self._lane + (44 + LEVEL * (self._levels - 1) if self._flags else 22)))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the flags again: on a narrower line more of them touch."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def _boxes(self) -> list[tuple[Part, QRectF]]:
        top = (23 + LEVEL * (self._levels - 1) if self._flags else 2) * scale()
        x, width, boxes = 1.0, self.width() - 2.0, []
        for part in self._parts:
            boxes.append((part, QRectF(x, top, max(1.0, width * part.share - 1.5), self._lane * scale())))
            x += width * part.share
        return boxes

    def marks(self) -> Boxes:
        """The boxes of the parts, then those of the flags, which lie above them."""
        boxes = [
            (box, range_mark(part.kind, part.start, part.end, part.start, part.words)) for part, box in self._boxes()
        ]
        for flag, (box, _) in zip(self._flags, self._flag_boxes(), strict=True):
            if flag.offset is not None:
                boxes.append((box, place_mark("lineMark", flag.words, flag.offset, flag.words, "position")))
        return boxes

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The mark under the point. A part is clicked at that offset, by key at its beginning."""
        mark_and_place = super().mark_at(point)
        hit = [(part, box) for part, box in self._boxes() if point is not None and box.contains(point)]
        if mark_and_place is None or point is None or not hit:
            return mark_and_place
        part, box = hit[-1]
        if part.start is None or part.end is None:
            return mark_and_place
        share = (point.x() - box.left()) / max(box.width(), 1.0)
        offset = part.start + min(int(share * (part.end - part.start)), max(part.end - part.start - 1, 0))
        return range_mark(part.kind, part.start, part.end, offset, part.words), mark_and_place[1]

    def words_under(self, point: QPointF) -> str:
        """The words of the part or flag, which may not have fitted."""
        mark_and_place = self.mark_at(point)
        return mark_and_place[0].words if mark_and_place is not None else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        top = (23 + LEVEL * (self._levels - 1) if self._flags else 2) * scale()
        lane, width = self._lane * scale(), self.width() - 2.0
        for part, box in self._boxes():
            self._paint_part(p, part, box)
        for start_share, end_share, kind in self._broken:
            broken_box(
                p, QRectF(1 + width * start_share, top, max(2.0, width * (end_share - start_share) - 1.5), lane), kind
            )
        self._paint_ticks(p, top + lane, width)
        self._paint_flags(p, top + lane)
        self.paint_framed(p)

    def _paint_part(self, p: QPainter, part: Part, box: QRectF) -> None:
        fill = {
            "keep": C("posLog", 0.85 if dark() else 1),
            "again": C("posBuild", 0.75 if dark() else 1),
            "drop": C("errorFill"),
            "gone": C("pane"),
            "zero": C("sunken"),
            "disk": C("posLog3", 0.85 if dark() else 0.9),
            "cache": C("posLog", 0.62),
            "unread": C("posLog2", 0.42),
            "pool": C("posLog2", 0.42),
        }[part.kind]
        is_dropped = part.kind in ("drop", "gone")
        p.fillRect(box, fill)
        if part.kind == "pool":
            hatch(p, box, "pane", 0.5, 7)
        if is_dropped:
            hatch(p, box, "error")
            p.setPen(QPen(C("error"), 1, Qt.PenStyle.DashLine if part.kind == "gone" else Qt.PenStyle.SolidLine))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
        p.setFont(ui(11, 600))
        words = QFontMetrics(p.font()).horizontalAdvance(part.words)
        lane = self.width() - 2.0
        box = free_part(
            box, [(1 + lane * start_share, 1 + lane * end_share) for start_share, end_share, _ in self._broken]
        )
        if not part.words or words >= box.width() - 8:
            return
        if is_dropped:
            p.fillRect(QRectF(box.center().x() - words / 2 - 5, box.top() + 2, words + 10, box.height() - 4), C("pane"))
        p.setPen(C("error") if is_dropped else C("text2") if part.kind == "zero" else ink(over(fill, C("pane"))))
        p.drawText(box, Qt.AlignmentFlag.AlignCenter, part.words)

    def _paint_ticks(self, p: QPainter, bottom: float, width: float) -> None:
        p.setFont(mono(11))
        end = -100.0
        for share, words in self._ticks:
            x = 1 + width * share
            text_width = QFontMetrics(p.font()).horizontalAdvance(words)
            label_x = min(max(0.0, x - text_width / 2), width - text_width)
            if label_x < end + 8:
                continue
            end = label_x + text_width
            p.setPen(QPen(C("line"), 1))
            p.drawLine(int(x), int(bottom), int(x), int(bottom + 4))
            p.setPen(C("text3"))
            p.drawText(QRectF(label_x, bottom + 4, text_width + 2, 15 * scale()), Qt.AlignmentFlag.AlignCenter, words)

    def _placed(self) -> list[tuple[FlagRequest, FlagPlace]]:
        """Place the flags, on one level if none touch, else on two."""
        width = self.width() - 2.0
        requests = [
            FlagRequest(
                1 + width * flag.at,
                QFontMetrics(ui(11, 600)).horizontalAdvance(flag.words) + 12,
                1 if flag.at < 0.6 else -1,
            )
            for flag in self._flags
        ]
        return list(zip(requests, place_flags(requests, 0, width + 2, 2), strict=True))

    def _flag_boxes(self) -> list[tuple[QRectF, float]]:
        """The box of every flag, and the place of its stem."""
        return [
            (
                QRectF(place.left, 2 + LEVEL * (self._levels - 1 - place.level) * scale(), request.width, 17 * scale()),
                request.x,
            )
            for request, place in self._placed()
        ]

    def _paint_flags(self, p: QPainter, bottom: float) -> None:
        for flag, (box, x) in zip(self._flags, self._flag_boxes(), strict=True):
            draw_flag(p, x, box.top(), bottom + 3, flag.words, C(flag.role), box)
