"""Strip over the requests: requests a second by family, old to new; marks where responses were not 0."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent

from viewer.look.assets import tr, words
from viewer.look.formats import clock
from viewer.look.theme import C, mono, px
from viewer.requests.request_log import MINUTE, SecondCounts
from viewer.widgets.canvas import Canvas
from viewer.widgets.paint import mark

HEIGHT = 62
SIDE = 12
ROLES = ("posLog", "posBuild", "posTime", "disabled")
NAMES = (words("pulls"), words("sends"), words("offsets"), words("the rest"))
MAX_SECONDS = 3 * MINUTE
"""Maximum number of drawn seconds; a longer recording shows only its seconds with requests."""


class RateStrip(Canvas):
    """Emits ``chosen(ms)`` when the user clicks: the second at that place."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__("requests.line", tr("Requests a second"), HEIGHT, Qt.FocusPolicy.NoFocus)
        self._seconds: list[SecondCounts] = []

    def show_seconds(self, seconds: Sequence[SecondCounts], *, live: bool) -> None:
        """Show these seconds, the newest right; a second without requests between others is a gap."""
        shown = list(seconds)
        if shown and shown[-1].second - shown[0].second < MAX_SECONDS:
            first_second, by_second = shown[0].second, {second.second: second for second in shown}
            shown = [
                by_second.get(second_number) or SecondCounts(second_number)
                for second_number in range(first_second, shown[-1].second + 1)
            ]
        if live and len(shown) > 1:
            del shown[-1]  # the newest second is not over
        self._seconds = shown[-MAX_SECONDS:]
        self.update()

    def _width(self) -> float:
        room = self.width() - 2 * px(SIDE)
        return room / max(len(self._seconds), MINUTE)

    def second_at(self, point: QPointF) -> SecondCounts | None:
        """Return the second under a point, or None."""
        index = int((point.x() - px(SIDE)) // self._width())
        return self._seconds[index] if 0 <= index < len(self._seconds) else None

    def words_under(self, point: QPointF) -> str:
        """Describe one second."""
        second = self.second_at(point)
        if second is None:
            return ""
        parts = [f"{count:,} {tr(name)}" for count, name in zip(second.counts, NAMES, strict=True) if count]
        if second.not_ok:
            parts.append(tr("{n:,} not 0", n=second.not_ok))
        return f"{clock(second.second * 1000)}: {', '.join(parts) or tr('no requests')}"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to the rows of that second."""
        second = self.second_at(event.position())
        if second is not None:
            self.chosen.emit(second.second * 1000)

    def paintEvent(self, _event: QPaintEvent) -> None:
        p = QPainter(self)
        p.fillRect(self.rect(), C("pane"))
        top, bars_height = px(16), px(26)
        p.fillRect(QRectF(px(SIDE), top + bars_height, self.width() - 2 * px(SIDE), 1), C("hair"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        if not self._seconds:
            return
        bar_width, max_requests = (
            self._width(),
            max((sum(counted_second.counts) for counted_second in self._seconds), default=0) or 1,
        )
        for number, second in enumerate(self._seconds):
            x, y = px(SIDE) + number * bar_width, float(top + bars_height)
            for count, role in zip(second.counts, ROLES, strict=True):
                bar_height = count / max_requests * bars_height
                y -= bar_height
                p.fillRect(QRectF(x, y, max(bar_width - 1, 1), bar_height), C(role))
            if second.not_ok:
                mark(p, "warn", QPointF(x + bar_width / 2, px(9)), px(4))
        p.setFont(mono(11))
        p.setPen(C("text3"))
        line = QRectF(px(SIDE), top + bars_height + 2, self.width() - 2 * px(SIDE), px(16))
        p.drawText(line, Qt.AlignmentFlag.AlignLeft, clock(self._seconds[0].second * 1000)[:8])
        time_box = QRectF(px(SIDE), line.top(), len(self._seconds) * bar_width, line.height())
        if time_box.width() > px(160):
            p.drawText(time_box, Qt.AlignmentFlag.AlignRight, clock(self._seconds[-1].second * 1000)[:8])
        p.drawText(
            QRectF(0, 0, self.width() - px(SIDE), px(16)),
            Qt.AlignmentFlag.AlignRight,
            tr("{n:,} a second at most", n=max_requests),
        )
