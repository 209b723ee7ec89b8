"""Painting by hand."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect, QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from viewer.look.theme import C
from viewer.widgets.columns import Chip, chip_column
from viewer.widgets.paint import draw_chip
from viewer.widgets.row_painter import RowPainter, Slot


@pytest.mark.parametrize("where", ["row", "frame"])
def test_the_unread_chip_is_the_only_inverse_one(themed_app: QApplication, where: str) -> None:
    def drawn(kind: str) -> set[str]:
        picture = QImage(160, 24, QImage.Format.Format_RGB32)
        picture.fill(QColor("#FFFFFF"))
        p = QPainter(picture)
        if where == "frame":
            draw_chip(p, QRectF(0, 2, 150, 19), kind, "cannot be read")
        else:
            column = chip_column("state", "State", 150, lambda _row: Chip(kind, "cannot be read"))
            RowPainter().paint_chip(p, QRect(0, 0, 160, 24), Slot(0, 0, 150, column), Chip(kind, "cannot be read"))
        p.end()
        return {picture.pixelColor(x, y).name() for x in range(10, 22) for y in range(4, 20)}

    assert {C("text2").name(), C("pane").name()} <= drawn("unread"), "the mark is light on the dark ground"
    assert C("text2").name() not in drawn("error")
