"""Bookmarks with names, marks and notes; the next finding from anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QLineEdit, QPlainTextEdit, QPushButton, QWidget
from walker import CTRL, SHIFT, Run, Walker

from viewer.runtime.bookmarks import bookmarks_of, file_of, read
from viewer.widgets.line_strip import LineStrip

pytestmark = pytest.mark.journey
LOG, TABLE = "units.table", "bookmarks.table"


def test_bookmarks_with_names_marks_and_notes(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(damaged, "log:1310900")
        await walker.act("bookmark.here")
        box = walker.find(QDialog, "bookmark.box")
        name = walker.find(QLineEdit, "bookmark.name")
        await walker.until(lambda: "SO-000749" in name.text(), "the message gives the name")
        walker.find(QLineEdit, "bookmark.name").setText("the flipped bit")
        walker.find(QPushButton, "bookmark.error").click()
        walker.find(QPlainTextEdit, "bookmark.note").setPlainText("ask the replica")
        assert box.isVisible()
        walker.find(QPushButton, "bookmark.keep").click()
        await walker.rest()
        pins = walker.find(LineStrip, "units.line")._pins
        assert ("the flipped bit", "error") in [(pin.text, pin.kind) for pin in pins]
        await walker.act("view.bookmarks")
        assert window.view == "bookmarks"
        assert walker.row(TABLE)["Name"] == "the flipped bit"
        assert walker.find(QLabel, "bookmarks.note").text() == "ask the replica"
        await walker.follow(TABLE, "Place")
        assert walker.value(LOG, "Physical offset") == 1_310_900
        await walker.act("go.back")
        await walker.act("bookmark.remove")
        assert walker.table(TABLE).model().rowCount() == 0
        assert walker.action("edit.undo").text() == "Undo: bookmark the flipped bit"
        await walker.act("edit.undo")
        assert walker.row(TABLE)["Name"] == "the flipped bit"
        await walker.act("edit.redo")
        assert walker.table(TABLE).model().rowCount() == 0
        window.activateWindow()
        await walker.rest()
        walker.press(window, Qt.Key.Key_Z, CTRL)
        await walker.rest()
        assert walker.row(TABLE)["Name"] == "the flipped bit"
        await walker.until(lambda: window.jobs.quick_idle, "it is written")
        session = window.session
        assert session is not None
        saved = read(file_of(window.settings.folder, session.path))
        assert [(mark.place, mark.note) for mark in saved.marks] == [("log:1310900", "ask the replica")]
        await walker.open(damaged, "bookmarks")
        await walker.until(lambda: walker.table(TABLE).model().rowCount() == 1, "it is there again")
        assert walker.window.session is not None
        bookmarks_of(walker.window.session).remove("log:1310900")
        await walker.rest()

    run(walk())


def test_the_next_finding_from_anywhere_by_a_key(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(damaged)
        session = window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        window.activateWindow()
        await walker.rest()
        observed = []
        for _ in range(3):
            walker.press(window, Qt.Key.Key_F4)
            await walker.rest()
            observed.append((window.view, walker.place))
        assert observed[0] == ("log", observed[0][1])
        assert observed[0][1].endswith("1,310,900")
        assert observed[1][1].endswith("2,068,179")
        assert observed[2][0] != "log"
        walker.press(window, Qt.Key.Key_F4, SHIFT)
        await walker.rest()
        assert walker.place.endswith("2,068,179")
        assert "CL06" in walker.status_text
        assert walker.find(QWidget, "top.bookmark.here").isVisible()

    run(walk())
