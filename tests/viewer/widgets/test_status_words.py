"""Newer figures replace older ones in the status bar, never the words of another part."""

from __future__ import annotations

from viewer.shell.main_window import MainWindow


def test_a_view_behind_says_nothing(window: MainWindow) -> None:
    window.show_view("log")
    window.say("")
    queues = window.pane("queue")
    queues.statusUpdated.emit("A/0 · 10 entries")
    assert window.status.message.text() == ""
