"""Parsing filters: errors with positions, precedence, and times."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest
from filter_units import unit
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadFilter
from engine.query import parse, text_of

NOW = 1_795_167_667_250

MISTAKES = [
    # text, the word with the error, the error message
    ('topc = "A"', "topc", "there is no field 'topc'; did you mean topic?"),
    ("TOPIC = 'A'", "TOPIC", "did you mean topic?"),
    ("hash = 5", "hash", "did you mean tagsCode?"),
    ("offset > 5", "offset", "did you mean physicalOffset?"),
    ('color = "red"', "color", "properties.color"),
    ("topic = OrderPaid", "OrderPaid", 'a text is written in quotes: "OrderPaid"'),
    ('size = "abc"', '"abc"', 'size is a number, "abc" is a text: they cannot be compared'),
    ("topic = 5", "5", "a text is written in quotes"),
    ("size > 5m", "5m", "mebibytes are written MiB"),
    ("size", "size", "not a condition"),
    ("size and compressed", "size", "not a condition"),
    ("compressed > false", "compressed", "> has no meaning"),
    ('keys < "a"', "keys", "< has no meaning"),
    ('"a" = keys', "keys", "left side"),
    ("physicalOffset = storeTimestamp", "storeTimestamp", "cannot be compared"),
    ("size = null", "null", "is null"),
    ('crc = "wrong"', '"wrong"', "ok, bad, unchecked"),
    ('crc in ("ok", "fine")', '"fine"', "ok, bad, unchecked"),
    ("1 < size < 5", "<", "do not chain"),
    ("size > 1 is null", "is", "join conditions"),
    ("size > 1 size", "size", "not expected here"),
    ("size >", "", "ends too early"),
    ("size between 1", "", "and is missing"),
    ("size between 1 or 2", "or", "and is expected"),
    ("(size > 1", "(", "not closed"),
    ("size > 1)", ")", "not expected"),
    ("size in 5", "5", "( is expected after in"),
    ("size in ()", ")", "expected here"),
    ("size in (1", "", ") is missing"),
    ("size in (queueId)", "queueId", "a list holds"),
    ("and size > 1", "and", "expected before"),
    ("size contains 'x'", "size", "looks into texts"),
    ("topic contains 5", "5", "takes a text in quotes"),
    ("topic contains compressed", "compressed", "takes a text in quotes"),
    ("topic like tags", "tags", "takes a text in quotes"),
    ("topic matches 5", "5", "a regular expression follows"),
    ("topic = /x/", "/x/", "follows matches"),
    ("topic matches /(/", "(", "regular expression"),
    ('topic matches "a(b"', "(", "regular expression"),
    ("topic matches /a{99999999999}/", "/a{99999999999}/", "regular expression"),
    ("topic matches /a/q", "q", "flags are"),
    ("topic matches /a/ii", "ii", "flags are"),
    ("topic matches ''", "''", "is empty"),
    ("topic matches /a", "/a", "no closing /"),
    ('topic = "abc', '"abc', "no closing"),
    (r'topic = "a\qb"', r"\q", "not an escape"),
    (r'topic = "\UFFFFFFFF"', r"\UFFFFFFFF", "not an escape"),
    ("topic = “abc”", "“", "straight quotes"),
    ("size =~ 5", "~", "matches"),
    ("size > 5 | size < 3", "|", "or is written or"),
    ("size > 1.5", "1.5", "not a whole number"),
    ("size in (1, 1.5)", "1.5", "not a whole number"),
    ("size + 1.5 > 2", "1.5", "not a whole number"),
    ("properties.price > 1.5", "1.5", "not a whole number"),
    ("-1.5 < size", "-1.5", "not a whole number"),
    ("size > 1.5KiB", "1.5KiB", "not a whole number"),
    ("body.a > 1e10000", "1e10000", "too many digits"),
    ("size > 5mb", "mb", "the units are B KiB"),
    ("size > 1__0", "1__0", "underscore"),
    ("size > 9223372036854775808", "9223372036854775808", "64 bits"),
    ("size > -9223372036854775809", "9223372036854775809", "64 bits"),
    ("size > 8388608TiB", "8388608TiB", "64 bits"),
    ("size > -queueId", "-", "minus"),
    ("size + 5s > 1", "5s", "+ does not join"),
    ("topic + 1 > 1", "topic", "+ does not join"),
    ('storeTimestamp > "yesterday"', '"yesterday"', "is not a time"),
    ('storeTimestamp > "2026-02-30"', '"2026-02-30"', "no such time"),
    ('storeTimestamp > "0001-01-01T00:00:00+14:00"', '"0001-01-01T00:00:00+14:00"', "years 1 to 9999"),
    ("properties = 'x'", "properties", "name one property"),
    ("properties. = 'x'", "properties.", "name follows"),
    ("properties.a.b = 'x'", ".", 'properties["a.b"]'),
    ("properties[a] = 'x'", "[", "in quotes"),
    ("size = not compressed", "not", "parentheses"),
    ("(size > 1) = compressed", "(size > 1)", "cannot be compared"),
    ("(size > 1) is null", "(size > 1)", "a value is expected"),
    ("size > 1 not", "not", "not expected"),
]


@pytest.mark.parametrize(("text", "word", "message"), MISTAKES)
def test_a_mistake_is_shown_under_its_word(text, word, message):
    with pytest.raises(BadFilter) as caught:
        parse(text, zone=UTC)
    wrong = caught.value
    assert message in wrong.what
    assert text[wrong.at : wrong.at + wrong.length] == word
    assert wrong.length >= 1


def test_the_second_of_two_equal_words_has_its_own_position():
    with pytest.raises(BadFilter) as caught:
        parse("size > 1 and size")
    assert (caught.value.at, caught.value.length) == (13, 4)


SAME = [
    ("a and b or c", "(a and b) or c"),
    ("a or b and c", "a or (b and c)"),
    ("not a and b", "(not a) and b"),
    ("not a = b", "not (a = b)"),
    ("a && !b || c", "a and not b or c"),
    ("a AND b Or c", "a and b or c"),
    ("a and (b and c)", "a and b and c"),
]


@pytest.mark.parametrize(("loose", "strict"), SAME)
def test_words_bind_as_documented(loose, strict):
    names = {"a": "compressed", "b": "batch", "c": "retry"}
    texts = [
        "".join(names.get(letter, letter) if letter in "abc" else letter for letter in text.replace("and", "&&"))
        for text in (loose, strict)
    ]
    assert parse(texts[0]) == parse(texts[1])


def test_sums_go_from_left_to_right_and_bind_tighter_than_bits():
    assert text_of(parse("size - 1 - 2 + 3 & 4 = 5").tree) == "size - 1 - 2 + 3 & 4 = 5"
    assert parse("size - 1 - 2 = 5") == parse("(size - 1) - 2 = 5") != parse("size - (1 - 2) = 5")
    assert parse("size & 1 + 2 = 5") == parse("size & (1 + 2) = 5") != parse("(size & 1) + 2 = 5")


PIECES = [
    "size",
    "topic",
    "keys",
    "properties.a",
    "storeTimestamp",
    "now",
    "and",
    "or",
    "not",
    "in",
    "between",
    "is",
    "null",
    "matches",
    "like",
    "contains",
    "true",
    "=",
    "!=",
    "<",
    "(",
    ")",
    ",",
    "-",
    "+",
    "&",
    "5",
    "4KiB",
    "5m",
    "'a'",
    "/b/i",
    '"2026-11-20"',
    "properties[",
    "]",
    "'",
    '"',
    "/",
    "\\",
]


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_any_text_is_a_filter_or_an_error_with_a_position(text):
    wrong = None
    try:
        results = parse(text, now_ms=NOW, zone=UTC)
    except BadFilter as complaint:
        wrong = complaint
    if wrong is None:
        assert parse(text_of(results.tree), now_ms=NOW, zone=UTC) == results
        assert results.matches({}) in (True, False)
    else:
        assert 0 <= wrong.at <= len(text)
        assert wrong.length >= 1


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "compressed",
        "not " * 5000 + "compressed",
        "size" + " - 1" * 5000 + " > 1",
        "size > " + "1" * 50_000,
        "x" * 70_000,
    ],
)
def test_a_huge_text_is_refused_with_a_message(text):
    with pytest.raises(BadFilter):
        parse(text)


def test_a_long_chain_of_conditions_is_no_nesting():
    text = " or ".join(f"queueId = {number}" for number in range(3000))
    assert parse(text).matches({"queueId": 2999}) is True
    assert parse(text_of(parse(text).tree)) == parse(text)


CHINA = timezone(timedelta(hours=8))


PAID = unit()


def test_times_without_an_offset_are_the_readers():
    assert parse('storeTimestamp = "2026-11-20 17:41:07.250"', zone=CHINA).matches(PAID) is True
    assert parse('storeTimestamp = "2026-11-20 17:41:07.250"', zone=UTC).matches(PAID) is False
