"""Words of a filter, each with its position."""

from __future__ import annotations

import pytest

from engine.errors import BadFilter
from engine.query.lexer import MAX_FILTER_CHARS, words


def test_words_cover_the_text_and_the_last_is_its_end():
    text = 'topic = "Orders" and queueId >= 3'
    actual_words = words(text)
    assert [word.text for word in actual_words[:-1]] == ["topic", "=", '"Orders"', "and", "queueId", ">=", "3"]
    assert all(text[word.position : word.end] == word.text for word in actual_words[:-1])
    assert (actual_words[-1].kind, actual_words[-1].position) == ("end", len(text))


def test_quotes_hide_their_contents():
    (word, _end) = words(r'"a \"b\" and \u00e9"')
    assert word.value == 'a "b" and é'


@pytest.mark.parametrize(("text", "position"), [('topic = "Ord', 8), ("body matches /a", 13), ("queueId = §", 10)])
def test_an_invalid_word_is_refused_at_its_position(text, position):
    with pytest.raises(BadFilter) as wrong:
        words(text)
    assert wrong.value.at == position


def test_an_empty_text_is_only_the_end_and_a_huge_one_is_refused():
    assert [word.kind for word in words("  ")] == ["end"]
    with pytest.raises(BadFilter):
        words("a" * (MAX_FILTER_CHARS + 1))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("body.customer.id", ("customer", "id")),
        ('body["a b"].c', ("a b", "c")),
        ("body[0]", (0,)),
        ("body.items[ -1 ].n", ("items", -1, "n")),
    ],
)
def test_a_field_of_a_body_is_one_word(text, path):
    token, end = words(text)
    assert (token.kind, token.path, token.text) == ("path", path, text)
    assert end.kind == "end"


@pytest.mark.parametrize("text", ["body.", "body[x]", "body[0", "body['a'", "body" + ".a" * 101])
def test_an_unfinished_field_of_a_body_is_a_mistake(text):
    with pytest.raises(BadFilter):
        words(text)
