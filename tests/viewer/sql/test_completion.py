"""Words of a question: which may come next, and what they are."""

from __future__ import annotations

import pytest

from viewer.sql.answers import Vocabulary
from viewer.sql.completion import Words

WORDS = Words(
    Vocabulary(
        {
            "units": (("topic", "VARCHAR"), ("storeTime", "TIMESTAMPTZ"), ("size", "INTEGER")),
            "queue_entries": (("topic", "VARCHAR"), ("state", "VARCHAR")),
        },
        ("count", "strftime", "sum"),
        ("SELECT", "FROM", "SET"),
    )
)


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("SELECT s", 7, ("storeTime", "size", "state", "SELECT", "SET", "strftime(", "sum(")),
        ("SELECT st FROM units", 7, ("storeTime", "strftime(")),
        ("SELECT * FROM ", 14, ("units", "queue_entries")),
        ("SELECT * FROM units u JOIN q", 27, ("queue_entries",)),
        ("SELECT e.s FROM queue_entries e", 9, ("state",)),
        ("SELECT units.s", 13, ("storeTime", "size")),
        ("SELECT 'st", 10, ()),
        ("SELECT 1 -- st", 14, ()),
        ("SELECT 12", 9, ()),
    ],
)
def test_words_that_may_come_next(text: str, start: int, expected: tuple[str, ...]) -> None:
    cursor = {"SELECT st FROM units": 9, "SELECT e.s FROM queue_entries e": 10}.get(text, len(text))
    suggestions = WORDS.suggest(text, cursor)
    assert suggestions.words == expected
    assert suggestions.start == start


def test_parts_of_a_question() -> None:
    text = "SELECT count(*), 'it''s', 12 FROM units -- all\nWHERE \"topic\" = 'x"
    parts = [(text[start:end], part) for start, end, part in WORDS.parts(text)]
    assert parts == [
        ("SELECT", "keyword"),
        ("count", "function"),
        ("'it''s'", "text"),
        ("12", "number"),
        ("FROM", "keyword"),
        ("units", "relation"),
        ("-- all", "comment"),
        ('"topic"', "column"),
        ("'x", "text"),
    ]


def test_without_a_vocabulary_nothing_is_offered() -> None:
    assert Words().suggest("SELECT a.b", 10).words == ()
    assert list(Words().parts("SELECT topic")) == []
