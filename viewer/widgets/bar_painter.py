"""Rows with a bar under one number, in the colour of the row's topic: how large it is beside the largest."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRect, QRectF
from PySide6.QtGui import QPainter

from viewer.look.theme import C
from viewer.widgets.columns import Record
from viewer.widgets.record_table import RecordTable
from viewer.widgets.row_painter import RowPainter, RowState, Slot


class BarPainter(RowPainter):
    """``bar(row)`` gives (topic, share from 0 to 1), None for rows that are no topic's; ``key`` names the column."""

    def __init__(self, key: str, bar: Callable[[Record], tuple[str, float] | None]) -> None:
        super().__init__()
        self._key, self._bar = key, bar
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
                color = self.colours.color(topic)
                color = C("text3") if color is None else color
                color.setAlphaF(0.24)
                p.fillRect(
                    QRectF(slot.x + 4, rect.top() + 4, max((slot.width - 8) * share, 1.0), rect.height() - 8), color
                )

    def _paint_topic_bar(self, p: QPainter, topic: str, x: int, rect: QRect) -> None:
        if not self._bare:
            super()._paint_topic_bar(p, topic, x, rect)
