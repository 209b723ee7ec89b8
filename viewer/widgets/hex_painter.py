"""Painting bytes: offset, sixteen cells, text, and the names of the fields that begin in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from viewer.assets import tr
from viewer.models.hex_pages import ROW_BYTES, FieldMap, HexField
from viewer.theme import C, hex_fill, mono, scale, ui
from viewer.widgets.paint import hatch

ROW = 20
HEAD = 22


@dataclass(frozen=True, slots=True)
class Metrics:
    """Places of the columns in px for one width and zoom."""

    row: int
    head: int
    left: int
    cell: int
    gap: int
    letter: float
    text: int
    names: int
    right: int

    def hex_x(self, column: int) -> int:
        """Left edge of the cell of byte ``column``."""
        return self.left + column * self.cell + (self.gap if column >= 8 else 0)

    def text_x(self, column: int) -> float:
        """Left edge of the character of byte ``column``."""
        return self.text + column * self.letter

    @property
    def shows_names(self) -> bool:
        return self.right > self.names + 100

    def column_at(self, x: float) -> tuple[int, bool] | None:
        """(byte 0…15, in the text) under ``x``; None between the columns."""
        if self.text - 4 <= x < self.text_x(ROW_BYTES) + 4:
            return max(0, min(15, int((x - self.text) / self.letter))), True
        if self.left <= x < self.hex_x(15) + self.cell:
            for column in range(ROW_BYTES):
                if x < self.hex_x(column) + self.cell:
                    return column, False
        return None


def measure(width: int, largest: int) -> Metrics:
    """Columns for a view of ``width`` px that shows offsets up to ``largest``."""
    z = scale()
    digit = QFontMetrics(mono(12)).horizontalAdvance("0")
    left = max(round(116 * z), digit * len(f"{largest:,}") + round(24 * z)) + round(8 * z)
    cell, gap = max(round(20 * z), 2 * digit + 4), round(8 * z)
    text = left + 16 * cell + gap + round(14 * z)
    letter = max(8.0 * z, float(digit))
    return Metrics(
        round(ROW * z), round(HEAD * z), left, cell, gap, letter, text, round(text + 16 * letter + 18 * z), width
    )


@dataclass(slots=True)
class Painted:
    """What a frame shows: selection [low, high), chosen field, spans that are damaged, framed bytes, the cursor."""

    origin: int
    unit_end: int
    fields: FieldMap
    chosen: str = ""
    selection: tuple[int, int] = (0, 0)
    damage: Sequence[tuple[int, int]] = ()
    frames: Sequence[tuple[int, int, str]] = ()
    cursor: int | None = None
    hex_offsets: bool = False


class HexPainter:
    """Draws rows of bytes into a painter."""

    def __init__(self, p: QPainter, metrics: Metrics, shown: Painted) -> None:
        self.p = p
        self.m = metrics
        self.s = shown
        self._fonts = {"byte": mono(12), "bold": mono(12, 600), "head": mono(11), "name": ui(11), "chosen": ui(11, 600)}
        self._byte_metrics = QFontMetrics(self._fonts["byte"])
        self._byte_width = self._byte_metrics.horizontalAdvance("00")
        self._base = (metrics.row + self._byte_metrics.ascent() - self._byte_metrics.descent()) // 2
        roles = ("accent", "accentText", "text", "text2", "text3", "disabled", "hair", "pane", "line", "errorFill")
        self.c: dict[str, QColor] = {role: C(role) for role in roles}

    def head(self) -> None:
        """The line with the columns' numbers."""
        p, m = self.p, self.m
        p.setFont(self._fonts["head"])
        p.setPen(self.c["text3"])
        for column in range(ROW_BYTES):
            p.drawText(QRect(m.hex_x(column), 0, m.cell, m.head - 1), Qt.AlignmentFlag.AlignCenter, f"+{column:X}")
        if m.shows_names:
            p.setFont(self._fonts["name"])
            p.drawText(
                QRect(m.names, 0, m.right - m.names, m.head - 1), Qt.AlignmentFlag.AlignVCenter, tr("starts here")
            )
        p.fillRect(QRect(0, m.head - 1, m.right, 1), self.c["hair"])

    def rules(self, height: int) -> None:
        """The hairlines between offset, bytes, text and names."""
        m = self.m
        for x in (
            m.left - round(8 * scale()),
            m.text - round(8 * scale()),
            *((m.names - round(10 * scale()),) if m.shows_names else ()),
        ):
            self.p.fillRect(QRect(x, 0, 1, height), self.c["hair"])

    def row(self, y: int, base: int, data: list[int | None]) -> None:
        """The sixteen bytes from offset ``base`` on at height ``y``."""
        p, m = self.p, self.m
        p.setFont(self._fonts["byte"])
        p.setPen(self.c["text3"])
        label = f"{base:X}" if self.s.hex_offsets else f"{base:,}"
        width = self._byte_metrics.horizontalAdvance(label)
        p.drawText(m.left - round(16 * scale()) - width, y + self._base, label)
        here = [column for column, byte in enumerate(data) if byte is not None]
        if here:
            self._fills(y, base, here[0], here[-1])
        for column, byte in enumerate(data):
            if byte is not None:
                self._byte(y, base + column, column, byte)
        if m.shows_names:
            self._names(y, self.s.fields.beginning_in(base - self.s.origin, base - self.s.origin + ROW_BYTES))

    def waiting(self, y: int, base: int) -> None:
        """A row whose bytes are still being read."""
        self.row(y, base, [None] * ROW_BYTES)
        self.p.setPen(self.c["disabled"])
        self.p.drawText(self.m.left + 4, y + self._base, "…")

    def _is_chosen(self, offset: int, field: HexField | None) -> bool:
        low, high = self.s.selection
        if high > low:
            return low <= offset < high
        return field is not None and field.name == self.s.chosen

    def _fills(self, y: int, base: int, first: int, last: int) -> None:
        """Grounds: one run of bytes of the same field and state at a time."""
        column = first
        while column <= last:
            field = self.s.fields.at(base + column - self.s.origin)
            chosen, damaged = self._is_chosen(base + column, field), self._damaged(base + column)
            end = column
            while end < last:
                after = self.s.fields.at(base + end + 1 - self.s.origin)
                if (
                    after is not field
                    or self._is_chosen(base + end + 1, after) != chosen
                    or self._damaged(base + end + 1) != damaged
                ):
                    break
                end += 1
            self._run(y, base, column, end, field, chosen, damaged)
            column = end + 1
        for low, length, role in self.s.frames:
            for column in range(max(first, low - base), min(last, low + length - 1 - base) + 1):
                self.p.setPen(QPen(C(role), 2))
                self.p.setBrush(Qt.BrushStyle.NoBrush)
                self.p.drawRect(QRectF(self.m.hex_x(column) + 1, y + 2, self.m.cell - 2, self.m.row - 4))

    def _run(
        self, y: int, base: int, first: int, last: int, field: HexField | None, chosen: bool, damaged: bool
    ) -> None:
        m = self.m
        if chosen:
            color = self.c["accent"]
        elif damaged:
            color = self.c["errorFill"]
        elif field is not None:
            color = hex_fill(field.group)
        else:
            return
        cells = QRectF(m.hex_x(first), y + 1, m.hex_x(last) + m.cell - m.hex_x(first), m.row - 2)
        text = QRectF(m.text_x(first), y + 1, (last - first + 1) * m.letter, m.row - 2)
        for part in (cells, text):
            self.p.fillRect(part, color)
            if damaged and not chosen:
                hatch(self.p, part, "error", 0.28)
        if field is not None and not chosen and self.s.origin + field.position == base + first:
            self.p.fillRect(QRectF(cells.left(), y + 1, 1.5, m.row - 2), C("text3", 0.55))

    def _damaged(self, offset: int) -> bool:
        return any(low <= offset < high for low, high in self.s.damage)

    def _byte(self, y: int, offset: int, column: int, byte: int) -> None:
        p, m, s = self.p, self.m, self.s
        field = s.fields.at(offset - s.origin)
        chosen = self._is_chosen(offset, field)
        inside = s.origin <= offset < s.unit_end
        if chosen:
            tone = "accentText"
        elif not inside:
            tone = "text3"
        else:
            tone = "disabled" if byte == 0 else "text"
        p.setFont(self._fonts["bold" if chosen else "byte"])
        p.setPen(self.c[tone])
        p.drawText(m.hex_x(column) + (m.cell - self._byte_width) // 2, y + self._base, f"{byte:02X}")
        printable = 32 <= byte < 127
        if not chosen:
            p.setPen(self.c["text2" if printable and inside else "text3" if printable else "disabled"])
        p.setFont(self._fonts["byte"])
        p.drawText(
            round(m.text_x(column) + (m.letter - self._byte_width / 2) / 2),
            y + self._base,
            chr(byte) if printable else "·",
        )
        if offset == s.cursor:
            p.setPen(QPen(self.c["accent"], 1.5))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(QRectF(m.hex_x(column) + 0.5, y + 1.5, m.cell - 1, m.row - 3))

    def _names(self, y: int, fields: list[HexField]) -> None:
        p, m, z = self.p, self.m, scale()
        fields = sorted(fields, key=lambda f: f.name != self.s.chosen)
        x = float(m.names)
        for number, field in enumerate(fields):
            on = field.name == self.s.chosen and self.s.selection[1] <= self.s.selection[0]
            p.setFont(self._fonts["chosen" if on else "name"])
            metrics = QFontMetrics(p.font())
            label, last = field.label, number == len(fields) - 1
            room = m.right - (10 if last else 38) * z - x - 13 * z
            if number == 0 and metrics.horizontalAdvance(label) > room:
                label = metrics.elidedText(label, Qt.TextElideMode.ElideMiddle, int(room))
            width = metrics.horizontalAdvance(label)
            if number and width > room:
                p.setPen(self.c["text3"])
                p.drawText(QRectF(x, y, 60 * z, m.row), Qt.AlignmentFlag.AlignVCenter, f"+{len(fields) - number}")
                return
            box = QRectF(x, y + m.row / 2 - 4 * z, 8 * z, 8 * z)
            p.fillRect(box, self.c["accent"] if on else hex_fill(field.group))
            if not on:
                p.setPen(QPen(self.c["line"], 1))
                p.setBrush(Qt.BrushStyle.NoBrush)
                p.drawRect(box)
            p.setPen(self.c["accent" if on else "text2"])
            p.drawText(QRectF(x + 13 * z, y, width + 4, m.row), Qt.AlignmentFlag.AlignVCenter, label)
            x += width + 26 * z
