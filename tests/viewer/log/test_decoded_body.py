"""The decoded body of a message as lines of its detail."""

from __future__ import annotations

import json
from dataclasses import replace

import handmade_stores
import pytest

from engine.codec.message import decode
from engine.decoding.rules import DecodingRule
from engine.query import parse
from viewer.log.decoded_body import MAX_LINES, read_decoded

_RULES = (DecodingRule("Orders", "json"),)


@pytest.fixture
def unit():
    return decode(handmade_stores.unit_bytes("Orders", 0, 0, 0, 1))


def _with(unit, value: object):
    return replace(unit, body=json.dumps(value).encode())


def test_values_are_a_tree_with_their_names_and_conditions(unit):
    body = {"customer": {"id": "7", "a b": None}, "lines": [{"n": 2}], "empty": {}, "paid": True}
    group, names = read_decoded(_RULES, _with(unit, body))
    assert group is not None
    assert group.opened
    customer, lines, empty, paid = group.lines
    assert [(line.label, line.value, line.note) for line in (customer, lines, empty, paid)] == [
        ("customer", "", "2 fields"),
        ("lines", "", "1 item"),
        ("empty", "{}", ""),
        ("paid", "true", ""),
    ]
    assert [(line.name, line.value, line.note) for line in customer.lines] == [
        ("body.customer.id", "7", "text"),
        ('body.customer["a b"]', "null", ""),
    ]
    assert lines.lines[0].lines[0].term == "body.lines[0].n = 2"
    assert customer.lines[1].term == 'body.customer["a b"] is null'
    assert parse(paid.term).body_fields == {"body.paid"}
    assert names == ("body.customer.id", 'body.customer["a b"]', "body.lines[0].n", "body.empty", "body.paid")


def test_a_body_that_cannot_be_decoded_says_where_and_why(unit):
    group, names = read_decoded(_RULES, replace(unit, body=b'{"a":'))
    assert group is not None
    (line,) = group.lines
    assert (line.value, line.tone, names) == ("not valid JSON: Expecting value at byte 5", "error", ())


def test_without_a_rule_a_guess_is_offered_and_nothing_is_decoded(unit):
    group, names = read_decoded((), _with(unit, {"a": 1}))
    assert group is not None
    assert not group.opened
    assert "a body is valid JSON" in group.lines[0].value
    assert names == ()
    assert read_decoded((), replace(unit, body=b"\x00\x01\xff")) == (None, ())


def test_a_large_body_has_a_bounded_number_of_lines(unit):
    group, names = read_decoded(_RULES, _with(unit, {"a": list(range(10_000))}))
    assert group is not None
    assert len(names) == MAX_LINES - 1
    assert group.lines[0].folded
    assert group.lines[0].lines[-1].value == f"{10_000 - len(names):,} further values"


def test_a_body_that_is_one_value_has_one_line(unit):
    group, _ = read_decoded((DecodingRule("*", "text"),), replace(unit, body=b"plain"))
    assert group is not None
    assert [(line.label, line.value) for line in group.lines] == [("value", "plain")]
