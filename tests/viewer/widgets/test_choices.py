"""A combo box shows its arrow and a ticked box its tick."""

from __future__ import annotations

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QWidget

from viewer.widgets.choices import ChoiceField, TickBox

WIDTH, HEIGHT = 160, 28


def drawn(widget: QWidget) -> QImage:
    widget.resize(WIDTH, HEIGHT)
    return widget.grab().toImage()


def test_a_ticked_box_has_a_tick_and_an_empty_one_has_none(qapp: QApplication) -> None:
    """A ticked box was a small filled square, which reads as "partly"."""
    box, plain = TickBox("Bodies"), QCheckBox("Bodies")
    assert drawn(box) == drawn(plain)
    box.setChecked(True)
    plain.setChecked(True)
    assert drawn(box) != drawn(plain)


def test_a_field_with_choices_has_an_arrow_at_its_right(qapp: QApplication) -> None:
    """Some fields with choices had no arrow at all, others had it left of the text."""
    field, plain = ChoiceField(), QComboBox()
    for combo in (field, plain):
        combo.addItems(["plain", "UTF-8"])
    ours, bare = drawn(field), drawn(plain)
    edge = int(ours.width() * (WIDTH - 24) / WIDTH)
    left, right = (0, 0, edge, ours.height()), (edge, 0, ours.width() - edge, ours.height())
    assert ours.copy(*left) == bare.copy(*left)
    assert ours.copy(*right) != bare.copy(*right)
