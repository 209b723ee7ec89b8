"""A line cut into named parts: what stays, what is read again, what goes. Recovery and retention speak with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from viewer.theme import C, dark, ink, mono, over, px, scale, theme, ui
from viewer.widgets.flag_layout import FlagWish, place_flags
from viewer.widgets.paint import draw_flag, hatch

NEVER_BELOW = 0.012


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch: its share of the line (0..1), what becomes of it, and the words inside it where they fit.

    ``kind``: ``keep`` stays as it is, ``again`` is read and dispatched again, ``drop`` goes, ``gone`` goes by
    assumption, ``zero`` was never written; of a store that is alive ``disk`` is safe, ``cache`` in the page cache,
    ``pool`` in the transient pool; ``unread`` is on disk and was not looked at.
    """

    share: float
    kind: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class LineFlag:
    """A flag at ``at`` (0..1) in the colour of ``role``."""

    at: float
    words: str
    role: str


def shares(lengths: Sequence[int]) -> list[float]:
    """Shares of the line for stretches of these many bytes: none that is there becomes too thin to see, so the line is
    not to scale where one had to be widened.
    """
    total = sum(lengths)
    if total <= 0:
        return [0.0 for _ in lengths]
    raw = [0.0 if length <= 0 else max(NEVER_BELOW, length / total) for length in lengths]
    return [share / sum(raw) for share in raw]


class RecoveryLine(QWidget):
    """Parts, flags above them, ticks with offsets below."""

    def __init__(self, lane: int = 20) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._lane = lane
        self._parts: tuple[Part, ...] = ()
        self._flags: tuple[LineFlag, ...] = ()
        self._ticks: tuple[tuple[float, str], ...] = ()
        self._fit()
        theme.changed.connect(self._fit)

    def show_parts(
        self, parts: Sequence[Part], flags: Sequence[LineFlag] = (), ticks: Sequence[tuple[float, str]] = ()
    ) -> None:
        """Draw these instead; parts of share 0 are not drawn."""
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
        self.setFixedHeight(px(self._lane + (44 if self._flags else 22)))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        top = (23 if self._flags else 2) * scale()
        lane = self._lane * scale()
        x, width = 1.0, self.width() - 2.0
        for part in self._parts:
            self._paint_part(p, part, QRectF(x, top, max(1.0, width * part.share - 1.5), lane))
            x += width * part.share
        self._paint_ticks(p, top + lane, width)
        self._paint_flags(p, top + lane, width)

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
        going = part.kind in ("drop", "gone")
        p.fillRect(box, fill)
        if part.kind == "pool":
            hatch(p, box, "pane", 0.5, 7)
        if going:
            hatch(p, box, "error")
            p.setPen(QPen(C("error"), 1, Qt.PenStyle.DashLine if part.kind == "gone" else Qt.PenStyle.SolidLine))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
        p.setFont(ui(11, 600))
        words = QFontMetrics(p.font()).horizontalAdvance(part.words)
        if not part.words or words >= box.width() - 8:
            return
        if going:
            p.fillRect(QRectF(box.center().x() - words / 2 - 5, box.top() + 2, words + 10, box.height() - 4), C("pane"))
        p.setPen(C("error") if going else C("text2") if part.kind == "zero" else ink(over(fill, C("pane"))))
        p.drawText(box, Qt.AlignmentFlag.AlignCenter, part.words)

    def _paint_ticks(self, p: QPainter, bottom: float, width: float) -> None:
        p.setFont(mono(11))
        end = -100.0
        for at, words in self._ticks:
            x = 1 + width * at
            wide = QFontMetrics(p.font()).horizontalAdvance(words)
            left = min(max(0.0, x - wide / 2), width - wide)
            if left < end + 8:
                continue
            end = left + wide
            p.setPen(QPen(C("line"), 1))
            p.drawLine(int(x), int(bottom), int(x), int(bottom + 4))
            p.setPen(C("text3"))
            p.drawText(QRectF(left, bottom + 4, wide + 2, 15 * scale()), Qt.AlignmentFlag.AlignCenter, words)

    def _paint_flags(self, p: QPainter, bottom: float, width: float) -> None:
        wishes = [
            FlagWish(
                1 + width * flag.at,
                QFontMetrics(ui(11, 600)).horizontalAdvance(flag.words) + 12,
                1 if flag.at < 0.6 else -1,
            )
            for flag in self._flags
        ]
        for flag, wish, place in zip(self._flags, wishes, place_flags(wishes, 0, width + 2, 1), strict=True):
            draw_flag(
                p, wish.x, 2, bottom + 3, flag.words, C(flag.role), QRectF(place.left, 2, wish.width, 17 * scale())
            )
