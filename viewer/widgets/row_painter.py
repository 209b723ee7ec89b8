"""Painting the rows of a table: ground, marks, topic bars, chips, links and text.

One painter draws all cells of the screen in one pass over texts that are already cut to their columns: that is what
keeps a frame at a few milliseconds. It knows colours and fonts only through the theme.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

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
from viewer.widgets.columns import Chip, Column, Record, RowLook
from viewer.widgets.paint import CHIP_FILL, CHIP_INK, mark
from viewer.widgets.record_table import RecordTable
from viewer.widgets.topic_lead import ROOM, draw_lead

PAD = 8
TEXTS = 8192
PICTURES = 160
"""Rows whose pictures are kept: some screens' worth, 20 MB at most on a wide window."""
WORDS, WORDS_ONCE = 400, 8192
"""Texts whose pictures are kept, and texts that are remembered until they come a second time."""
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
"""Px in front of a text and behind it that its letters may reach into: less than the room between two columns."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A column on the screen: its number, left edge and width in px."""

    section: int
    x: int
    width: int
    column: Column


@dataclass(frozen=True, slots=True)
class RowState:
    """What the view knows of a row: chosen, the view has the focus, the pointer is over the link in ``hot``; ``lit``
    are its glowing sections (−1: all of it) and how strongly.
    """

    chosen: bool = False
    focused: bool = False
    hot: int = -1
    current: int = -1
    hovered: bool = False
    lit: tuple[tuple[int, float], ...] = ()


def breakable(text: str, metrics: QFontMetrics, room: int) -> str:
    """``text`` with places to break in words that are wider than ``room`` px by themselves."""
    return " ".join(word if metrics.horizontalAdvance(word) <= room else BREAK.join(word) for word in text.split(" "))


class _Pen:
    """Sets fonts and colours of a painter only where they change: most cells beside each other share them.

    ``plain`` is the pixel ratio where the row's ground is the pane's own, else 0.
    """

    __slots__ = ("font", "painter", "plain", "tone")

    def __init__(self, painter: QPainter, plain: float) -> None:
        self.painter, self.plain = painter, plain
        self.font = self.tone = ""

    def forget(self) -> None:
        """Somebody else has used the painter."""
        self.font = self.tone = ""


