"""Buttons, fields and dialogs."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QPushButton, QVBoxLayout

from viewer.widgets.basics import Button


def test_in_a_dialog_that_writes_nothing_the_deed_answers_enter(dressed: object) -> None:
    def box(kind: str) -> tuple[QDialog, QPushButton]:
        made, go, cancel = QDialog(), Button("Do", kind), Button("Cancel", "flat")
        layout = QVBoxLayout(made)
        layout.addWidget(cancel)
        layout.addWidget(go)
        made.show()
        return made, go

    plain, go = box("primary")
    assert go.isDefault()
    asks, danger = box("danger")
    assert not danger.isDefault()
    for one in (plain, asks):
        one.close()
