"""Values that decoders give: JSON's types, bounded."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from engine.decoding.values import ABSENT, BadBody, as_json_value, json_text, value_at, value_number, value_text


def test_other_types_become_those_of_json():
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    value = {1: b"\x00\x01", "t": moment, "d": Decimal("1.50"), "f": Fraction(1, 3), "s": {7}, "n": float("nan")}
    converted = as_json_value(value)
    assert converted == {
        "1": "AAE=",
        "t": "2026-01-02T00:00:00+00:00",
        "d": "1.50",
        "f": "1/3",
        "s": [7],
        "n": "nan",
    }
    assert json.loads(json_text(converted)) == converted


def test_a_value_that_contains_itself_is_refused():
    value: list[object] = []
    value.append(value)
    with pytest.raises(BadBody, match="nested deeper than 100 levels"):
        as_json_value(value)


def test_shared_parts_count_each_time():
    """Ten lists of ten lists and so on take a few bytes with references, and ten billion values without."""
    value: object = [1] * 10
    for _ in range(9):
        value = [value] * 10
    with pytest.raises(BadBody, match="more than 500,000 values"):
        as_json_value(value)


@pytest.mark.parametrize(
    "number", [1 << 20_000, Decimal("1e1000000"), Fraction(1 << 20_000, 3)], ids=lambda number: type(number).__name__
)
def test_numbers_too_large_to_write_are_refused(number):
    with pytest.raises(BadBody):
        as_json_value([number])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("customer", "id"), "7"),
        (("items", 0, "n"), 2),
        (("items", -1, "n"), 2),
        (("items", 1), ABSENT),
        (("items", "n"), ABSENT),
        (("customer", 0), ABSENT),
        (("nothing",), None),
    ],
)
def test_a_path_leads_through_objects_and_lists(path, value):
    body = {"customer": {"id": "7"}, "items": [{"n": 2}], "nothing": None}
    assert value_at(body, path) == value


@pytest.mark.parametrize(
    ("value", "text", "number"),
    [
        ("7", "7", 7),
        (7, "7", 7),
        (1.5, "1.5", Decimal("1.5")),
        (10.1, "10.1", Decimal("10.1")),
        (2**53 + 1, "9007199254740993", 2**53 + 1),
        (float("inf"), "Infinity", None),
        ("-10.50", "-10.50", Decimal("-10.5")),
        ("1e400", "1e400", Decimal("1e400")),
        ("1_000", "1_000", None),
        ("10.5 EUR", "10.5 EUR", None),
        (True, "true", None),
        (None, None, None),
        ({"a": 1}, '{"a":1}', None),
    ],
)
def test_a_value_is_compared_as_text_and_beside_a_number_as_a_number(value, text, number):
    assert value_text(value) == text
    assert value_number(value) == number
