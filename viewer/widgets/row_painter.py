"""Paint the rows of a table: background, marks, topic bars, chips, links and text.

One painter draws all cells of the screen in one pass over texts that are already cut to their columns: that is what
keeps a frame at a few milliseconds. It knows colours and fonts only through the theme.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QFontMetricsF,
    QGlyphRun,
    QPainter,
    QPen,
    QPixmap,
    QRawFont,
)

from viewer.look.formats import shorten_end, shorten_middle, shorten_start
from viewer.look.theme import C, mono, scale, ui
from viewer.look.topic_colours import TopicColours
from viewer.look.topic_kinds import alike_at_the_start
from viewer.widgets.columns import Chip, Column, Record, RowAppearance
from viewer.widgets.paint import CHIP_FILL, CHIP_INK, mark
from viewer.widgets.record_table import RecordTable
from viewer.widgets.topic_lead import NAME_INDENT, draw_lead

PAD = 8
MIN_LINE_WIDTH = 120
"""Px at 100 % of a line of numbers in a cell."""
TEXTS = 8192
PICTURES = 160
"""Number of rows whose pictures are kept: a few screens, at most 20 MB in a wide window."""
WORDS, WORDS_ONCE = 400, 8192
"""Number of texts whose pictures are kept, and of texts that wait for their second use."""
PRINTABLE = "".join(map(chr, range(32, 127)))
ELIDES = {
    "right": Qt.TextElideMode.ElideRight,
    "middle": Qt.TextElideMode.ElideMiddle,
    "left": Qt.TextElideMode.ElideLeft,
}
CUTS = {"right": shorten_end, "middle": shorten_middle, "left": shorten_start}
_ORIGIN = QPointF(0, 0)
ROW = 24
"""Px at 100 % of a row of one line."""
BREAK = "\u200b"
WRAPPED = int(Qt.AlignmentFlag.AlignVCenter) | int(Qt.TextFlag.TextWordWrap)
EDGE, END = 2, 6
"""Px before and after a text that its letters may reach into: less than the gap between two columns."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A column on the screen: its number, left edge and width in px."""

    section: int
    x: int
    width: int
    column: Column


@dataclass(frozen=True, slots=True)
class RowState:
    """The state of a row in its view: chosen, view focused, ``hot`` the section whose link is under the pointer.
    ``lit`` are the glowing sections (−1: the whole row) and how strongly they glow.
    """

    chosen: bool = False
    focused: bool = False
    hot: int = -1
    current: int = -1
    hovered: bool = False
    lit: tuple[tuple[int, float], ...] = ()


def breakable(text: str, metrics: QFontMetrics, room: int) -> str:
    """Add places to break to the words of ``text`` that are wider than ``room`` px."""
    return " ".join(word if metrics.horizontalAdvance(word) <= room else BREAK.join(word) for word in text.split(" "))


def fitted_text(text: str, metrics: QFontMetrics, room: QSize) -> str:
    """Return as much of ``text`` as fits into ``room`` as lines, with places to break, and ``…`` if that is not all."""

    def fits(shown: str) -> bool:
        area = QRect(0, 0, room.width(), 1 << 16)
        return metrics.boundingRect(area, WRAPPED, breakable(shown, metrics, room.width())).height() <= room.height()

    if fits(text):
        return breakable(text, metrics, room.width())
    length = bisect.bisect_left(range(len(text)), True, key=lambda count: not fits(text[:count].rstrip() + "…")) - 1
    return breakable(text[: max(0, length)].rstrip() + "…", metrics, room.width())


class TextPen:
    """Sets the painter's font and colour only where they change: most neighbouring cells share them.

    ``plain`` is the pixel ratio where the row's ground is the pane's own, else 0.
    """

    __slots__ = ("font", "painter", "plain", "tone")

    def __init__(self, painter: QPainter, plain: float) -> None:
        self.painter, self.plain = painter, plain
        self.font = self.tone = ""

    def forget(self) -> None:
        """Forget font and colour after other code has used the painter."""
        self.font = self.tone = ""


