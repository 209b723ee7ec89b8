from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_trees import conditions

from engine.errors import BadFilter
from engine.query import and_, condition, negate, or_, parse, text_of

NOW = 1_795_167_667_250


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("topic", "OrderPaid", 'topic = "OrderPaid"'),
        ("topic", 'a"b\\c', 'topic = "a\\"b\\\\c"'),
        ("topic", "line\nnext\x01", 'topic = "line\\u000anext\\u0001"'),
        ("queueId", 3, "queueId = 3"),
        ("tagsCode", -5, "tagsCode = -5"),
        ("tags", None, "tags is null"),
        ("compressed", True, "compressed"),
        ("compressed", False, "not compressed"),
        ("keys", ["a", "b"], 'keys = "a" and keys = "b"'),
        ("keys", [], "keys is null"),
        ("storeTimestamp", NOW, 'storeTimestamp = "2026-11-20T09:41:07.250Z"'),
        ("storeTimestamp", -(1 << 63), "storeTimestamp = -9223372036854775808"),
        ("properties.region", "eu", 'properties.region = "eu"'),
        ("properties.my region", "eu", 'properties["my region"] = "eu"'),
        ('properties["__x.y"]', "eu", 'properties["__x.y"] = "eu"'),
    ],
)
def test_a_cell_becomes_a_condition(field, value, text):
    assert condition(field, value) == text
    parse(text)


def test_a_time_of_a_cell_may_be_written_in_the_readers_zone():
    text = condition("bornTimestamp", NOW, zone=timezone(timedelta(hours=8)))
    assert text == 'bornTimestamp = "2026-11-20T17:41:07.250+08:00"'
    assert parse(text).matches({"bornTimestamp": NOW}) is True


@given(st.text())
def test_any_text_of_a_cell_finds_itself(text):
    assert parse(condition("topic", text)).matches({"topic": text}) is True
    assert parse(condition(f"properties.{text}", "x")).matches({"properties": {text: "x"}}) is True


def test_a_cell_of_no_field_is_refused():
    with pytest.raises(BadFilter):
        condition("verdict", "ok")


def test_conditions_are_joined_with_parentheses_only_where_they_are_needed():
    either = 'topic = "a" or size > 1'
    assert and_("", either) == either
    assert or_(either, "  ") == either
    assert and_(either, "compressed") == '(topic = "a" or size > 1) and compressed'
    assert and_("compressed", "batch and retry") == "compressed and batch and retry"
    assert or_(either, "compressed") == 'topic = "a" or size > 1 or compressed'
    assert or_("batch and retry", either) == 'batch and retry or topic = "a" or size > 1'
    assert negate(either) == f"not ({either})"
    assert negate("size > 1") == "not size > 1"
    assert negate("not size > 1") == "not (not size > 1)"


@given(conditions(NOW), conditions(NOW))
def test_joined_texts_mean_what_their_parts_mean(tree_a, tree_b):
    a, b = text_of(tree_a), text_of(tree_b)
    for record in ({}, {"size": 5, "topic": "a", "sysFlag": 1, "queueId": 0, "storeTimestamp": NOW}):
        matches_a, matches_b = (parse(text, now_ms=NOW, zone=UTC).matches(record) for text in (a, b))
        assert parse(and_(a, b), now_ms=NOW).matches(record) is (matches_a and matches_b)
        assert parse(or_(a, b), now_ms=NOW).matches(record) is (matches_a or matches_b)
        assert parse(negate(a), now_ms=NOW).matches(record) is not matches_a


def test_the_clock_is_read_once_when_the_text_is():
    expected = parse("storeTimestamp <= now")
    assert expected.matches({"storeTimestamp": 0}) is True
    assert expected.matches({"storeTimestamp": 1 << 62}) is False


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("body.customer.id", "7", 'body.customer.id = "7"'),
        ('body["a b"][0]', 7, 'body["a b"][0] = 7'),
        ("body.price", 1.5, "body.price = 1.5"),
        ("body.price", -1e-07, "body.price = -1E-7"),
        ("body.id", 1 << 63, 'body.id = "9223372036854775808"'),
        ("body.paid", True, 'body.paid = "true"'),
        ("body.lines", [1], 'body.lines = "[1]"'),
        ("body.note", None, "body.note is null"),
    ],
)
def test_a_condition_is_made_of_a_field_of_a_body(name, value, text):
    made = condition(name, value)
    assert made == text
    assert text_of(parse(made).tree) == text
    assert parse(made).reads_bodies
    assert len(parse(made).body_fields) == 1
