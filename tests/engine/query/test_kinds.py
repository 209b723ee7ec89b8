"""Times in filters, and the kinds of values that can be compared."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest

from engine.errors import BadFilter
from engine.query.kinds import Span, comparable, parse_time
from engine.query.tree import Constant


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T00:01:00.5", 60_500),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1970-01-01 00:00Z", 0),
        ("1969-12-31 23:59:59.999", -1),
    ],
)
def test_an_iso_time_is_milliseconds_since_1970(text, milliseconds):
    assert parse_time(text, UTC, 0, len(text)) == milliseconds


def test_a_time_without_an_offset_is_in_the_given_zone():
    zone = timezone(timedelta(hours=8))
    assert parse_time("1970-01-01 08:00:00", zone, 0, 1) == 0


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2026-02-30 10:00", "0001-01-01 00:00:00+14:00"])
def test_an_invalid_time_is_refused_at_its_position(text):
    with pytest.raises(BadFilter) as refused:
        parse_time(text, UTC, 7, len(text))
    assert refused.value.at == 7


def test_a_text_beside_a_time_is_read_as_a_time():
    time, text = Constant(0, "time"), Constant("1970-01-02", "text")
    assert comparable("<", Span(time, 0, 1), Span(text, 2, 12), UTC) == (time, Constant(86_400_000, "time"))


def test_a_number_and_a_text_cannot_be_compared():
    number, text = Span(Constant(1, "number"), 0, 1), Span(Constant("a", "text"), 4, 7)
    with pytest.raises(BadFilter, match="cannot be compared"):
        comparable("=", number, text, UTC)
