"""Rows of a conversation: bodies as text, the same body once, and limits."""

from __future__ import annotations

from handmade_stores import HandmadeStore

import viewer.conversation.conversation_work as work
from viewer.conversation.conversation_work import ConversationQuery, body_texts, read_rows


class Control:
    """A control that nobody stops."""

    cancelled = False

    def report(self, _done: float, _total: float | None, _note: str = "") -> None:
        """Take the progress."""


def rows_of(root, key="K"):
    answer = read_rows(Control(), root, None, ConversationQuery(key))
    assert answer is not None
    return body_texts(answer.rows)


def test_a_body_is_json_or_text_and_repeated_ones_name_the_first(tmp_path) -> None:
    store = HandmadeStore()
    for body in (b'{"a":1}', b"plain", b'{"a":1}', b""):
        store.put("Orders", keys="K", body=body)
    rows = rows_of(store.write(tmp_path / "s"))
    assert [row.text for row in rows] == ['{\n  "a": 1\n}', "plain", "", ""]
    assert [row.same_body for row in rows] == [0, 0, 1, 0]
    assert [row.message for row in rows] == [1, 2, 3, 4]
    assert all(row.shows_message for row in rows)


def test_long_bodies_are_cut_and_say_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(work, "MAX_BODY_BYTES", 10)
    store = HandmadeStore()
    store.put("Orders", keys="K", body=b"0123456789abcdef")
    (row,) = rows_of(store.write(tmp_path / "s"))
    assert row.text == "0123456789"
    assert row.text_note == "the first 10 bytes of the body"


def test_a_stopped_search_has_no_answer(tmp_path) -> None:
    class Stopped(Control):
        cancelled = True

    store = HandmadeStore()
    store.put("Orders", keys="K")
    root = store.write(tmp_path / "s")
    assert read_rows(Stopped(), root, None, ConversationQuery("nobody")) is None
