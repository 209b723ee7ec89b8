"""The dialog of a bookmark: name, mark and note are saved, and the bookmark can be removed."""

from __future__ import annotations

import pytest
from panes import wait_until
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from viewer.pane.bookmark_box import MARKS, BookmarkBox, message_name
from viewer.runtime.bookmarks import KINDS


@pytest.fixture
def parent(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    return widget


def test_every_mark_can_be_chosen():
    assert tuple(kind for kind, _ in MARKS) == KINDS


def test_the_written_text_is_saved(parent, qtbot):
    box = BookmarkBox(parent, "log:640", "old", "warn", "seen", exists=False)
    saved = []
    box.bookmarkSaved.connect(lambda *reported: saved.append(reported))
    assert box.kind == "warn"
    assert box.findChild(QPushButton, "bookmark.remove").isHidden()
    box.name.setText("  new ")
    box.findChild(QPushButton, "bookmark.error").click()
    qtbot.keyClick(box.name, Qt.Key.Key_Return)
    assert saved == [("new", "error", "seen")]


def test_an_existing_bookmark_can_be_removed(parent):
    box = BookmarkBox(parent, "log:640", "old", "note", "", exists=True)
    removed = []
    box.removed.connect(lambda: removed.append(True))
    box.findChild(QPushButton, "bookmark.remove").click()
    assert removed == [True]


def test_a_message_is_offered_by_its_queue_entry_and_key(run, window, golden):
    """The offered name was a file name and an offset: "00000000000000000000 2,380"."""

    async def ask() -> None:
        assert await window.open(golden("broker-orders"), "log:0")
        assert await window.settled()
        window.workspace.bookmark()
        box = window.findChild(BookmarkBox, "bookmark.box")
        unit = window.session.snapshot.log.unit_at(0)
        await wait_until(lambda: box.name.text().startswith(f"{unit.topic}/"), "its name came")
        assert box.name.text() == message_name(unit)
        assert message_name(unit).endswith(f" · {unit.keys[0]}")
        box.name.setModified(True)
        box.offer_name("another")
        assert box.name.text() == message_name(unit), "what somebody typed stays"
        box.reject()

    run(ask())
    assert message_name(None) == ""
