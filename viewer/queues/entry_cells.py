"""The entries of a queue as cells with their verdicts, and the bytes of one entry painted field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from viewer.look.assets import tr
from viewer.look.theme import C, follow, hex_fill, mono, px, scale, ui
from viewer.widgets.canvas import Boxes, MarkCanvas
from viewer.widgets.drawn_marks import DrawnMark, Unit, byte_mark, entry_mark
from viewer.widgets.focus import FocusRing
from viewer.widgets.paint import mark
from viewer.widgets.record_menu import Found, MarkMenu

ROWS = 3
PER_ROW = 32
MAX_ROW_BYTES = 20
BYTE_WIDTH = 16
"""Px at 100 % that a byte in hex needs at least."""
VERDICTS = {  # verdict: shape, fill, words
    "ok": ("ok", "okFill", "ok"),
    "missing": ("error", "errorFill", "missing"),
    "wrongTopic": ("error", "errorFill", "wrong topic"),
    "wrongQueue": ("error", "errorFill", "wrong queue"),
    "gap": ("error", "errorFill", "no file"),
    "noRow": ("error", "errorFill", "no row"),
    "wrongQueueOffset": ("error", "errorFill", "wrong queue offset"),
    "wrongSize": ("error", "errorFill", "wrong size"),
    "wrongTag": ("error", "errorFill", "wrong tag"),
    "belowMinOffset": ("out", "sunken", "below min offset"),
    "moved": ("note", "sunken", "in tiered storage"),
    "prefilled": ("chat", "sunken", "pre-filled"),
    "empty": ("out", "pane", "empty"),
    "unread": ("unread", "sunken", "unit cannot be read"),
}


def words_of(verdict: str | None) -> str:
    """A verdict in words, in the language of the window; "…" while it is not known."""
    return tr(VERDICTS[verdict][2]) if verdict in VERDICTS else "…"


class EntryCells(QWidget):
    """Three rows of cells around the chosen entry. ``entry_chosen(queue offset)`` on a click and on arrow keys."""

    entry_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("queue.cells")
        self.setAccessibleName(tr("Entries as cells"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        FocusRing(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._chosen: int | None = None
        self._low = self._end = 0
        self._verdicts: Mapping[int, str | None] = {}
        self._groups: Mapping[int, tuple[str, str]] = {}
        self._queue: tuple[str, int] | None = None
        self._units: Mapping[int, Unit] = {}
        self.menu = MarkMenu(self, self.mark_at)
        self._fit()
        follow(self, self._fit)

    def _fit(self) -> None:
        self.setFixedHeight(px(10 + ROWS * 34))
        self.update()

    def show_entries(
        self,
        verdicts: Mapping[int, str | None],
        bounds: tuple[int, int],
        groups: Mapping[int, tuple[str, str]] | None = None,
        queue: tuple[str, int] | None = None,
        units: Mapping[int, Unit] | None = None,
    ) -> None:
        """``verdicts`` by queue offset as far as they are known; ``bounds``: first entry and end of the queue;
        ``groups``: (name, role of colour) of the groups that read next at an offset; ``queue``: its topic and number;
        ``units``: those that entries point at, as far as they are known.
        """
        self._queue, self._units = queue, units if units is not None else {}
        self._verdicts, (self._low, self._end) = verdicts, bounds
        self._groups = groups or {}
        self.update()

    def choose(self, offset: int | None) -> None:
        """Show the rows around ``offset`` and frame it."""
        self._chosen = offset
        words = "" if offset is None else f"{words_of(self._verdicts.get(offset))}, {offset:,}"
        self.setAccessibleDescription(words)
        self.update()

    def drawn_offsets(self) -> tuple[int, int]:
        """Return the range of queue offsets on the screen, whose verdicts are needed."""
        return self._start(), self._start() + ROWS * PER_ROW

    def sizeHint(self) -> QSize:
        return QSize(700, self.minimumHeight())

    def _start(self) -> int:
        chosen = self._low if self._chosen is None else self._chosen
        row = (chosen - self._low) // PER_ROW
        rows = max(1, (self._end - self._low + PER_ROW - 1) // PER_ROW)
        first_row = min(max(0, row - 1), max(0, rows - ROWS + (1 if rows > ROWS else 0)))
        return self._low + first_row * PER_ROW

    def _left(self) -> float:
        return max(100 * scale(), 20 + QFontMetrics(mono(11)).horizontalAdvance(f"{self._end:,}"))

    def _cell(self, k: int) -> QRectF:
        margin = self._left()
        wide = (self.width() - margin - 16) / PER_ROW
        y = (10 + k // PER_ROW * 34) * scale()
        return QRectF(margin + k % PER_ROW * wide, y + 9 * scale(), wide - 3, 18 * scale())

    def _entry_at(self, x: float, y: float) -> int | None:
        for k in range(ROWS * PER_ROW):
            if self._cell(k).adjusted(-2, -4, 2, 4).contains(x, y):
                entry = self._start() + k
                return entry if entry < self._end else None
        return None

    def mark_at(self, point: QPointF | None) -> Found | None:
        """The entry under the point, or the chosen one."""
        chosen = self._low if self._chosen is None else self._chosen
        entry = chosen if point is None else self._entry_at(point.x(), point.y())
        if entry is None or self._queue is None or not self._low <= entry < self._end:
            return None
        cell = min(max(entry - self._start(), 0), ROWS * PER_ROW - 1)
        mark_of_entry = entry_mark(*self._queue, entry, self._words(entry), unit=self._units.get(entry))
        return mark_of_entry, QPointF(self._cell(cell).center().x(), self._cell(cell).bottom())

    def _words(self, entry: int) -> str:
        words = f"{entry:,}: {words_of(self._verdicts.get(entry))}"
        if entry in self._groups:
            words += "\n" + tr("{group} reads here next", group=self._groups[entry][0])
        return words

    def mousePressEvent(self, event: QMouseEvent) -> None:
        entry = self._entry_at(event.position().x(), event.position().y())
        if entry is not None and event.button() == Qt.MouseButton.LeftButton:
            self.entry_chosen.emit(entry)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        entry = self._entry_at(event.position().x(), event.position().y())
        if entry is None:
            QToolTip.hideText()
            return
        QToolTip.showText(event.globalPosition().toPoint(), self._words(entry), self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Down: PER_ROW, Qt.Key.Key_Up: -PER_ROW}
        step = steps.get(Qt.Key(event.key()))
        if step is None or self._end <= self._low:
            super().keyPressEvent(event)
            return
        chosen = self._low if self._chosen is None else self._chosen
        self.entry_chosen.emit(min(max(chosen + step, self._low), self._end - 1))

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        p.fillRect(QRectF(0, self.height() - 1, self.width(), 1), C("hair"))
        if self._end <= self._low:
            return
        start = self._start()
        for k in range(ROWS * PER_ROW):
            box = self._cell(k)
            if k % PER_ROW == 0 and start + k < self._end:
                p.setFont(mono(11))
                p.setPen(C("text3"))
                p.drawText(
                    QRectF(12, box.top(), self._left() - 16, box.height()),
                    Qt.AlignmentFlag.AlignVCenter,
                    f"{start + k:,}",
                )
            self._paint_cell(p, start + k, box)
        for k in range(ROWS * PER_ROW):
            if start + k in self._groups:
                self._paint_group(p, self._cell(k), *self._groups[start + k])

    def _paint_cell(self, p: QPainter, entry: int, box: QRectF) -> None:
        if entry >= self._end:
            p.setPen(QPen(C("line"), 1, Qt.PenStyle.DotLine))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)
            return
        verdict = self._verdicts.get(entry)
        shape, fill, _ = VERDICTS.get(verdict or "", ("", "raised", ""))
        p.setPen(Qt.PenStyle.NoPen if shape else QPen(C("hair"), 1))
        p.setBrush(C(fill))
        p.drawRoundedRect(box, 2, 2)
        if shape:
            mark(p, shape, box.center(), 3.4)
        if entry == self._chosen:
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRoundedRect(box.adjusted(-1, -1, 1, 1), 3, 3)

    def _paint_group(self, p: QPainter, box: QRectF, name: str, role: str) -> None:
        p.setPen(QPen(C(role), 2))
        p.drawLine(QPointF(box.left() - 1.5, box.top() - 13 * scale()), QPointF(box.left() - 1.5, box.bottom() + 2))
        p.setFont(ui(11, 600))
        words = QFontMetrics(p.font()).elidedText(name, Qt.TextElideMode.ElideMiddle, int(150 * scale()))
        wide = QFontMetrics(p.font()).horizontalAdvance(words)
        text_left = box.left() + 3 if box.left() + wide + 8 < self.width() else box.left() - wide - 6
        p.setPen(C(role))
        p.drawText(
            QRectF(text_left, box.top() - 15 * scale(), wide + 4, 14 * scale()), Qt.AlignmentFlag.AlignVCenter, words
        )


@dataclass(frozen=True, slots=True)
class ByteField:
    """A field of an entry:

    bytes [start, start + length), the colour group of its fill, its value in words, a remark.
    """

    name: str
    start: int
    length: int
    group: str
    value: str
    note: str = ""


class EntryBytes(MarkCanvas):
    """The bytes of one entry, each field on its own fill with its value below.

    Fields that do not fit go to a new row.
    """

    def __init__(self) -> None:
        super().__init__("queue.bytes", tr("Bytes of the entry"))
        self._raw = b""
        self._entry: DrawnMark | None = None
        self._fields: tuple[ByteField, ...] = ()
        self._rows: list[list[ByteField]] = []
        self._fit()
        follow(self, self._arrange)

    def show_entry(self, raw: bytes, fields: Sequence[ByteField], entry: DrawnMark | None = None) -> None:
        """Show ``raw``, the entry's bytes, with ``··`` for those that a short entry lacks. ``entry`` is its mark."""
        self._raw, self._entry = raw, entry
        self._fields = tuple(fields)
        self.setAccessibleDescription("; ".join(f"{field.name} {field.value} {field.note}" for field in fields))
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Put as many fields into a row as fit, at most the bytes of a plain entry."""
        room = max(8, min(MAX_ROW_BYTES, int((self.width() - 8) / (BYTE_WIDTH * scale()))))
        rows: list[list[ByteField]] = []
        for field in self._fields:
            if not rows or sum(f.length for f in rows[-1]) + field.length > room:
                rows.append([])
            rows[-1].append(field)
        self._rows = rows
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(340, self.minimumHeight())

    def _fit(self) -> None:
        self.setFixedHeight(px(max(1, len(self._rows)) * 78))
        self.update()

    def marks(self) -> Boxes:
        """The fields, as far as it is known whose they are."""
        entry = self._entry
        return (
            [
                (box.adjusted(0, -18 * scale(), 0, 22 * scale()), byte_mark(entry, field.name, field.value, field.note))
                for field, box, _ in self._boxes()
            ]
            if entry is not None
            else ()
        )

    def _boxes(self) -> Iterator[tuple[ByteField, QRectF, float]]:
        """Every field with the box of its bytes and the width of one."""
        z = scale()
        for number, row in enumerate(self._rows):
            top = number * 78 * z
            wide = min(18 * z, (self.width() - 8) / max(f.length for f in row), self._byte_width())
            x = 0.0
            for field in row:
                yield field, QRectF(x, top + 20 * z, wide * field.length - 3, 28 * z), wide
                x += wide * field.length + 2

    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setClipRect(event.rect())
        for field, box, wide in self._boxes():
            self._paint_field(p, field, box, wide)
        self.paint_framed(p)

    def _byte_width(self) -> float:
        """Return one width for all rows, so that the fullest row fills the widget."""
        fullest = max((sum(f.length for f in row) for row in self._rows), default=MAX_ROW_BYTES)
        return (self.width() - 8) / max(1, fullest)

    def _paint_field(self, p: QPainter, field: ByteField, box: QRectF, wide: float) -> None:
        z = scale()
        p.fillRect(box, hex_fill(field.group))
        p.setFont(ui(12))
        p.setPen(C("text2"))
        p.drawText(
            QRectF(box.left() + 1, box.top() - 20 * z, box.width() + 6, 18 * z),
            Qt.AlignmentFlag.AlignVCenter,
            QFontMetrics(p.font()).elidedText(field.name, Qt.TextElideMode.ElideRight, int(box.width() + 4)),
        )
        p.setFont(mono(11))
        for k in range(field.length):
            byte_index = field.start + k
            byte = self._raw[byte_index] if byte_index < len(self._raw) else None
            p.setPen(C("disabled") if not byte else C("text"))
            cell = QRectF(box.left() + k * wide, box.top(), wide, box.height())
            p.drawText(cell, Qt.AlignmentFlag.AlignCenter, "··" if byte is None else f"{byte:02X}")
        p.setFont(mono(12, 600))
        p.setPen(C("text"))
        y = box.bottom() + 4 * z
        p.drawText(QRectF(box.left() + 1, y, box.width() + 200, 18 * z), Qt.AlignmentFlag.AlignVCenter, field.value)
        if field.note:
            note_left = box.left() + QFontMetrics(p.font()).horizontalAdvance(field.value) + 9
            p.setFont(ui(12))
            p.setPen(C("text3"))
            room = max(0.0, self.width() - note_left)
            p.drawText(
                QRectF(note_left, y, room, 18 * z),
                Qt.AlignmentFlag.AlignVCenter,
                QFontMetrics(p.font()).elidedText(field.note, Qt.TextElideMode.ElideRight, int(room)),
            )
