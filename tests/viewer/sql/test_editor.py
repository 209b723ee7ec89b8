"""The editor of a question: completion, keys and marks."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from viewer.sql.answers import Vocabulary
from viewer.sql.completion import Words
from viewer.sql.editor import Editor

WORDS = Words(
    Vocabulary(
        {"units": (("topic", "VARCHAR"), ("storeTime", "TIMESTAMPTZ"))}, ("count", "strftime"), ("SELECT", "FROM")
    )
)


@pytest.fixture
def editor(themed_app, shown) -> Editor:
    made = Editor()
    made.use(WORDS)
    shown(made)
    made.setFocus()
    return made


def test_a_word_is_completed_with_tab(editor: Editor) -> None:
    QTest.keyClicks(editor, "SELECT st")
    assert editor.completer.popup().isVisible()
    QTest.keyClick(editor, Qt.Key.Key_Tab)
    assert editor.toPlainText() == "SELECT storeTime"
    assert not editor.completer.popup().isVisible()


def test_words_are_offered_on_request_before_a_letter(editor: Editor) -> None:
    editor.set_text("SELECT * FROM ")
    assert not editor.completer.popup().isVisible()
    QTest.keyClick(editor, Qt.Key.Key_Space, Qt.KeyboardModifier.ControlModifier)
    assert editor.completer.popup().isVisible()
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert editor.toPlainText() == "SELECT * FROM units"


def test_keys_of_the_sheet_are_signals(editor: Editor) -> None:
    steps: list[object] = []
    editor.olderRequested.connect(steps.append)
    editor.stopRequested.connect(lambda: steps.append("stop"))
    editor.runRequested.connect(lambda: steps.append("run"))
    QTest.keyClick(editor, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(editor, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    QTest.keyClicks(editor, "SELECT st")
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    assert not editor.completer.popup().isVisible()
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    QTest.keyClicks(editor, "o")
    QTest.keyClick(editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert steps == [1, -1, "stop", "run"]
    assert editor.toPlainText() == "SELECT sto"
    assert not editor.completer.popup().isVisible()


def test_wrong_characters_are_marked_until_the_text_changes(editor: Editor) -> None:
    editor.set_text("SELECT nothing FROM units")
    editor.show_fault(7, 7)
    (mark,) = editor.extraSelections()
    assert mark.cursor.selectedText() == "nothing"
    editor.show_fault(25, 0)
    (mark,) = editor.extraSelections()
    assert mark.cursor.selectedText() == "s"
    QTest.keyClicks(editor, "x")
    assert editor.extraSelections() == []


def test_a_replaced_text_can_be_taken_back(editor: Editor) -> None:
    editor.set_text("SELECT 1")
    editor.set_text("SELECT 2")
    editor.undo()
    assert editor.toPlainText() == "SELECT 1"
    editor.insert("units")
    assert editor.toPlainText().count("units") == 1
