"""An error is shown below its field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest

from viewer.shell.main_window import MainWindow
from viewer.shell.top_bar import FaultNote

Run = Callable[[Any], Any]


Golden = Callable[..., Path]


async def opened(window: MainWindow, path: Path) -> None:
    assert await window.open(path)
    assert await window.settled(60)


def test_an_error_is_below_the_field_until_the_next_key(run: Run, window: MainWindow, golden: Golden) -> None:
    """It was in the far lower left corner, and the red text stayed after the view changed."""

    async def go() -> None:
        await opened(window, golden("broker-orders"))
        field = window.top.goto
        for leave in (lambda: QTest.keyClick(field, Qt.Key.Key_A), lambda: window.show_view("findings")):
            field.setText("no-such-message")
            assert not await window.go_to_text("no-such-message")
            note = window.findChild(FaultNote, "goto.fault")
            assert note is not None
            assert note.isVisible()
            assert "no-such-message" in note.text()
            assert field.accessibleDescription() == note.text()
            below = field.mapTo(window, QPoint(0, field.height()))
            assert QRect(below, note.size()).left() == note.geometry().left()
            assert 0 <= note.geometry().top() - below.y() <= 8
            assert "no-such-message" not in window.status.message.text()
            leave()
            assert not note.isVisible()
            assert field.property("state") == ""

    run(go())
