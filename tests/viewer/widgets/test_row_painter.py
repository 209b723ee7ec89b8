"""Painter of rows: texts drawn in one call look like texts drawn one by one."""

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage, QPainter

from viewer.look.theme import theme
from viewer.widgets.row_painter import RowPainter, fitted_text


def picture(ratio):
    image = QImage(round(400 * ratio), round(80 * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(0xFFFFFFFF)
    return image


@pytest.mark.parametrize("ratio", [1.0, 1.25, 1.5, 2.0])
@pytest.mark.parametrize("zoom", [80, 100, 130])
def test_figures_drawn_together_are_those_drawn_one_by_one(qtbot, ratio, zoom):
    texts = [("1,234,567,890", 7, 20), ("ord-20261120-004217", 150, 20), ("0x0f [::1]:10911", 7, 60), ("~", 300, 60)]
    theme.set_zoom(zoom)
    try:
        painter = RowPainter()
        together, singly = picture(ratio), picture(ratio)
        p = QPainter(together)
        for text, x, base in texts:
            assert painter._add_figures(text, "text", x, base)
        painter.finish(p)
        p.end()
        p = QPainter(singly)
        p.setFont(painter._fonts["figures"])
        p.setPen(painter.color("text"))
        for text, x, base in texts:
            p.drawText(x, base, text)
        p.end()
    finally:
        theme.set_zoom(100)
    assert together == singly
    assert together != picture(ratio), "nothing was drawn"


def test_a_text_with_other_letters_is_left_to_be_drawn_alone(qtbot):
    painter = RowPainter()
    assert not painter._add_figures("订单-1", "text", 0, 10)
    assert not painter._figures


def test_the_beginning_of_a_text_with_too_many_lines_is_drawn(qtbot):
    """The lines were centred: of a long finding both the first and the last words were cut off."""
    painter = RowPainter()
    metrics = painter._metrics["ui"]
    text = "A group that may not consume although messages wait for it"
    room = QSize(120, 2 * metrics.lineSpacing())
    shown = fitted_text(text, metrics, room)
    assert shown.startswith("A group that may not")
    assert shown.endswith("…")
    assert fitted_text(text, metrics, QSize(120, 9 * metrics.lineSpacing())) == text
    assert fitted_text("x" * 400, metrics, room).endswith("…")
    assert fitted_text(text, metrics, QSize(4, 4)) == "…"
