"""Paint rows of bytes: offset, sixteen cells, text, and the names of the fields that begin in the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QPixmap

from viewer.look.assets import tr
from viewer.look.theme import C, hex_fill, mono, scale, ui
from viewer.widgets.hex_pages import ROW_BYTES, FieldMap, HexField
from viewer.widgets.paint import hatch

ROW = 20
HEAD = 22
MAX_GLYPHS = 4096
_GLYPHS: dict[tuple[str, int, int, int, float], QPixmap] = {}


@dataclass(frozen=True, slots=True)
class Metrics:
    """Positions of the columns in px for one width and zoom."""

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
        """Return (byte 0…15, in the text) under ``x``; None between the columns."""
        if self.text - 4 <= x < self.text_x(ROW_BYTES) + 4:
            return max(0, min(15, int((x - self.text) / self.letter))), True
        if self.left <= x < self.hex_x(15) + self.cell:
            for column in range(ROW_BYTES):
                if x < self.hex_x(column) + self.cell:
                    return column, False
        return None


def measure(width: int, largest: int) -> Metrics:
    """Compute the columns for a view of ``width`` px that shows offsets up to ``largest``."""
    z = scale()
    digit = QFontMetrics(mono(12)).horizontalAdvance("0")
    bytes_x = max(round(116 * z), digit * len(f"{largest:,}") + round(24 * z)) + round(8 * z)
    cell, gap = max(round(20 * z), 2 * digit + 4), round(8 * z)
    text = bytes_x + 16 * cell + gap + round(14 * z)
    letter = max(8.0 * z, float(digit))
    return Metrics(
        round(ROW * z), round(HEAD * z), bytes_x, cell, gap, letter, text, round(text + 16 * letter + 18 * z), width
    )


@dataclass(slots=True)
class Painted:
    """The content of a frame: the selection [start, end), the chosen field, damaged spans, framed and changed bytes,
    the cursor.
    """

    origin: int
    unit_end: int
    fields: FieldMap
    chosen: str = ""
    also_chosen: frozenset[str] = frozenset()
    """More fields that are painted like the chosen one: those of a group."""
    selection: tuple[int, int] = (0, 0)
    damage: Sequence[tuple[int, int]] = ()
    frames: Sequence[tuple[int, int, str]] = ()
    changes: Mapping[int, int | None] = dataclass_field(default_factory=dict)
    """The old value of each byte that patches change; None for a byte that was not there."""
    cursor: int | None = None
    hex_offsets: bool = False

    def is_chosen(self, field: HexField) -> bool:
        """Return whether the field is chosen, alone or with others."""
        return field.name == self.chosen or field.name in self.also_chosen


class HexPainter:
    """Paints rows of bytes."""

    def __init__(self, p: QPainter, metrics: Metrics, shown: Painted) -> None:
        self.p = p
        self.m = metrics
        self.s = shown
        self._fonts = {"byte": mono(12), "bold": mono(12, 600), "head": mono(11), "name": ui(11), "chosen": ui(11, 600)}
        self._byte_metrics = QFontMetrics(self._fonts["byte"])
        self._base = (metrics.row + self._byte_metrics.ascent() - self._byte_metrics.descent()) // 2
        roles = (
            "accent",
            "accentText",
            "text",
            "text2",
            "text3",
            "disabled",
            "hair",
            "pane",
            "line",
            "errorFill",
            "glow",
            "live",
        )
        self.c: dict[str, QColor] = {role: C(role) for role in roles}
        self._tick = C("text3", 0.55)

    def head(self) -> None:
        """Paint the line with the column numbers."""
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
        """Paint the hairlines between offset, bytes, text and names."""
        m = self.m
        for x in (
            m.left - round(8 * scale()),
            m.text - round(8 * scale()),
            *((m.names - round(10 * scale()),) if m.shows_names else ()),
        ):
            self.p.fillRect(QRect(x, 0, 1, height), self.c["hair"])

    def row(self, y: int, base: int, data: list[int | None]) -> None:
        """Paint the sixteen bytes from offset ``base`` on at height ``y``."""
        p, m, s = self.p, self.m, self.s
        p.setFont(self._fonts["byte"])
        p.setPen(self.c["text3"])
        label = f"{base:X}" if s.hex_offsets else f"{base:,}"
        width = self._byte_metrics.horizontalAdvance(label)
        p.drawText(m.left - round(16 * scale()) - width, y + self._base, label)
        fields = [s.fields.at(base + column - s.origin) for column in range(ROW_BYTES)]
        states = [self._state(base + column, field) for column, field in enumerate(fields)]
        columns_read = [column for column, byte in enumerate(data) if byte is not None]
        if columns_read:
            self._fills(y, base, columns_read[0], columns_read[-1], fields, states)
        for column in columns_read:
            self._byte(y, base + column, column, data[column] or 0, states[column])
        self._frames(y, base, columns_read)
        if m.shows_names:
            self._names(y, s.fields.beginning_in(base - s.origin, base - s.origin + ROW_BYTES))

    def waiting(self, y: int, base: int) -> None:
        """Paint a row whose bytes are still being read."""
        self.row(y, base, [None] * ROW_BYTES)
        self.p.setPen(self.c["disabled"])
        self.p.drawText(self.m.left + 4, y + self._base, "…")

    def _state(self, offset: int, field: HexField | None) -> str:
        """The state of a byte: ``chosen``, ``changed``, ``damaged``, ``plain``, or ``outside`` the unit."""
        s = self.s
        selection_start, selection_end = s.selection
        if (
            selection_start <= offset < selection_end
            if selection_end > selection_start
            else field is not None and s.is_chosen(field)
        ):
            return "chosen"
        if offset in s.changes:
            return "changed"
        if s.damage and any(damage_start <= offset < damage_end for damage_start, damage_end in s.damage):
            return "damaged"
        return "plain" if s.origin <= offset < s.unit_end else "outside"

    def _fills(
        self, y: int, base: int, first_column: int, last_column: int, fields: list[HexField | None], states: list[str]
    ) -> None:
        """Paint the backgrounds, one run of bytes of the same field and state at a time."""
        column = first_column
        while column <= last_column:
            end = column
            while end < last_column and fields[end + 1] is fields[column] and states[end + 1] == states[column]:
                end += 1
            self._run(y, base, column, end, fields[column], states[column])
            column = end + 1

    def _run(self, y: int, base: int, first_column: int, last_column: int, field: HexField | None, state: str) -> None:
        m = self.m
        if state == "chosen":
            color = self.c["accent"]
        elif state == "changed":
            color = self.c["glow"]
        elif state == "damaged":
            color = self.c["errorFill"]
        elif field is not None:
            color = self._fill(field.group)
        else:
            return
        cells = QRectF(m.hex_x(first_column), y + 1, m.hex_x(last_column) + m.cell - m.hex_x(first_column), m.row - 2)
        text = QRectF(m.text_x(first_column), y + 1, (last_column - first_column + 1) * m.letter, m.row - 2)
        for part in (cells, text):
            self.p.fillRect(part, color)
            if state == "damaged":
                hatch(self.p, part, "error", 0.28)
        if field is not None and state != "chosen" and self.s.origin + field.position == base + first_column:
            self.p.fillRect(QRectF(cells.left(), y + 1, 1.5, m.row - 2), self._tick)

    def _fill(self, group: str) -> QColor:
        color = self.c.get(group)
        if color is None:
            color = self.c[group] = hex_fill(group)
        return color

    def _frames(self, y: int, base: int, columns_read: list[int]) -> None:
        for start, length, role in self.s.frames:
            for column in columns_read:
                if start <= base + column < start + length:
                    self.p.setPen(QPen(C(role), 2))
                    self.p.setBrush(Qt.BrushStyle.NoBrush)
                    self.p.drawRect(QRectF(self.m.hex_x(column) + 1, y + 2, self.m.cell - 2, self.m.row - 4))

    def _byte(self, y: int, offset: int, column: int, byte: int, state: str) -> None:
        p, m = self.p, self.m
        printable = 32 <= byte < 127
        if state == "chosen":
            tone = letter_tone = "accentText"
        elif state == "outside":
            tone, letter_tone = "text3", "text3" if printable else "disabled"
        else:
            tone, letter_tone = "disabled" if byte == 0 else "text", "text2" if printable else "disabled"
        p.drawPixmap(m.hex_x(column), y, self._glyph(f"{byte:02X}", tone, m.cell))
        if offset in self.s.changes:  # also on a chosen field: a change is never hidden
            p.fillRect(QRectF(m.hex_x(column) + 2, y + m.row - 3, m.cell - 4, 1.5), self.c["live"])
        letter = chr(byte) if printable else "·"
        p.drawPixmap(QPointF(m.text_x(column), y), self._glyph(letter, letter_tone, round(m.letter)))
        if offset == self.s.cursor:
            p.setPen(QPen(self.c["accentText" if state == "chosen" else "accent"], 1.5))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(QRectF(m.hex_x(column) + 0.5, y + 1.5, m.cell - 1, m.row - 3))

    def _glyph(self, text: str, tone: str, width: int) -> QPixmap:
        """Two digits or a letter as a picture, drawn once. Copying it is six times faster than drawing text."""
        ratio = self.p.device().devicePixelRatioF()
        key = (text, self.c[tone].rgba(), width, self.m.row, ratio)
        picture = _GLYPHS.get(key)
        if picture is None:
            picture = QPixmap(round(width * ratio), round(self.m.row * ratio))
            picture.setDevicePixelRatio(ratio)
            picture.fill(Qt.GlobalColor.transparent)
            painter = QPainter(picture)
            painter.setFont(self._fonts["bold" if tone == "accentText" else "byte"])
            painter.setPen(self.c[tone])
            painter.drawText(QRect(0, 0, width, self.m.row), Qt.AlignmentFlag.AlignCenter, text)
            painter.end()
            if len(_GLYPHS) >= MAX_GLYPHS:
                _GLYPHS.clear()
            _GLYPHS[key] = picture
        return picture

    def _names(self, y: int, fields: list[HexField]) -> None:
        p, m, z = self.p, self.m, scale()
        fields = sorted(fields, key=lambda f: not self.s.is_chosen(f))
        x = float(m.names)
        for number, field in enumerate(fields):
            on = self.s.is_chosen(field) and self.s.selection[1] <= self.s.selection[0]
            p.setFont(self._fonts["chosen" if on else "name"])
            metrics = QFontMetrics(p.font())
            label, is_last = field.label, number == len(fields) - 1
            room = m.right - (10 if is_last else 38) * z - x - 13 * z
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
