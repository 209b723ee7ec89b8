"""Painting the rows of a table: ground, marks, topic bars, chips, links and text.

One painter draws all cells of the screen in one pass over texts that are already cut to their columns: that is what
keeps a frame at a few milliseconds. It knows colours and fonts only through the theme.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen, QPixmap

from viewer.models.columns import Chip, Column, RowLook
from viewer.models.formats import shorten_middle
from viewer.models.record_table import RecordTable
from viewer.theme import C, mono, scale, topic_color, ui
from viewer.widgets.paint import CHIP_FILL, CHIP_INK, mark

PAD = 8
TEXTS = 8192
PICTURES = 160
"""Rows whose pictures are kept: some screens' worth, 20 MB at most on a wide window."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A column on the screen: its number, left edge and width in px."""

    section: int
    x: int
    width: int
    column: Column


@dataclass(frozen=True, slots=True)
class RowState:
    """What the view knows of a row: chosen, the view has the focus, the pointer is over the link in ``hot``."""

    chosen: bool = False
    focused: bool = False
    hot: int = -1
    current: int = -1
    hovered: bool = False


class RowPainter:
    """Draws rows of a :class:`RecordTable`; holds fonts, cut texts and mark pictures until :meth:`forget`."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Theme, zoom or language changed."""
        self._zoom = scale()
        self._fonts: dict[str, QFont] = {
            "ui": ui(13),
            "strong": ui(13, 500),
            "mono": mono(12),
            "chip": ui(12, 500),
            "letter": ui(11, 600),
        }
        self._fonts["figures"] = mono(12)  # digits and letters of one width need no shaping, which costs a third
        self._fonts["figures"].setStyleStrategy(QFont.StyleStrategy.PreferNoShaping)
        for name in ("ui", "strong"):
            if hasattr(QFont, "setFeature"):  # Inter writes 0x31 with a multiplication sign otherwise
                self._fonts[name].setFeature(QFont.Tag("calt"), 0)
        self._metrics = {name: QFontMetrics(font) for name, font in self._fonts.items()}
        self._digit = self._metrics["mono"].horizontalAdvance("0")
        self._colors: dict[str, QColor] = {}
        self._pictures: dict[tuple[str, float], QPixmap] = {}
        self.forget_texts()

    def forget_texts(self) -> None:
        """Columns moved: texts are cut anew."""
        self._cut: dict[tuple[str, str, int, str], tuple[str, int]] = {}
        self._rows: OrderedDict[int, QPixmap] = OrderedDict()
        self._seen: set[int] = set()

    def keep_only(self, rows: list[object]) -> None:
        """Drop what is kept for rows that are gone."""
        alive = {id(row) for row in rows}
        self._seen &= alive
        for key in [key for key in self._rows if key not in alive]:
            del self._rows[key]

    def draw(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        """Row ``number``, from its picture where it has one: of the rows of a scrolled screen only a few are new.

        A row gets its picture when it is painted for the second time: who leafs by pages sees most rows once.
        """
        key, ratio = id(model.rows[number]), p.device().devicePixelRatioF()
        if state.chosen or state.hovered or key not in self._seen:
            self._seen.add(key)
            self.paint_row(p, model, number, slots, rect, state)
            return
        picture = self._rows.get(key)
        if picture is None or picture.size() != rect.size() * ratio:
            picture = QPixmap(rect.size() * ratio)
            picture.setDevicePixelRatio(ratio)
            picture.fill(self.color("pane"))
            painter = QPainter(picture)
            self.paint_row(painter, model, number, slots, QRect(0, 0, rect.width(), rect.height()), state)
            painter.end()
            self._rows[key] = picture
            while len(self._rows) > PICTURES:
                self._rows.popitem(last=False)
        p.drawPixmap(rect.topLeft(), picture)

    def color(self, role: str) -> QColor:
        """A colour of the theme, looked up once."""
        found = self._colors.get(role)
        if found is None:
            found = self._colors[role] = C(role)
        return found

    def paint_row(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        """Row ``number`` of ``model`` into ``rect``."""
        look = model.look(number)
        self._paint_ground(p, rect, look, state)
        texts = model.texts(number)
        row = model.rows[number]
        spoken = look is not None and bool(look.words)
        for slot in slots:
            column = slot.column
            if spoken and look is not None and slot.section >= look.words_from:
                if slot.section == look.words_from:
                    self._paint_words(p, rect, slot, look, state)
                continue
            if slot.section == 0 and not column.key:
                if look is not None and look.mark:
                    self._paint_mark(p, look.mark, slot.x + 14 * self._zoom, rect)
                continue
            if column.paint == "chip":
                chip = column.chip(row) if column.chip is not None else None
                if chip is not None:
                    self.paint_chip(p, rect, slot, chip)
            elif column.paint == "letters":
                self._paint_letters(p, rect, slot, texts[slot.section])
            elif texts[slot.section]:
                self._paint_text(p, rect, slot, row, texts[slot.section], look, state)

    def _paint_ground(self, p: QPainter, rect: QRect, look: RowLook | None, state: RowState) -> None:
        if state.chosen:
            p.fillRect(rect, self.color("select" if state.focused else "idle"))
            p.fillRect(QRect(rect.left(), rect.top(), 3, rect.height()), self.color("accent"))
        elif look is not None and look.fill:
            p.fillRect(rect, self.color(look.fill))
        elif state.hovered:
            p.fillRect(rect, self.color("hover"))

    def _tone(self, column: Column, row: object, look: RowLook | None, state: RowState) -> str:
        tone = look.tone if look is not None else ""
        if not tone and column.tone is not None:
            tone = column.tone(row)
        if tone == "text3" and (state.chosen or (look is not None and look.fill)):
            return "text2"
        return tone or "text"

    def _paint_text(
        self, p: QPainter, rect: QRect, slot: Slot, row: object, text: str, look: RowLook | None, state: RowState
    ) -> None:
        column = slot.column
        left, room = slot.x + PAD, slot.width - 2 * PAD
        if column.paint == "topic":
            self._paint_topic_bar(p, text, left, rect)
            left, room = left + round(11 * self._zoom), room - round(11 * self._zoom)
        name = "mono" if column.mono else "ui"
        shown, width = self._fit(slot, text, name, room)
        font = "figures" if column.mono and shown.isascii() else name
        link = column.jump is not None and column.jump(row) is not None and (look is None or not look.tone)
        p.setFont(self._fonts[font])
        p.setPen(self.color("accent" if link else self._tone(column, row, look, state)))
        x = left + room - width if column.right else left
        metrics = self._metrics[name]
        base = rect.top() + (rect.height() + metrics.ascent() - metrics.descent()) // 2
        p.drawText(x, base, shown)
        if link and state.hot == slot.section:
            p.fillRect(QRect(x, base + 2, width, 1), self.color("accent"))

    def text_span(self, model: RecordTable, number: int, slot: Slot) -> tuple[int, int]:
        """Left edge and width in px of a cell's text as it is shown."""
        text = model.texts(number)[slot.section]
        if not text:
            return slot.x, 0
        left, room = slot.x + PAD, slot.width - 2 * PAD
        if slot.column.paint == "topic":
            left, room = left + round(11 * self._zoom), room - round(11 * self._zoom)
        _, width = self._fit(slot, text, "mono" if slot.column.mono else "ui", room)
        return (left + room - width if slot.column.right else left), width

    def _fit(self, slot: Slot, text: str, name: str, room: int) -> tuple[str, int]:
        """``text`` cut to ``room`` px as its column wants, and the width of what is left."""
        mode = slot.column.elide
        key = (text, name, room, mode)
        found = self._cut.get(key)
        if found is None:
            if len(self._cut) >= TEXTS:
                self._cut.clear()
            found = self._cut[key] = self._fitted(text, name, room, mode)
        return found

    def _fitted(self, text: str, name: str, room: int, mode: str) -> tuple[str, int]:
        metrics = self._metrics[name]
        if name == "mono" and text.isascii():
            keep = max(0, room // self._digit)
            if len(text) > keep and mode != "never":
                text = shorten_middle(text, keep) if mode == "middle" else text[: max(0, keep - 1)] + "…"
            return text, self._digit * len(text)
        width = metrics.horizontalAdvance(text)
        if width > room and mode != "never":
            how = Qt.TextElideMode.ElideMiddle if mode == "middle" else Qt.TextElideMode.ElideRight
            text = metrics.elidedText(text, how, max(room, 0))
            width = metrics.horizontalAdvance(text)
        return text, width

    def _paint_words(self, p: QPainter, rect: QRect, slot: Slot, look: RowLook, state: RowState) -> None:
        name = "strong" if look.strong else "ui"
        tone = look.tone or "text3"
        p.setFont(self._fonts[name])
        p.setPen(self.color("text2" if tone == "text3" and (state.chosen or look.fill) else tone))
        metrics = self._metrics[name]
        room = rect.right() - slot.x - 2 * PAD
        base = rect.top() + (rect.height() + metrics.ascent() - metrics.descent()) // 2
        p.drawText(slot.x + PAD, base, metrics.elidedText(look.words, Qt.TextElideMode.ElideRight, room))

    def _paint_topic_bar(self, p: QPainter, topic: str, x: int, rect: QRect) -> None:
        bar = QRectF(x, rect.center().y() - 5 * self._zoom, 4 * self._zoom, 12 * self._zoom)
        color = topic_color(topic)
        if color is None:
            p.setPen(self.color("text3"))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5))
        else:
            p.fillRect(bar, color)

    def _paint_letters(self, p: QPainter, rect: QRect, slot: Slot, text: str) -> None:
        x, z = slot.x + PAD, self._zoom
        metrics = self._metrics["letter"]
        p.setFont(self._fonts["letter"])
        for letter in text:
            width = round(metrics.horizontalAdvance(letter) + 9 * z)
            box = QRectF(x, rect.center().y() - 7.5 * z, width, 16 * z)
            p.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            p.setPen(QPen(self.color("line"), 1))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
            p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            p.setPen(self.color("text2"))
            p.drawText(box, Qt.AlignmentFlag.AlignCenter, letter)
            x += width + round(4 * z)

    def paint_chip(self, p: QPainter, rect: QRect, slot: Slot, chip: Chip) -> None:
        """A state: the mark alone, or mark and word on their fill."""
        z = self._zoom
        if not chip.word:
            self._paint_mark(p, chip.kind, slot.x + PAD + 6 * z, rect)
            return
        metrics = self._metrics["chip"]
        width = min(metrics.horizontalAdvance(chip.word) + round(26 * z), slot.width - PAD)
        box = QRectF(slot.x + PAD - 2, rect.center().y() - 9 * z, width, 19 * z)
        p.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(self.color(CHIP_FILL.get(chip.kind, f"{chip.kind}Fill")))
        p.drawRoundedRect(box, 4, 4)
        p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self._paint_mark(p, chip.kind, box.left() + 11 * z, rect)
        p.setFont(self._fonts["chip"])
        p.setPen(self.color(CHIP_INK.get(chip.kind, chip.kind)))
        shown = metrics.elidedText(chip.word, Qt.TextElideMode.ElideRight, int(width - 22 * z))
        p.drawText(box.adjusted(21 * z, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_mark(self, p: QPainter, kind: str, x: float, rect: QRect) -> None:
        """Marks are drawn once and copied: a tick in every row would cost more than all texts."""
        ratio = p.device().devicePixelRatioF()
        picture = self._pictures.get((kind, ratio))
        side = round(16 * self._zoom)
        if picture is None:
            picture = QPixmap(round(side * ratio), round(side * ratio))
            picture.setDevicePixelRatio(ratio)
            picture.fill(Qt.GlobalColor.transparent)
            painter = QPainter(picture)
            mark(painter, kind, QPointF(side / 2, side / 2), 4.5 * self._zoom)
            painter.end()
            self._pictures[kind, ratio] = picture
        p.drawPixmap(round(x - side / 2), rect.top() + (rect.height() - side) // 2 + 1, picture)
