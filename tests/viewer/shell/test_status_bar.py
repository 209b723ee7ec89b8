"""The status bar: its messages, and how long they are shown."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from viewer.shell.status_bar import StatusStrip


def test_unread_files_are_on_the_inverse_chip(themed_app: QApplication) -> None:
    strip = StatusStrip()
    strip.set_unread("7 files cannot be read")
    assert strip.unread.accessibleName() == "7 files cannot be read"
    assert not strip.unread.isHidden()
    strip.set_unread("")
    assert strip.unread.isHidden()


def test_newer_figures_replace_older_ones_only(themed_app: QApplication) -> None:
    strip = StatusStrip()
    strip.say_anew("A/0 · 10 entries")
    strip.say_anew("A/0 · 20 entries · complete")
    assert strip.message.text() == "A/0 · 20 entries · complete"
    strip.say_anew("A/1 · 5 entries")
    assert strip.message.text() == "A/1 · 5 entries"
    strip.say("Layout saved")
    strip.say_anew("A/1 · 6 entries")
    assert strip.message.text() == "Layout saved"