class RowPainter:
    """Paints rows of a :class:`RecordTable`. Fonts, cut texts and pictures are kept until :meth:`forget`."""

    def __init__(self) -> None:
        self.colours = TopicColours()
        self._order: tuple[str, ...] = ()
        self.forget()

    def use(self, colours: TopicColours) -> None:
        """Use the topic colours of the store whose rows are painted."""
        self.colours = colours
        if colours.order != self._order:
            self._order = colours.order
            self._rows.clear()

    def forget(self) -> None:
        """Drop everything that is kept, after theme, zoom or language has changed."""
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
        self._above = {name: metrics.ascent() - metrics.descent() for name, metrics in self._metrics.items()}
        self._digit = self._metrics["mono"].horizontalAdvance("0")
        self._raw = QRawFont.fromFont(self._fonts["figures"])
        self._glyphs = dict(zip(PRINTABLE, self._raw.glyphIndexesForString(PRINTABLE), strict=True))
        self._step = QFontMetricsF(self._fonts["figures"]).horizontalAdvance("0")
        self._letters: dict[tuple[str, float], QPixmap] = {}
        self._colors: dict[str, QColor] = {}
        self._pictures: dict[tuple[str, float], QPixmap] = {}
        self.forget_texts()

    def forget_texts(self) -> None:
        """Drop the cut texts, after columns have moved."""
        self._cut: dict[tuple[str, str, int, str], tuple[str, int, str]] = {}
        self._words: dict[tuple[str, str, str, float], QPixmap] = {}
        self._once: set[tuple[str, str, str, float]] = set()
        self._figures: dict[str, tuple[list[int], list[QPointF]]] = {}
        self._points: dict[tuple[int, int], list[QPointF]] = {}
        self._rows: OrderedDict[int, tuple[object, QPixmap]] = OrderedDict()
        """By the row's id: the row, which keeps its id from being given to another one, and its picture."""
        self._seen: dict[int, object] = {}

    def keep_only(self, rows: list[object]) -> None:
        """Drop the cache of rows that are gone."""
        alive = {id(row) for row in rows}
        for key in [key for key in self._seen if key not in alive]:
            del self._seen[key]
        for key in [key for key in self._rows if key not in alive]:
            del self._rows[key]

    def draw(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        """Paint row ``number``, from its picture if it has one. On a scrolled screen only a few rows are new.

        A row gets its picture when it is painted for the second time. A user who pages through a table sees most
        rows once.
        """
        key, ratio = id(model.rows[number]), p.device().devicePixelRatioF()
        if state.chosen or state.hovered or state.lit or key not in self._seen:
            self._seen[key] = model.rows[number]
            self.paint_row(p, model, number, slots, rect, state)
            return
        picture = self._rows[key][1] if key in self._rows else None
        if picture is None or picture.size() != rect.size() * ratio:
            picture = QPixmap(rect.size() * ratio)
            picture.setDevicePixelRatio(ratio)
            picture.fill(self.color("pane"))
            painter = QPainter(picture)
            waiting, self._figures = self._figures, {}
            self.paint_row(painter, model, number, slots, QRect(0, 0, rect.width(), rect.height()), state)
            self.finish(painter)
            self._figures = waiting
            painter.end()
            self._rows[key] = (model.rows[number], picture)
            while len(self._rows) > PICTURES:
                self._rows.popitem(last=False)
        p.drawPixmap(rect.topLeft(), picture)

    def finish(self, p: QPainter) -> None:
        """Paint the figures of all rows painted since the last call, with one call for each colour instead of one
        for each cell.
        """
        for tone, (glyphs, points) in self._figures.items():
            run = QGlyphRun()
            run.setRawFont(self._raw)
            run.setGlyphIndexes(glyphs)
            run.setPositions(points)
            p.setPen(self.color(tone))
            p.drawGlyphRun(_ORIGIN, run)
        self._figures.clear()

    def _add_figures(self, text: str, tone: str, x: int, base: int) -> bool:
        """Keep a text whose letters have one width for :meth:`finish`. Returns False if it has letters of other
        fonts.
        """
        try:
            glyphs = [self._glyphs[letter] for letter in text]
        except KeyError:
            return False
        points = self._points.get((x, base), [])
        if len(points) < len(text):
            if len(self._points) >= TEXTS:
                self._points.clear()
            points = self._points[x, base] = [QPointF(x + n * self._step, base) for n in range(len(text))]
        pending = self._figures.get(tone)
        if pending is None:
            self._figures[tone] = (glyphs, points[: len(text)])
        else:
            pending[0].extend(glyphs)
            pending[1].extend(points[: len(text)])
        return True

    def color(self, role: str) -> QColor:
        """A colour of the theme, looked up once."""
        color = self._colors.get(role)
        if color is None:
            color = self._colors[role] = C(role)
        return color

    def paint_row(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        """Paint row ``number`` of ``model`` into ``rect``."""
        look = model.look(number)
        self._paint_ground(p, rect, look, state)
        for section, strength in state.lit:
            self._paint_glow(p, rect, next((s for s in slots if s.section == section), None), section, strength)
        texts = model.texts(number)
        row = model.rows[number]
        words_from = look.words_from if look is not None and look.words else len(texts)
        plain = not (state.chosen or state.hovered or state.lit or (look is not None and look.fill))
        pen = TextPen(p, p.device().devicePixelRatioF() if plain else 0.0)
        for slot in slots:
            column, section = slot.column, slot.section
            if section >= words_from:
                if section == words_from and look is not None:
                    self._paint_words(p, rect, slot, look, state)
            elif section == 0 and not column.key:
                if look is not None and look.mark:
                    self._paint_mark(p, look.mark, slot.x + 14 * self._zoom, rect)
            elif column.paint == "chip":
                chip = column.chip(row) if column.chip is not None else None
                if chip is not None:
                    self.paint_chip(p, rect, slot, chip)
                    pen.forget()
            elif not texts[section]:
                continue
            elif column.paint == "line":
                self._paint_line(p, rect, slot, cast("Sequence[float]", column.value(row)))
                pen.forget()
            elif column.paint == "letters":
                self._paint_letters(p, rect, slot, texts[section])
                pen.forget()
            else:
                self._paint_text(pen, rect, slot, row, texts[section], look, state)
            if state.chosen and state.focused and section == state.current and column.key:
                p.fillRect(QRect(slot.x + PAD, rect.bottom() - 1, slot.width - 2 * PAD, 1), self.color("accent"))

    def _paint_ground(self, p: QPainter, rect: QRect, look: RowAppearance | None, state: RowState) -> None:
        if state.chosen:
            p.fillRect(rect, self.color("select" if state.focused else "idle"))
            p.fillRect(QRect(rect.left(), rect.top(), 3, rect.height()), self.color("accent"))
        elif look is not None and look.fill:
            p.fillRect(rect, self.color(look.fill))
        elif state.hovered:
            p.fillRect(rect, self.color("hover"))

    def _paint_glow(self, p: QPainter, rect: QRect, slot: Slot | None, section: int, strength: float) -> None:
        """Paint the background of a cell (section −1: of the row) that has just changed."""
        if section >= 0 and slot is None:
            return
        fill = QColor(self.color("glow"))
        fill.setAlphaF(strength)
        p.fillRect(rect if slot is None else QRect(slot.x, rect.top(), slot.width, rect.height()), fill)

    def _tone(self, column: Column, row: object, look: RowAppearance | None, state: RowState) -> str:
        tone = look.tone if look is not None else ""
        if not tone and column.tone is not None:
            tone = column.tone(row)
        if tone == "text3" and (state.chosen or (look is not None and look.fill)):
            return "text2"
        return tone or "text"

    def _paint_text(
        self, pen: TextPen, rect: QRect, slot: Slot, row: object, text: str, look: RowAppearance | None, state: RowState
    ) -> None:
        column, p = slot.column, pen.painter
        text_x, room = slot.x + PAD, slot.width - 2 * PAD
        if column.paint == "topic":
            self._paint_topic_bar(p, text, text_x, rect)
            pen.tone = ""
            text_x, room = text_x + round(NAME_INDENT * self._zoom), room - round(NAME_INDENT * self._zoom)
        name = "mono" if column.mono else "ui"
        if column.wrap and rect.height() >= self.lines_height(2):
            self._paint_lines(pen, QRect(text_x, rect.top(), room, rect.height()), column, row, text, look, state)
            return
        shown, width, font = self._fit(slot, text, name, room)
        link = column.jump is not None and (look is None or not look.tone) and column.jump(row) is not None
        tone = "accent" if link else self._tone(column, row, look, state)
        x = text_x + room - width if column.right else text_x
        base = rect.top() + (rect.height() + self._above[name]) // 2
        if pen.plain and font == "figures" and self._add_figures(shown, tone, x, base):
            if link and state.hot == slot.section:
                p.fillRect(QRect(x, base + 2, width, 1), self.color("accent"))
            return
        picture = self._picture_of(shown, font, tone, pen.plain, QSize(width, rect.height())) if pen.plain else None
        if picture is not None:
            p.drawPixmap(x - EDGE, rect.top(), picture)
        else:
            if font != pen.font:
                pen.font = font
                p.setFont(self._fonts[font])
            if tone != pen.tone:
                pen.tone = tone
                p.setPen(self.color(tone))
            p.drawText(x, base, shown)
        if link and state.hot == slot.section:
            p.fillRect(QRect(x, base + 2, width, 1), self.color("accent"))

    def lines_height(self, lines: int) -> int:
        """Height in px of a row with this many lines of text."""
        return round(ROW * self._zoom) + (lines - 1) * self._metrics["ui"].lineSpacing()

    def lines_of(self, column: Column, text: str, width: int) -> int:
        """Number of lines that ``text`` takes in a column of ``width`` px."""
        metrics = self._metrics["mono" if column.mono else "ui"]
        room = QRect(0, 0, max(1, width - 2 * PAD), 1 << 16)
        height = metrics.boundingRect(room, WRAPPED, breakable(text, metrics, room.width())).height()
        return max(1, round(height / metrics.lineSpacing()))

    def _paint_lines(
        self,
        pen: TextPen,
        box: QRect,
        column: Column,
        row: object,
        text: str,
        look: RowAppearance | None,
        state: RowState,
    ) -> None:
        link = column.jump is not None and column.jump(row) is not None
        p, name = pen.painter, "mono" if column.mono else "ui"
        p.setFont(self._fonts[name])
        p.setPen(self.color("accent" if link else self._tone(column, row, look, state)))
        p.drawText(box, WRAPPED, fitted_text(text, self._metrics[name], box.size()))
        pen.forget()

    def _picture_of(self, text: str, font: str, tone: str, ratio: float, size: QSize) -> QPixmap | None:
        """The picture of a text on the pane's background, from its second use on. Names, numbers and tags come
        often, and copying a picture costs a tenth of the text layout.
        """
        key = (text, font, tone, ratio)
        picture = self._words.get(key)
        if picture is not None:
            return picture
        if key not in self._once:
            if len(self._once) >= WORDS_ONCE:
                self._once.clear()
            self._once.add(key)
            return None
        if len(self._words) >= WORDS:
            self._words.clear()
        picture = QPixmap(QSize(size.width() + EDGE + END, size.height()) * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(self.color("pane"))
        p = QPainter(picture)
        p.setFont(self._fonts[font])
        p.setPen(self.color(tone))
        above = self._above["mono" if font == "figures" else font]
        p.drawText(EDGE, (size.height() + above) // 2, text)
        p.end()
        self._words[key] = picture
        return picture

    def text_span(self, model: RecordTable, number: int, slot: Slot) -> tuple[int, int]:
        """Left edge and width in px of a cell's displayed text."""
        text = model.texts(number)[slot.section]
        if not text:
            return slot.x, 0
        text_x, room = slot.x + PAD, slot.width - 2 * PAD
        if slot.column.paint == "topic":
            text_x, room = text_x + round(NAME_INDENT * self._zoom), room - round(NAME_INDENT * self._zoom)
        _, width, _ = self._fit(slot, text, "mono" if slot.column.mono else "ui", room)
        return (text_x + room - width if slot.column.right else text_x), width

    def cell_width(self, column: Column, row: object, text: str) -> int:
        """Width in px that a cell needs to show ``text`` completely."""
        z = self._zoom
        if column.paint == "chip":
            chip = column.chip(row) if column.chip is not None else None
            word = chip.word if chip is not None else ""
            return 2 * PAD + (self._metrics["chip"].horizontalAdvance(word) + round(26 * z) if word else round(12 * z))
        if column.paint == "line":
            return 2 * PAD + round(MIN_LINE_WIDTH * z)
        if column.paint == "letters":
            metrics = self._metrics["letter"]
            return 2 * PAD + sum(round(metrics.horizontalAdvance(letter) + 13 * z) for letter in text)
        inset = round(NAME_INDENT * z) if column.paint == "topic" else 0
        if column.mono and text.isascii():
            return 2 * PAD + inset + self._digit * len(text)
        return 2 * PAD + inset + self._metrics["mono" if column.mono else "ui"].horizontalAdvance(text) + 1

    def words_width(self, look: RowAppearance) -> int:
        """Width in px that the sentence of a whole row needs."""
        return 3 * PAD + self._metrics["strong" if look.strong else "ui"].horizontalAdvance(look.words)

    def shortened(self, column: Column, text: str, width: int) -> str:
        """The text that a column of ``width`` px shows of a name."""
        inset = round(NAME_INDENT * self._zoom) if column.paint == "topic" else 0
        return self._fitted(text, "mono" if column.mono else "ui", width - 2 * PAD - inset, column.elide)[0]

    def _fit(self, slot: Slot, text: str, name: str, room: int) -> tuple[str, int, str]:
        """Cut ``text`` to ``room`` px in the column's way. Returns the text, its width and its font."""
        mode = slot.column.elide
        key = (text, name, room, mode)
        fitted = self._cut.get(key)
        if fitted is None:
            if len(self._cut) >= TEXTS:
                self._cut.clear()
            shown, width = self._fitted(text, name, room, mode)
            fitted = self._cut[key] = (shown, width, "figures" if name == "mono" and shown.isascii() else name)
        return fitted

    def _fitted(self, text: str, name: str, room: int, mode: str) -> tuple[str, int]:
        metrics = self._metrics[name]
        if mode == "middle" and alike_at_the_start(text):
            mode = "left"
        if name == "mono" and text.isascii():
            keep = max(0, room // self._digit)
            if len(text) > keep and mode != "never":
                text = CUTS[mode](text, keep)
            return text, self._digit * len(text)
        width = metrics.horizontalAdvance(text)
        if width > room and mode != "never":
            text = metrics.elidedText(text, ELIDES[mode], max(room, 0))
            width = metrics.horizontalAdvance(text)
        return text, width

    def _paint_words(self, p: QPainter, rect: QRect, slot: Slot, look: RowAppearance, state: RowState) -> None:
        name = "strong" if look.strong else "ui"
        tone = look.tone or "text3"
        p.setFont(self._fonts[name])
        p.setPen(self.color("text2" if tone == "text3" and (state.chosen or look.fill) else tone))
        metrics = self._metrics[name]
        room = rect.right() - slot.x - 2 * PAD
        base = rect.top() + (rect.height() + metrics.ascent() - metrics.descent()) // 2
        p.drawText(slot.x + PAD, base, metrics.elidedText(look.words, Qt.TextElideMode.ElideRight, room))

    def _paint_topic_bar(self, p: QPainter, topic: str, x: int, rect: QRect) -> None:
        draw_lead(p, topic, self.colours.color(topic), x, rect.center().y() + 1, self._zoom)

    def _paint_line(self, p: QPainter, rect: QRect, slot: Slot, values: Sequence[float]) -> None:
        """Paint values as a line from 0 up, with a gap where a value is not known."""
        known = [value for value in values if value == value]  # noqa: PLR0124  NaN is not equal to itself
        room = QRectF(slot.x + PAD, rect.top() + 5, slot.width - 2 * PAD, rect.height() - 10)
        top, step = max([*known, 1.0]), room.width() / max(len(values) - 1, 1)
        p.save()
        p.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        p.setPen(QPen(self.color("posLog"), 1.4))
        line: list[QPointF] = []
        for index, value in enumerate([*values, float("nan")]):
            if value == value:  # noqa: PLR0124
                line.append(QPointF(room.left() + index * step, room.bottom() - value / top * room.height()))
            elif line:
                p.drawPolyline(line) if len(line) > 1 else p.drawPoint(line[0])
                line = []
        p.restore()

    def _paint_letters(self, p: QPainter, rect: QRect, slot: Slot, text: str) -> None:
        """Paint letters in boxes from pictures; there are only a dozen of them."""
        x, ratio = slot.x + PAD, p.device().devicePixelRatioF()
        for letter in text:
            box = self._letters.get((letter, ratio))
            if box is None:
                box = self._letters[letter, ratio] = self._letter_box(letter, ratio)
            width = round(box.width() / ratio)
            p.drawPixmap(x, round(rect.center().y() - 7.5 * self._zoom), box)
            x += width + round(4 * self._zoom)

    def _letter_box(self, letter: str, ratio: float) -> QPixmap:
        z = self._zoom
        width, height = round(self._metrics["letter"].horizontalAdvance(letter) + 9 * z), round(16 * z)
        picture = QPixmap(QSize(width, height) * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        box = QRectF(0, 0, width, height)
        p = QPainter(picture)
        p.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        p.setPen(QPen(self.color("line"), 1))
        p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        p.setFont(self._fonts["letter"])
        p.setPen(self.color("text2"))
        p.drawText(box, Qt.AlignmentFlag.AlignCenter, letter)
        p.end()
        return picture

    def paint_chip(self, p: QPainter, rect: QRect, slot: Slot, chip: Chip) -> None:
        """Paint a status: the mark alone, or mark and word on their fill."""
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
        self._paint_mark(p, chip.kind, box.left() + 11 * z, rect, CHIP_INK[chip.kind] if chip.kind == "unread" else "")
        p.setFont(self._fonts["chip"])
        p.setPen(self.color(CHIP_INK.get(chip.kind, chip.kind)))
        shown = metrics.elidedText(chip.word, Qt.TextElideMode.ElideRight, int(width - 22 * z))
        p.drawText(box.adjusted(21 * z, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_mark(self, p: QPainter, kind: str, x: float, rect: QRect, role: str = "") -> None:
        """Paint a mark from its picture. Drawing a tick in every row would cost more than all texts."""
        ratio = p.device().devicePixelRatioF()
        picture = self._pictures.get((kind + role, ratio))
        side = round(16 * self._zoom)
        if picture is None:
            picture = QPixmap(round(side * ratio), round(side * ratio))
            picture.setDevicePixelRatio(ratio)
            picture.fill(Qt.GlobalColor.transparent)
            painter = QPainter(picture)
            mark(painter, kind, QPointF(side / 2, side / 2), 4.5 * self._zoom, role)
            painter.end()
            self._pictures[kind + role, ratio] = picture
        p.drawPixmap(round(x - side / 2), rect.top() + (rect.height() - side) // 2 + 1, picture)


class BarPainter(RowPainter):
    """Paints a bar in the column ``key``. ``bar(row)`` returns (topic, share from 0 to 1), or None for rows without
    a topic. ``role`` is the colour of bars without a topic.
    """

    def __init__(self, key: str, bar: Callable[[Record], tuple[str, float] | None], *, role: str = "text3") -> None:
        super().__init__()
        self._key, self._bar, self._role = key, bar, role
        self._bare = False

    def paint_row(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        topic_and_share = self._bar(model.rows[number])
        self._bare = topic_and_share is None
        super().paint_row(p, model, number, slots, rect, state)
        if topic_and_share is None:
            return
        topic, share = topic_and_share
        for slot in slots:
            if slot.column.key == self._key:
                color = self.colours.color(topic) if topic else None
                color = C(self._role) if color is None else color
                color.setAlphaF(0.24)
                p.fillRect(
                    QRectF(slot.x + 4, rect.top() + 4, max((slot.width - 8) * share, 1.0), rect.height() - 8), color
                )

    def _paint_topic_bar(self, p: QPainter, topic: str, x: int, rect: QRect) -> None:
        if not self._bare:
            super()._paint_topic_bar(p, topic, x, rect)
