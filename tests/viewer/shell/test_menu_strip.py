"""The menu bar: mnemonics, recent stores, and the write-protection note."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAction

from viewer.runtime.settings import RecentStore
from viewer.shell.menu_strip import Menu, MenuLine, MenuStrip


@pytest.fixture
def strip(qtbot):
    opened, other_action = QAction("Open file"), QAction("Other")
    opened.setObjectName("store.openFile")
    menu_strip = MenuStrip([Menu("File", "F", [MenuLine(0, opened), MenuLine(1, other_action)])])
    menu_strip.kept = (opened, other_action)
    qtbot.addWidget(menu_strip)
    return menu_strip


def test_a_menu_opens_by_its_letter_and_groups_are_separated(strip):
    assert strip.menus[0].title() == "&File"
    assert [action.isSeparator() for action in strip.menus[0].actions()] == [False, False, True, False]


def test_recent_stores_are_offered(strip):
    strip._fill_recent()
    assert [action.isEnabled() for action in strip._recent.actions()] == [False]
    strip._recent_stores = lambda: [RecentStore("/s/a&b", "a&b", 0)]
    emitted = []
    strip.storeRequested.connect(emitted.append)
    strip._fill_recent()
    (action,) = strip._recent.actions()
    action.trigger()
    assert (action.text(), emitted) == ("/s/a&&b", ["/s/a&b"])


def test_the_note_about_writing_omits_the_path_if_narrow(strip):
    strip.show_store("/data/store")
    assert (strip.promise.text(), strip.path.isHidden()) == ("Read-only", False)
    strip.set_slim(True)
    assert strip.path.isHidden()
    strip.set_writing(True)
    assert strip.promise.text() == "Lab store, open for writing"
    strip.set_writing(True, users_store=True)
    assert strip.promise.text() == "Open for writing"
    strip.show_store("")
    assert strip.promise.isHidden()
