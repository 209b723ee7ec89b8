"""The table of two logs side by side, and the heads above its halves."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from viewer.compare.pair_columns import OTHER, OWN, SIGN_KEY, SIGN_TEXTS, pair_kind, sign_tone, words_of
from viewer.compare.pair_rows import PairRow
from viewer.look.assets import tr
from viewer.look.theme import px, ui
from viewer.widgets.basics import Chip, PaneHead, ThemedPanel
from viewer.widgets.columns import RowAppearance
from viewer.widgets.record_table import RecordTable
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_painter import PAD, RowPainter, RowState, Slot, TextPen
from viewer.widgets.stepwise import Runner, run_here

MIN_HEAD_PX = 240
"""Px at 100 % that the head of B keeps."""
KEYS_FROM_PX = 1300
"""Width at 100 % from which both sides have room for the keys."""


class PairPainter(RowPainter):
    """Paints each half of a row by itself, and the sign between them."""

    def __init__(self) -> None:
        super().__init__()
        self._pair: PairRow | None = None
        self._halves: dict[str, QRect] = {}
        self._gutter = QRect()

    def paint_row(
        self, p: QPainter, model: RecordTable, number: int, slots: list[Slot], rect: QRect, state: RowState
    ) -> None:
        pair: PairRow = model.rows[number]
        sign = next((n for n, slot in enumerate(slots) if slot.column.key == SIGN_KEY), None)
        if sign is None:
            self._pair = None
            super().paint_row(p, model, number, slots, rect, state)
            return
        gutter = QRect(slots[sign].x, rect.top(), slots[sign].width, rect.height())
        halves = {
            OWN: QRect(rect.left(), rect.top(), gutter.left() - rect.left(), rect.height()),
            OTHER: QRect(gutter.right() + 1, rect.top(), rect.right() - gutter.right(), rect.height()),
        }
        self._halves, self._gutter, self._pair = halves, gutter, pair
        super().paint_row(p, model, number, slots, rect, state)
        self._paint_sign(p, gutter, pair)
        side_slots = {OWN: slots[:sign], OTHER: slots[sign + 1 :]}
        for side, half in halves.items():
            look = words_of(pair, side)
            if look is None:
                continue
            if look.mark and side_slots[side]:
                self._paint_mark(p, look.mark, side_slots[side][0].x + 14 * self._zoom, rect)
            topic = next((slot for slot in side_slots[side] if slot.column.paint == "topic"), None)
            if look.words and topic is not None:
                room = QRect(half.left(), rect.top(), half.width() - PAD, rect.height())
                self._paint_words(p, room, topic, look, state)

    def _paint_ground(self, p: QPainter, rect: QRect, look: RowAppearance | None, state: RowState) -> None:
        super()._paint_ground(p, rect, None if state.hovered else look, state)
        if self._pair is None or state.chosen:
            return
        for side, half in self._halves.items():
            side_look = words_of(self._pair, side)
            if side_look is not None and side_look.fill:
                p.fillRect(half, self.color(side_look.fill))
        p.fillRect(self._gutter, self.color("raised"))

    def _paint_text(
        self, pen: TextPen, rect: QRect, slot: Slot, row: object, text: str, look: RowAppearance | None, state: RowState
    ) -> None:
        if slot.column.key != SIGN_KEY:  # painted over the gutter's own ground
            super()._paint_text(pen, rect, slot, row, text, look, state)

    def _paint_sign(self, p: QPainter, gutter: QRect, pair: PairRow) -> None:
        p.fillRect(QRect(gutter.left(), gutter.top(), 1, gutter.height()), self.color("hair"))
        p.fillRect(QRect(gutter.right(), gutter.top(), 1, gutter.height()), self.color("hair"))
        p.setFont(ui(13, 400 if pair.sign == "same" else 600))
        p.setPen(self.color(sign_tone(pair)))
        p.drawText(gutter, int(Qt.AlignmentFlag.AlignCenter), SIGN_TEXTS[pair.sign])


class PairTable(RecordView):
    """The rows of a :class:`~viewer.compare.pair_rows.PairSource`. ``halvesMoved`` when a half has another width."""

    halvesMoved = Signal()

    def __init__(self, runner: Runner = run_here) -> None:
        super().__init__("pair.table", pair_kind(), runner=runner)
        self._has_keys = True
        self.painter = PairPainter()
        self.setAccessibleName(tr("Both logs side by side"))
        head = self.horizontalHeader()
        head.setSectionsMovable(False)  # a column of A among those of B would say nothing
        self.horizontalScrollBar().valueChanged.connect(lambda _: self.halvesMoved.emit())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the keys out where there is no room for them on both sides."""
        with_keys = self.width() >= px(KEYS_FROM_PX)
        if with_keys != self._has_keys:
            self._has_keys = with_keys
            self.set_kind(pair_kind(with_keys=with_keys))
        super().resizeEvent(event)

    def columns_moved(self) -> None:
        """Forget the places of columns, and let the heads follow."""
        super().columns_moved()
        self.halvesMoved.emit()

    def sign_span(self) -> tuple[int, int]:
        """Left and right edge in px of the column of signs."""
        slot = next((slot for slot in self.slots_on_screen() if slot.column.key == SIGN_KEY), None)
        return (slot.x, slot.x + slot.width) if slot is not None else (self.width() // 2, self.width() // 2)


class PairHeads(QWidget):
    """The heads of both halves: which store each is, and its state. They follow the widths of the halves."""

    def __init__(self, table: PairTable) -> None:
        super().__init__()
        self._table = table
        self.chips = {OWN: Chip("chat", ""), OTHER: Chip("chat", "")}
        self.heads = {side: PaneHead(name, "", self.chips[side]) for side, name in ((OWN, "A"), (OTHER, "B"))}
        self._between = ThemedPanel("pane", ("bottom",))
        for part in (*self.heads.values(), self._between):
            part.setParent(self)
        for chip in self.chips.values():
            chip.hide()
        table.halvesMoved.connect(self._place)

    def show_store(self, side: str, path: str, chip_kind: str = "", chip_words: str = "") -> None:
        """Name the store of one half; with a chip for its state."""
        self.heads[side].set_note(path)
        self.chips[side].set_chip(chip_kind or "chat", chip_words)
        self.chips[side].setVisible(bool(chip_words))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        left, right = self._table.sign_span()
        sign_width = right - left
        right = max(sign_width, min(right, self.width() - px(MIN_HEAD_PX)))  # a table that is too wide scrolls sideways
        left = max(0, right - sign_width)
        height = self.heads[OWN].sizeHint().height()
        if self.height() != height:
            self.setFixedHeight(height)
        self.heads[OWN].setGeometry(0, 0, left, height)
        self._between.setGeometry(left, 0, max(1, right - left), height)
        self.heads[OTHER].setGeometry(right, 0, max(1, self.width() - right), height)
