"""The text of a conversation: its steps, links, and hits with their step."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl

from viewer.conversation.conversation_work import ConversationRow
from viewer.conversation.reading_text import MAX_HITS, ReadingText
from viewer.runtime import places
from viewer.widgets.search_term import SearchTerm


@pytest.fixture
def text(qtbot) -> ReadingText:
    widget = ReadingText()
    qtbot.addWidget(widget)
    widget.resize(500, 300)
    widget.show_rows(
        [
            ConversationRow(1, "plain", 1, 1000, None, 0, "Orders", 0, 0, 90, text="<b>first</b>\nKey key"),
            ConversationRow(2, "retry", 1, 2000, 1000, 90, "%RETRY%g", 0, 0, 90, text="second"),
        ]
    )
    return widget


def test_bodies_are_shown_as_they_are(text: ReadingText) -> None:
    shown = text.toPlainText()
    assert "<b>first</b>" in shown, "a body is never read as HTML"
    assert shown.index("first") < shown.index("second")


def test_hits_know_their_step(text: ReadingText) -> None:
    hits = text.find_hits(SearchTerm("text", "key"))
    assert [(hit.number, hit.step) for hit in hits] == [(1, 1), (2, 1)]
    assert hits[0].excerpt == "Key key"
    assert len(text.find_hits(SearchTerm("text", "key", case=True))) == 1
    assert [hit.step for hit in text.find_hits(SearchTerm("regex", "sec.nd"))] == [2]
    text.show_hit(hits, hits[1])
    assert len(text.extraSelections()) == 2
    text.forget_hits()
    assert text.extraSelections() == []


def test_hits_are_bounded(text: ReadingText) -> None:
    text.show_rows([ConversationRow(1, "plain", 1, 1000, None, 0, text="x" * (MAX_HITS + 10))])
    assert len(text.find_hits(SearchTerm("text", "x"))) == MAX_HITS


def test_a_link_leads_to_the_unit(text: ReadingText) -> None:
    emitted: list[object] = []
    text.placeRequested.connect(emitted.append)
    text.anchorClicked.emit(QUrl("log:90"))
    assert emitted == [places.log(90)]


def test_a_step_is_brought_into_sight(text: ReadingText) -> None:
    text.show_step(2)
    assert text.step_at(text.textCursor().position()) == 2
    text.show_step(99)
    assert text.step_at(text.textCursor().position()) == 2
