"""Newer figures take the place of older ones, never of what somebody else has said meanwhile."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from viewer.shell.main_window import MainWindow
from viewer.shell.status_bar import StatusStrip


def test_newer_figures_replace_older_ones_only(dressed: QApplication) -> None:
    strip = StatusStrip()
    strip.say_anew("A/0 · 10 entries")
    strip.say_anew("A/0 · 20 entries · complete")
    assert strip.message.text() == "A/0 · 20 entries · complete"
    strip.say_anew("A/1 · 5 entries")
    assert strip.message.text() == "A/1 · 5 entries"
    strip.say("Layout saved")
    strip.say_anew("A/1 · 6 entries")
    assert strip.message.text() == "Layout saved"


def test_a_view_behind_says_nothing(window: MainWindow) -> None:
    window.show_view("log")
    window.say("")
    queues = window.pane("queue")
    queues.statusGrew.emit("A/0 · 10 entries")
    assert window.status.message.text() == ""
