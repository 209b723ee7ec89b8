"""Buttons, fields and dialogs.

Small shapes: states, chips, key caps, bars; drawn in every theme, told to a screen reader.
"""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QPushButton, QVBoxLayout

from viewer.widgets.basics import Button, Chip, Glyph, Key, PaneHead, Progress, StatusMark


def test_in_a_dialog_that_writes_nothing_the_deed_answers_enter(themed_app: object) -> None:
    def box(kind: str) -> tuple[QDialog, QPushButton]:
        dialog, go, cancel = QDialog(), Button("Do", kind), Button("Cancel", "flat")
        layout = QVBoxLayout(dialog)
        layout.addWidget(cancel)
        layout.addWidget(go)
        dialog.show()
        return dialog, go

    plain, go = box("primary")
    assert go.isDefault()
    asks, danger = box("danger")
    assert not danger.isDefault()
    for item in (plain, asks):
        item.close()


def test_a_chip_is_as_wide_as_its_word_and_says_it(shown, qtbot):
    chip = shown(Chip("ok", "fine"))
    narrow = chip.width()
    chip.set_chip("error", "not all of it can be read")
    assert chip.width() > narrow
    assert chip.accessibleName() == "not all of it can be read"
    with qtbot.waitSignal(chip.clicked):
        qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)


def pixels(widget):
    return widget.grab().toImage()


def test_a_mark_without_a_state_draws_nothing(shown):
    mark = shown(StatusMark("error"))
    drawn = pixels(mark)
    mark.set_kind("")
    assert pixels(mark) != drawn
    mark.set_kind("error")
    assert pixels(mark) == drawn


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0, 7.0, None])
def test_a_bar_stays_in_its_track(shown, part):
    bar = shown(Progress(200))
    bar.set_part(part)
    bar.grab()
    assert bar.width() == 200


def test_more_is_seen_as_more(shown):
    bar = shown(Progress(200))
    bar.set_part(0.2)
    little = pixels(bar)
    bar.set_part(0.9)
    assert pixels(bar) != little


def test_glyphs_and_keys_have_their_size(shown):
    glyph = shown(Glyph("log"))
    assert glyph.width() == glyph.height()
    glyph.set_glyph("queue", "accent")
    glyph.grab()
    assert shown(Key("Ctrl G")).width() > shown(Key("G")).width()


def test_the_title_of_a_pane_is_shortened_instead_of_widening_it_and_its_note_goes_first(shown):
    """A long title was cut without a sign and made its pane so wide that the list beside it had no room."""
    title = "A group that may not consume although messages wait for it"
    head = shown(PaneHead(title, "CF15 · warning", Button("Go to bytes")))
    assert head.minimumSizeHint().width() < 260
    wide = head.title.sizeHint().width()
    head.resize(wide + 400, head.height())
    assert head.title.width() == wide
    assert head.note.x() < wide + 40, "the note stands beside the title"
    head.resize(wide + 130, head.height())
    assert head.title.width() > head.note.width()
    head.resize(300, head.height())
    head.grab()
    assert head.title.toolTip() == title