class RowPainter:
    """Draws rows of a :class:`RecordTable`; holds fonts, cut texts and mark pictures until :meth:`forget`."""

    def __init__(self) -> None:
        self.colours = TopicColours()
        self._order: tuple[str, ...] = ()
        self.forget()

    def use(self, colours: TopicColours) -> None:
        """The topics' colours of the store whose rows are drawn."""
        self.colours = colours
        if colours.order != self._order:
            self._order = colours.order
            self._rows.clear()

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
        """Columns moved: texts are cut anew."""
        self._cut: dict[tuple[str, str, int, str], tuple[str, int, str]] = {}
        self._words: dict[tuple[str, str, str, float], QPixmap] = {}
        self._once: set[tuple[str, str, str, float]] = set()
        self._figures: dict[str, tuple[list[int], list[QPointF]]] = {}
        self._points: dict[tuple[int, int], list[QPointF]] = {}
        self._rows: OrderedDict[int, tuple[object, QPixmap]] = OrderedDict()
        """By the row's id: the row, which keeps its id from being given to another one, and its picture."""
        self._seen: dict[int, object] = {}

    def keep_only(self, rows: list[object]) -> None:
        """Drop what is kept for rows that are gone."""
        alive = {id(row) for row in rows}
        for key in [key for key in self._seen if key not in alive]:
            del self._seen[key]
        for key in [key for key in self._rows if key not in alive]:
            del self._rows[key]

    def draw(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        """Row ``number``, from its picture where it has one: of the rows of a scrolled screen only a few are new.

        A row gets its picture when it is painted for the second time: who leafs by pages sees most rows once.
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
        """Draw the figures of all rows painted since the last time: one call a colour, where each cell took one."""
        for tone, (glyphs, points) in self._figures.items():
            run = QGlyphRun()
            run.setRawFont(self._raw)
            run.setGlyphIndexes(glyphs)
            run.setPositions(points)
            p.setPen(self.color(tone))
            p.drawGlyphRun(_ORIGIN, run)
        self._figures.clear()

    def _add_figures(self, text: str, tone: str, x: int, base: int) -> bool:
        """Keep a text of one width a letter for :meth:`finish`; False where it has letters of other fonts."""
        try:
            glyphs = [self._glyphs[letter] for letter in text]
        except KeyError:
            return False
        points = self._points.get((x, base), [])
        if len(points) < len(text):
            if len(self._points) >= TEXTS:
                self._points.clear()
            points = self._points[x, base] = [QPointF(x + n * self._step, base) for n in range(len(text))]
        found = self._figures.get(tone)
        if found is None:
            self._figures[tone] = (glyphs, points[: len(text)])
        else:
            found[0].extend(glyphs)
            found[1].extend(points[: len(text)])
        return True

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
        for section, strength in state.lit:
            self._paint_glow(p, rect, next((s for s in slots if s.section == section), None), section, strength)
        texts = model.texts(number)
        row = model.rows[number]
        words_from = look.words_from if look is not None and look.words else len(texts)
        plain = not (state.chosen or state.hovered or state.lit or (look is not None and look.fill))
        pen = _Pen(p, p.device().devicePixelRatioF() if plain else 0.0)
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
            elif column.paint == "letters":
                self._paint_letters(p, rect, slot, texts[section])
                pen.forget()
            else:
                self._paint_text(pen, rect, slot, row, texts[section], look, state)
            if state.chosen and state.focused and section == state.current and column.key:
                p.fillRect(QRect(slot.x + PAD, rect.bottom() - 1, slot.width - 2 * PAD, 1), self.color("accent"))

    def _paint_ground(self, p: QPainter, rect: QRect, look: RowLook | None, state: RowState) -> None:
        if state.chosen:
            p.fillRect(rect, self.color("select" if state.focused else "idle"))
            p.fillRect(QRect(rect.left(), rect.top(), 3, rect.height()), self.color("accent"))
        elif look is not None and look.fill:
            p.fillRect(rect, self.color(look.fill))
        elif state.hovered:
            p.fillRect(rect, self.color("hover"))

    def _paint_glow(self, p: QPainter, rect: QRect, slot: Slot | None, section: int, strength: float) -> None:
        """The ground of a cell (section −1: of the row) that has just changed."""
        if section >= 0 and slot is None:
            return
        fill = QColor(self.color("glow"))
        fill.setAlphaF(strength)
        p.fillRect(rect if slot is None else QRect(slot.x, rect.top(), slot.width, rect.height()), fill)

    def _tone(self, column: Column, row: object, look: RowLook | None, state: RowState) -> str:
        tone = look.tone if look is not None else ""
        if not tone and column.tone is not None:
            tone = column.tone(row)
        if tone == "text3" and (state.chosen or (look is not None and look.fill)):
            return "text2"
        return tone or "text"

    def _paint_text(
        self, pen: _Pen, rect: QRect, slot: Slot, row: object, text: str, look: RowLook | None, state: RowState
    ) -> None:
        column, p = slot.column, pen.painter
        left, room = slot.x + PAD, slot.width - 2 * PAD
        if column.paint == "topic":
            self._paint_topic_bar(p, text, left, rect)
            pen.tone = ""
            left, room = left + round(ROOM * self._zoom), room - round(ROOM * self._zoom)
        name = "mono" if column.mono else "ui"
        if column.wrap and rect.height() >= self.lines_height(2):
            self._paint_lines(pen, QRect(left, rect.top(), room, rect.height()), column, row, text, look, state)
            return
        shown, width, font = self._fit(slot, text, name, room)
        link = column.jump is not None and (look is None or not look.tone) and column.jump(row) is not None
        tone = "accent" if link else self._tone(column, row, look, state)
        x = left + room - width if column.right else left
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
        """Px of a row whose texts run over so many lines."""
        return round(ROW * self._zoom) + (lines - 1) * self._metrics["ui"].lineSpacing()

    def lines_of(self, column: Column, text: str, width: int) -> int:
        """Lines that ``text`` takes in a column of ``width`` px."""
        metrics = self._metrics["mono" if column.mono else "ui"]
        room = QRect(0, 0, max(1, width - 2 * PAD), 1 << 16)
        height = metrics.boundingRect(room, WRAPPED, breakable(text, metrics, room.width())).height()
        return max(1, round(height / metrics.lineSpacing()))

    def _paint_lines(
        self, pen: _Pen, box: QRect, column: Column, row: object, text: str, look: RowLook | None, state: RowState
    ) -> None:
        """A text in as many lines as it takes."""
        link = column.jump is not None and column.jump(row) is not None
        p, name = pen.painter, "mono" if column.mono else "ui"
        p.setFont(self._fonts[name])
        p.setPen(self.color("accent" if link else self._tone(column, row, look, state)))
        p.drawText(box, WRAPPED, breakable(text, self._metrics[name], box.width()))
        pen.forget()

    def _picture_of(self, text: str, font: str, tone: str, ratio: float, size: QSize) -> QPixmap | None:
        """A text on the pane's ground as a picture, from the second time on: names, numbers and tags come again and
        again, and a copy costs a tenth of laying the text out.
        """
        key = (text, font, tone, ratio)
        found = self._words.get(key)
        if found is not None:
            return found
        if key not in self._once:
            if len(self._once) >= WORDS_ONCE:
                self._once.clear()
            self._once.add(key)
            return None
        if len(self._words) >= WORDS:
            self._words.clear()
        found = QPixmap(QSize(size.width() + EDGE + END, size.height()) * ratio)
        found.setDevicePixelRatio(ratio)
        found.fill(self.color("pane"))
        p = QPainter(found)
        p.setFont(self._fonts[font])
        p.setPen(self.color(tone))
        above = self._above["mono" if font == "figures" else font]
        p.drawText(EDGE, (size.height() + above) // 2, text)
        p.end()
        self._words[key] = found
        return found

    def text_span(self, model: RecordTable, number: int, slot: Slot) -> tuple[int, int]:
        """Left edge and width in px of a cell's text as it is shown."""
        text = model.texts(number)[slot.section]
        if not text:
            return slot.x, 0
        left, room = slot.x + PAD, slot.width - 2 * PAD
        if slot.column.paint == "topic":
            left, room = left + round(ROOM * self._zoom), room - round(ROOM * self._zoom)
        _, width, _ = self._fit(slot, text, "mono" if slot.column.mono else "ui", room)
        return (left + room - width if slot.column.right else left), width

    def cell_width(self, column: Column, row: object, text: str) -> int:
        """Px that a cell with ``text`` needs to be shown whole."""
        z = self._zoom
        if column.paint == "chip":
            chip = column.chip(row) if column.chip is not None else None
            word = chip.word if chip is not None else ""
            return 2 * PAD + (self._metrics["chip"].horizontalAdvance(word) + round(26 * z) if word else round(12 * z))
        if column.paint == "letters":
            metrics = self._metrics["letter"]
            return 2 * PAD + sum(round(metrics.horizontalAdvance(letter) + 13 * z) for letter in text)
        inset = round(ROOM * z) if column.paint == "topic" else 0
        if column.mono and text.isascii():
            return 2 * PAD + inset + self._digit * len(text)
        return 2 * PAD + inset + self._metrics["mono" if column.mono else "ui"].horizontalAdvance(text) + 1

    def words_width(self, look: RowLook) -> int:
        """Px that the sentence of a whole row needs."""
        return 3 * PAD + self._metrics["strong" if look.strong else "ui"].horizontalAdvance(look.words)

    def shortened(self, column: Column, text: str, width: int) -> str:
        """What a column of ``width`` px shows of a name."""
        inset = round(ROOM * self._zoom) if column.paint == "topic" else 0
        return self._fitted(text, "mono" if column.mono else "ui", width - 2 * PAD - inset, column.elide)[0]

    def _fit(self, slot: Slot, text: str, name: str, room: int) -> tuple[str, int, str]:
        """``text`` cut to ``room`` px as its column wants, the width of what is left, and its font."""
        mode = slot.column.elide
        key = (text, name, room, mode)
        found = self._cut.get(key)
        if found is None:
            if len(self._cut) >= TEXTS:
                self._cut.clear()
            shown, width = self._fitted(text, name, room, mode)
            found = self._cut[key] = (shown, width, "figures" if name == "mono" and shown.isascii() else name)
        return found

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
        draw_lead(p, topic, self.colours.color(topic), x, rect.center().y() + 1, self._zoom)

    def _paint_letters(self, p: QPainter, rect: QRect, slot: Slot, text: str) -> None:
        """Letters in boxes, copied from pictures: there are a dozen of them."""
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
        self._paint_mark(p, chip.kind, box.left() + 11 * z, rect, CHIP_INK[chip.kind] if chip.kind == "unread" else "")
        p.setFont(self._fonts["chip"])
        p.setPen(self.color(CHIP_INK.get(chip.kind, chip.kind)))
        shown = metrics.elidedText(chip.word, Qt.TextElideMode.ElideRight, int(width - 22 * z))
        p.drawText(box.adjusted(21 * z, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_mark(self, p: QPainter, kind: str, x: float, rect: QRect, role: str = "") -> None:
        """Marks are drawn once and copied: a tick in every row would cost more than all texts."""
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
    """``bar(row)`` gives (topic, share from 0 to 1), None for rows that are no topic's; ``key`` names the column.
    ``role`` is the colour of bars of no topic.
    """

    def __init__(self, key: str, bar: Callable[[Record], tuple[str, float] | None], *, role: str = "text3") -> None:
        super().__init__()
        self._key, self._bar, self._role = key, bar, role
        self._bare = False

    def paint_row(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        """The row, and the bar."""
        found = self._bar(model.rows[number])
        self._bare = found is None
        super().paint_row(p, model, number, slots, rect, state)
        if found is None:
            return
        topic, share = found
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
