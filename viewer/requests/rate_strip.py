"""The Line over the requests: requests a second by family, old left, new right; pins where something was not done."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent

from viewer.look.assets import tr, words
from viewer.look.formats import clock
from viewer.look.theme import C, mono, px
from viewer.requests.request_log import MINUTE, Second
from viewer.widgets.canvas import Canvas
from viewer.widgets.paint import mark

HEIGHT = 62
SIDE = 12
ROLES = ("posLog", "posBuild", "posTime", "disabled")
NAMES = (words("pulls"), words("sends"), words("offsets"), words("the rest"))
SHOWN = 3 * MINUTE
"""Seconds that are drawn at most; of a longer recording those with requests are put side by side."""


class RateStrip(Canvas):
    """``chose(ms)`` where the user clicks: the second that lies there."""

    chose = Signal(object)

    def __init__(self) -> None:
        super().__init__("requests.line", tr("Requests a second"), HEIGHT, Qt.FocusPolicy.NoFocus)
        self._seconds: list[Second] = []

    def show_seconds(self, seconds: Sequence[Second], *, live: bool) -> None:
        """Show these seconds, the newest right; a second without requests between others is a gap."""
        found = list(seconds)
        if found and found[-1].at - found[0].at < SHOWN:
            first, known = found[0].at, {one.at: one for one in found}
            found = [known.get(at) or Second(at) for at in range(first, found[-1].at + 1)]
        if live and len(found) > 1:
            del found[-1]  # it is not over
        self._seconds = found[-SHOWN:]
        self.update()

    def _width(self) -> float:
        room = self.width() - 2 * px(SIDE)
        return room / max(len(self._seconds), MINUTE)

    def second_at(self, point: QPointF) -> Second | None:
        """The second under a point."""
        at = int((point.x() - px(SIDE)) // self._width())
        return self._seconds[at] if 0 <= at < len(self._seconds) else None

    def words_under(self, point: QPointF) -> str:
        """What one second had."""
        found = self.second_at(point)
        if found is None:
            return ""
        told = [f"{count:,} {tr(name)}" for count, name in zip(found.counts, NAMES, strict=True) if count]
        if found.not_ok:
            told.append(tr("{n:,} not 0", n=found.not_ok))
        return f"{clock(found.at * 1000)}: {', '.join(told) or tr('no requests')}"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to the rows of that second."""
        found = self.second_at(event.position())
        if found is not None:
            self.chose.emit(found.at * 1000)

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(self.rect(), C("pane"))
        top, high = px(16), px(26)
        p.fillRect(QRectF(px(SIDE), top + high, self.width() - 2 * px(SIDE), 1), C("hair"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        if not self._seconds:
            return
        wide, most = self._width(), max((sum(one.counts) for one in self._seconds), default=0) or 1
        for number, second in enumerate(self._seconds):
            x, y = px(SIDE) + number * wide, float(top + high)
            for count, role in zip(second.counts, ROLES, strict=True):
                tall = count / most * high
                y -= tall
                p.fillRect(QRectF(x, y, max(wide - 1, 1), tall), C(role))
            if second.not_ok:
                mark(p, "warn", QPointF(x + wide / 2, px(9)), px(4))
        p.setFont(mono(11))
        p.setPen(C("text3"))
        line = QRectF(px(SIDE), top + high + 2, self.width() - 2 * px(SIDE), px(16))
        p.drawText(line, Qt.AlignmentFlag.AlignLeft, clock(self._seconds[0].at * 1000)[:8])
        last = QRectF(px(SIDE), line.top(), len(self._seconds) * wide, line.height())
        if last.width() > px(160):
            p.drawText(last, Qt.AlignmentFlag.AlignRight, clock(self._seconds[-1].at * 1000)[:8])
        p.drawText(
            QRectF(0, 0, self.width() - px(SIDE), px(16)),
            Qt.AlignmentFlag.AlignRight,
            tr("{n:,} a second at most", n=most),
        )
