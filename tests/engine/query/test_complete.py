from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.query import complete, parse

TOPICS = ["OrderPaid", "StockReserved", 'odd "one"']


def values_of_field(field: str) -> list[str]:
    return {"topic": TOPICS, "properties": ["region", "my region"], "properties.region": ["eu", "us"]}.get(field, [])


def offered(text: str) -> list[str]:
    return [item.text for item in complete(text, len(text), values_of_field)]


@pytest.mark.parametrize(
    ("typed", "among"),
    [
        ("", ["topic", "storeTimestamp", "keys", "not"]),
        ("to", ["topic"]),
        ("stamp", ["bornTimestamp", "storeTimestamp"]),
        ("size > 1 and ", ["topic", "size"]),
        ("not (", ["topic"]),
        ("topic ", ["=", "contains", "matches /", "in ("]),
        ("size ", ["=", "<", "between"]),
        ("compressed ", ["and", "or"]),
        ("topic = ", ['"OrderPaid"', '"odd \\"one\\""']),
        ('topic = "Sto', ['"StockReserved"']),
        ("topic = 'Sto", ["'StockReserved'"]),
        ('topic in ("OrderPaid", ', ['"StockReserved"']),
        ("topic in (", ['"OrderPaid"']),
        ("crc = ", ['"ok"', '"bad"', '"unchecked"']),
        ("not crc = ", ['"ok"']),
        ("compressed = ", ["true", "false"]),
        ("transaction = ", ['"half"']),
        ("storeTimestamp > ", ["now - 5m"]),
        ("storeTimestamp between now - 1h and ", ["now - 5m"]),
        ("tags is ", ["null", "not null"]),
        ("size > 1 ", ["and", "or"]),
        ("(size > 1) ", ["and", "or"]),
        ("size = queueId ", ["and", "or"]),
        ("prop", ["properties.", "properties.region"]),
        ("properties.re", ["properties.region"]),
        ("properties.my", ['properties["my region"]']),
        ("properties.region = ", ['"eu"', '"us"']),
        ("properties.region ", ["=", "<"]),
    ],
)
def test_fitting_completions_are_offered(typed, among):
    results = offered(typed)
    assert [text for text in among if text not in results] == []


def test_operators_fit_the_kind():
    assert "contains" not in offered("size ")
    assert "<" not in offered("keys ")


def test_prefix_matches_come_before_substring_matches():
    assert offered("stor")[:2] == ["storeTimestamp", "storeHost"]
    assert offered("key") == ["keys", "uniqueKey"]


def test_the_whole_word_under_the_cursor_is_replaced():
    item = complete("size > 1 and topi = 'x'", 17, values_of_field)[0]
    assert ("size > 1 and topi = 'x'"[item.start : item.end], item.text) == ("topi", "topic")
    item = complete('topic = "Stock" and size > 1', 12, values_of_field)[0]
    assert 'topic = "Stock" and size > 1'[item.start : item.end] == '"Stock"'
    assert item.kind == "value"


def test_a_chosen_text_is_quoted_if_needed():
    for item in complete("topic = ", 8, values_of_field):
        assert parse(f"topic = {item.text}").matches({"topic": TOPICS[0]}) is (item.text == '"OrderPaid"')


def test_completions_are_limited_and_need_no_known_texts():
    assert len(complete("topic = ", 8, lambda _: [str(n) for n in range(1000)], limit=20)) == 20
    assert complete("topic = ", 8) == []


@given(st.text(max_size=40), st.integers(-3, 50))
def test_any_typed_text_is_accepted(text, cursor):
    for item in complete(text, cursor, values_of_field):
        assert 0 <= item.start <= item.end <= len(text)
