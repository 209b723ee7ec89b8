"""Tabs of words, one of them chosen: by pointer, by arrow keys, by name."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from viewer.widgets.word_tabs import WordTabs


@pytest.fixture
def tabs(shown):
    return shown(WordTabs("unit.tabs", (("bytes", "Bytes"), ("json", "Body as JSON"), ("text", "Text"))))


def test_arrows_go_round_and_say_which(tabs, qtbot):
    chosen: list[str] = []
    tabs.chosen.connect(chosen.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left):
        qtbot.keyClick(tabs, key)
    assert chosen == ["json", "text", "bytes", "text"]
    assert (tabs.key, tabs.accessibleName()) == ("text", "Text")


def test_a_word_is_clicked(tabs, qtbot):
    remaining, width = tabs._places()[1]
    qtbot.mouseClick(tabs, Qt.MouseButton.LeftButton, pos=QPoint(round(remaining + width / 2), 10))
    assert tabs.key == "json"


def test_the_current_tab_is_not_emitted_again_and_an_unknown_one_changes_nothing(tabs):
    chosen: list[str] = []
    tabs.chosen.connect(chosen.append)
    tabs.choose("bytes")
    tabs.choose("nonsense")
    assert (tabs.key, chosen) == ("bytes", [])
