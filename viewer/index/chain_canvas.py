"""Drawing of one key's way through the index files: a lane a file, its slot, and the entries of the chain from left
to right.

Newest file on top, as the query walks. Arrow keys walk the cards, Enter follows the chosen one to its unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolTip, QWidget

from viewer.index.trace_lanes import Box, ChainCard, ChainLane, LanePlace, place_lanes
from viewer.look.assets import tr, tr_plural
from viewer.look.theme import C, follow, mono, scale, ui
from viewer.widgets.focus import FocusRing
from viewer.widgets.paint import mark
from viewer.widgets.record_menu import MenuOpener

VERDICTS = {  # verdict: shape, words
    "match": ("ok", "match"),
    "collision": ("warn", "collision"),
    "hashDiffers": ("chat", "other hash"),
    "outOfTime": ("out", "out of time"),
    "gone": ("error", "gone"),
    "loop": ("loop", "loop, stopped"),
    "beyondCount": ("error", "beyond count"),
    "empty": ("out", "empty"),
}
_EDGE = {"ok": "ok", "warn": "warn", "error": "error", "loop": "error"}
_FILL = {"ok": "okFill", "warn": "warnFill", "error": "errorFill", "loop": "errorFill"}
_WORD = {"chat": "text3", "out": "text2", "loop": "error"}


class ChainCanvas(QWidget):
    """Lanes of cards. ``chosen(step)`` as the choice moves, ``stepFollowed(step)`` on Enter or a double click."""

    chosen = Signal(object)
    stepFollowed = Signal(object)

    def __init__(self, menu_of: Callable[[int], QMenu | None] = lambda _step: None) -> None:
        """``menu_of`` returns the menu of a step."""
        super().__init__()
        self._menu_of = menu_of
        self.setObjectName("trace.chain")
        self.setAccessibleName(tr("Chain of the traced key"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        FocusRing(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._lanes: tuple[ChainLane, ...] = ()
        self._places: list[LanePlace] = []
        self._chosen = -1
        MenuOpener(self, self._menu_at)
        follow(self, self._arrange)

    def show_lanes(self, lanes: Sequence[ChainLane]) -> None:
        """Draw other lanes; the choice is gone with the old ones."""
        self._lanes, self._chosen = tuple(lanes), -1
        self._arrange()

    def choose(self, step: int) -> None:
        """Frame the card of row ``step``; no card if none shows that step."""
        self._chosen = step
        self._describe()
        self.update()

    def place_of(self, step: int) -> Box | None:
        """Return the box of the card of a step."""
        for _, card, box in self._cards():
            if card.step <= step < card.step + card.folded:
                return box
        return None

    def sizeHint(self) -> QSize:
        return QSize(900, self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        self._places, height = place_lanes(self._lanes, max(640, self.width()), scale())
        self.setFixedHeight(int(height))
        self.update()

    def _cards(self) -> list[tuple[LanePlace, ChainCard, Box]]:
        return [
            (place, card, box)
            for place in self._places
            for card, box in zip(place.lane.cards, place.cards, strict=not place.lane.quiet)
        ]

    # ---- choosing ------------------------------------------------------------------------------------------------
    def _card_at(self, x: float, y: float) -> ChainCard | None:
        return next((card for _, card, box in self._cards() if box.holds(x, y)), None)

    def _menu_at(self, point: QPointF | None) -> tuple[QMenu, QPointF] | None:
        """The menu of the card under the point, or of the chosen one: that of its row below."""
        cards = self._cards()
        if point is None:
            card_box = next(((c, b) for _, c, b in cards if c.step <= self._chosen < c.step + c.folded), None)
        else:
            card_box = next(((c, b) for _, c, b in cards if b.holds(point.x(), point.y())), None)
        if card_box is None:
            return None
        self._pick(card_box[0])
        menu = self._menu_of(card_box[0].step)
        return (menu, QPointF(card_box[1].x, card_box[1].y + card_box[1].height)) if menu is not None else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        card = self._card_at(event.position().x(), event.position().y())
        if card is not None:
            self._pick(card)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        card = self._card_at(event.position().x(), event.position().y())
        if card is not None and card.offset is not None:
            self.stepFollowed.emit(card.step)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        card = self._card_at(event.position().x(), event.position().y())
        if card is None:
            QToolTip.hideText()
            return
        QToolTip.showText(event.globalPosition().toPoint(), card_text(card), self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        cards = self._cards()
        position = next((n for n, (_, c, _b) in enumerate(cards) if c.step <= self._chosen < c.step + c.folded), -1)
        key = event.key()
        if not cards:
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_Right:
            self._pick(cards[min(position + 1, len(cards) - 1)][1])
        elif key == Qt.Key.Key_Left:
            self._pick(cards[max(position - 1, 0)][1])
        elif key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self._pick(self._neighbour(cards, position, 1 if key == Qt.Key.Key_Down else -1))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and position >= 0:
            self.stepFollowed.emit(cards[position][1].step)
        else:
            super().keyPressEvent(event)

    def _neighbour(self, cards: list[tuple[LanePlace, ChainCard, Box]], position: int, way: int) -> ChainCard:
        if position < 0:
            return cards[0][1]
        _, chosen_card, box = cards[position]
        rows = sorted({b.y for _, _, b in cards if (b.y - box.y) * way > 0}, key=lambda y: y * way)
        if not rows:
            return chosen_card
        return min((c for c in cards if c[2].y == rows[0]), key=lambda c: abs(c[2].x - box.x))[1]

    def _pick(self, card: ChainCard) -> None:
        self.choose(card.step)
        self.chosen.emit(card.step)

    def _describe(self) -> None:
        card = next((c for _, c, _b in self._cards() if c.step <= self._chosen < c.step + c.folded), None)
        self.setAccessibleDescription(card_text(card) if card else "")

    # ---- painting ------------------------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        p = QPainter(self)
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(event.rect(), C("pane"))
        shown = QRectF(event.rect())
        for number, place in enumerate(self._places, 1):
            if shown.intersects(_rect(place.box)):
                self._paint_lane(p, place, number)
        p.end()

    def _paint_lane(self, p: QPainter, place: LanePlace, number: int) -> None:
        lane, box, z = place.lane, _rect(place.box), scale()
        p.setPen(QPen(C("hair"), 1))
        p.setBrush(C("pane") if lane.chosen else C("errorFill") if lane.damaged else C("sunken"))
        p.drawRoundedRect(box, 5, 5)
        walked = lane.chosen and not lane.quiet
        top = box.top() + (10 if walked else 11) * z
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("accent") if lane.chosen else C("line"))
        p.drawEllipse(QPointF(box.left() + 20 * z, top + 9 * z), 10 * z, 10 * z)
        p.setFont(ui(12, 600))
        p.setPen(C("accentText") if lane.chosen else C("text2"))
        p.drawText(QRectF(box.left() + 10 * z, top - z, 20 * z, 20 * z), Qt.AlignmentFlag.AlignCenter, str(number))
        p.setFont(mono(12, 600))
        p.setPen(C("text") if lane.chosen else C("text2"))
        _text(p, box.left() + 38 * z, top, 172 * z, 18 * z, lane.name)
        if walked:
            self._paint_walk(p, place)
        else:
            self._paint_line(p, lane, box, top)

    def _paint_line(self, p: QPainter, lane: ChainLane, box: QRectF, top: float) -> None:
        z = scale()
        p.setFont(ui(12))
        p.setPen(C("text2"))
        _text(p, box.left() + 192 * z, top, 200 * z, 18 * z, lane.span)
        kind = "chat" if lane.quiet else "error" if lane.damaged else "out"
        mark(p, kind, QPointF(box.left() + 400 * z, top + 10 * z))
        words_left = box.left() + 414 * z
        p.setPen(C("error" if lane.damaged else "text2"))
        _text(p, words_left, top, box.right() - words_left - 10, 18 * z, lane.quiet or lane.why)

    def _paint_walk(self, p: QPainter, place: LanePlace) -> None:
        lane, box, z = place.lane, _rect(place.box), scale()
        top = box.top() + 10 * z
        p.setFont(ui(12))
        p.setPen(C("text2"))
        _text(p, box.left() + 38 * z, top + 21 * z, 172 * z, 18 * z, lane.span)
        p.setPen(C("text3"))
        words = QRectF(box.left() + 38 * z, top + 40 * z, 168 * z, 48 * z)
        p.drawText(words, Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap, lane.why)
        p.fillRect(QRectF(box.left() + 212 * z, top, 1, 86 * z), C("hair"))
        slot = _rect(place.slot or place.box)
        self._paint_slot(p, lane, slot)
        previous_box = slot
        for card, card_box in zip(lane.cards, place.cards, strict=True):
            card_rect = _rect(card_box)
            _arrow(p, previous_box, card_rect)
            self._paint_card(p, card, card_rect)
            previous_box = card_rect
        if lane.loop_to is not None and place.cards:
            self._paint_loop(p, place)
        if place.note is not None:
            self._paint_note(p, lane, _rect(place.note))

    def _paint_slot(self, p: QPainter, lane: ChainLane, slot: QRectF) -> None:
        z = scale()
        p.setFont(ui(11))
        p.setPen(C("text2"))
        _text(p, slot.left(), slot.top() - 20 * z, slot.width(), 16 * z, tr("slot"))
        p.setPen(QPen(C("accent"), 1.5))
        p.setBrush(C("select"))
        p.drawRect(slot)
        p.setFont(mono(12, 600))
        p.setPen(C("accent"))
        p.drawText(slot, Qt.AlignmentFlag.AlignCenter, "" if lane.slot is None else f"{lane.slot:,}")
        p.setFont(mono(11))
        p.setPen(C("text3"))
        words = f"→ {lane.first:,}" if lane.first else tr("empty: no entry")
        _text(p, slot.left(), slot.bottom() + 2, slot.width() + 26 * z, 16 * z, words)

    def _paint_card(self, p: QPainter, card: ChainCard, box: QRectF) -> None:
        shape, word = VERDICTS.get(card.verdict, ("chat", card.verdict))
        good = card.verdict == "match"
        style = Qt.PenStyle.DashLine if card.verdict in ("outOfTime", "empty") else Qt.PenStyle.SolidLine
        p.setPen(QPen(C(_EDGE.get(shape, "line")), 2 if good else 1.2, style))
        p.setBrush(C(_FILL.get(shape, "pane")))
        p.drawRoundedRect(box, 4, 4)
        if card.step <= self._chosen < card.step + card.folded:
            p.setPen(QPen(C("accent"), 2))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRoundedRect(box.adjusted(-3, -3, 3, 3), 6, 6)
        if card.folded > 1:
            self._paint_folded(p, card, box)
            return
        z = scale()
        inner = box.width() - 18 * z
        p.setFont(ui(12, 600))
        width = QFontMetrics(p.font()).horizontalAdvance(tr(word))
        mark(p, shape, QPointF(box.right() - width - 19 * z, box.top() + 14 * z), 4)
        p.setPen(C(_WORD.get(shape, shape)))
        _text(p, box.right() - width - 9 * z, box.top() + 5 * z, width + 4, 17 * z, tr(word))
        p.setFont(mono(12, 600))
        p.setPen(C("text"))
        _text(p, box.left() + 9 * z, box.top() + 5 * z, inner - width - 14 * z, 17 * z, f"{card.entry:,}")
        p.setFont(mono(11))
        p.setPen(C("text") if card.verdict in ("match", "outOfTime") else C("text2"))
        key = QFontMetrics(p.font()).elidedText(card.key, Qt.TextElideMode.ElideMiddle, int(inner))
        _text(p, box.left() + 9 * z, box.top() + 25 * z, inner + 4, 16 * z, key)
        if card.offset is not None:
            p.setPen(C("accent"))
            _text(p, box.left() + 9 * z, box.top() + 42 * z, inner, 16 * z, f"{card.offset:,}")
        p.setPen(C("text2"))
        when = QRectF(box.left() + 9 * z, box.top() + 42 * z, inner, 16 * z)
        p.drawText(when, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, card.when)
        p.setFont(ui(11))
        _text(p, box.left() + 9 * z, box.top() + 60 * z, inner, 16 * z, card.note)

    def _paint_folded(self, p: QPainter, card: ChainCard, box: QRectF) -> None:
        z = scale()
        mark(p, "chat", QPointF(box.left() + 14 * z, box.top() + 22 * z), 4)
        p.setFont(ui(12, 600))
        p.setPen(C("text2"))
        _text(
            p,
            box.left() + 24 * z,
            box.top() + 13 * z,
            box.width() - 30 * z,
            18 * z,
            tr_plural("{n:,} other hash", "{n:,} other hashes", n=card.folded),
        )
        p.setFont(ui(11))
        p.setPen(C("text3"))
        _text(p, box.left() + 9 * z, box.top() + 36 * z, box.width() - 14 * z, 16 * z, tr("they share only the slot"))

    def _paint_loop(self, p: QPainter, place: LanePlace) -> None:
        target = next(
            (box for card, box in zip(place.lane.cards, place.cards, strict=True) if card.entry == place.lane.loop_to),
            None,
        )
        if target is None:
            return
        a, b, z = _rect(place.cards[-1]), _rect(target), scale()
        out, base_y = a.right() + 18 * z, a.bottom() + 7 * z
        path = QPainterPath(QPointF(a.right(), a.center().y()))
        path.lineTo(out, a.center().y())
        path.lineTo(out, base_y)
        if b.top() < a.top():  # back to an earlier row: around the cards, through the gutter on their left
            gutter, under = place.cards[0].x - 26 * z, b.bottom() + 9 * z
            path.lineTo(gutter, base_y)
            path.lineTo(gutter, under)
            base_y = under
        path.lineTo(b.left() + 24 * z, base_y)
        path.lineTo(b.left() + 24 * z, b.bottom() + 1)
        p.setBrush(Qt.BrushStyle.NoBrush)
        p.setPen(QPen(C("error"), 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
        p.drawPath(path)
        tip = QPointF(b.left() + 24 * z, b.bottom() + 1)
        p.drawPolyline([tip + QPointF(-4 * z, 6 * z), tip, tip + QPointF(4 * z, 6 * z)])

    def _paint_note(self, p: QPainter, lane: ChainLane, box: QRectF) -> None:
        z = scale()
        if lane.loop_to is not None:
            mark(p, "loop", QPointF(box.left() + 6 * z, box.top() + 9 * z), 5)
        head_left = box.left() + (18 * z if lane.loop_to is not None else 0)
        p.setFont(ui(12, 600))
        p.setPen(C("error") if lane.loop_to is not None else C("text2"))
        _text(p, head_left, box.top(), box.width() - 18 * z, 18 * z, lane.end_note[0])
        p.setFont(ui(12))
        p.setPen(C("text2"))
        text_box = QRectF(box.left(), box.top() + 20 * z, box.width(), box.height() - 20 * z)
        p.drawText(text_box, Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap, "\n".join(lane.end_note[1:]))


def card_text(card: ChainCard) -> str:
    """Return a card in words, verdict first, for the tool tip and for screen readers."""
    if card.folded > 1:
        return tr_plural(
            "{n:,} entry of another key that shares only the slot",
            "{n:,} entries of other keys that share only the slot",
            n=card.folded,
        )
    parts = [tr(VERDICTS.get(card.verdict, ("", card.verdict))[1]), tr("entry {entry:,}", entry=card.entry)]
    if card.key:
        parts.append(card.key)
    if card.offset is not None:
        parts.append(tr("unit at {offset:,}", offset=card.offset))
    parts += [part for part in (card.when, card.note) if part]
    return " · ".join(parts)


def _arrow(p: QPainter, source: QRectF, target: QRectF) -> None:
    """Draw a link from one box to the next; a link to a new row goes around by an elbow."""
    p.setPen(QPen(C("text3"), 1.4))
    p.setBrush(Qt.BrushStyle.NoBrush)
    y = target.center().y() if abs(source.center().y() - target.center().y()) < target.height() else None
    end = QPointF(target.left() - 4, target.center().y())
    if y is not None:
        p.drawLine(QPointF(source.right(), end.y()), end)
    else:
        middle = source.bottom() + (target.top() - source.bottom()) / 2
        out = source.right() + 10
        p.drawPolyline(
            [
                QPointF(source.right(), source.center().y()),
                QPointF(out, source.center().y()),
                QPointF(out, middle),
                QPointF(target.left() - 18, middle),
                QPointF(target.left() - 18, end.y()),
                end,
            ]
        )
    p.drawPolyline([end + QPointF(-6, -4), end, end + QPointF(-6, 4)])


def _rect(box: Box) -> QRectF:
    return QRectF(box.x, box.y, box.width, box.height)


def _text(p: QPainter, x: float, y: float, width: float, height: float, text: str) -> None:
    """Draw one line of text, cut short at its end if it does not fit."""
    fits = QFontMetrics(p.font()).elidedText(text, Qt.TextElideMode.ElideRight, int(width) + 1)
    p.drawText(QRectF(x, y, width + 4, height), Qt.AlignmentFlag.AlignVCenter, fits)
