"""A body is shown in the chosen form and charset, with its size."""

from __future__ import annotations

import pytest

from viewer.log.body_view import BodyView
from viewer.pane.body_text import open_body


@pytest.fixture
def view(shown):
    return shown(BodyView())


def test_json_is_laid_out_and_text_is_not(view):
    notes = []
    view.noteChanged.connect(notes.append)
    view.show_body(open_body(b'{"id": 7}', 0), "json")
    assert view.text().splitlines() == ["{", '  "id": 7', "}"]
    view.set_form("text")
    assert view.text() == '{"id": 7}'
    assert notes[-1].startswith("9 B")


def test_the_chosen_charset_is_used(view):
    view.show_body(open_body("订单".encode("GB18030"), 0), "text")
    assert view.text() != "订单"
    view.charset.setCurrentText("GB18030")
    assert view.text() == "订单"


def test_a_missing_body_has_a_reason(view):
    view.show_body(open_body(b"one", 0), "hex")
    assert not view.charset.isEnabled()
    view.show_body(None, reason="The body cannot be read.")
    assert view.text() == "The body cannot be read."
