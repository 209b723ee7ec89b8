"""Places are written and read, and the go-to box accepts common input."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewer.runtime import places
from viewer.runtime.places import (
    MAX_HISTORY,
    History,
    Place,
    Search,
    UnknownPlace,
    parse,
    parse_number,
    parse_time,
    text_of,
)

FORMS = [
    pytest.param("log", Place("log"), id="log"),
    pytest.param("log:81604377362", places.log(81_604_377_362), id="offset"),
    pytest.param("queue", Place("queue"), id="queues"),
    pytest.param("queue:Orders", places.queue("Orders"), id="topic"),
    pytest.param("queue:Orders/0", places.queue("Orders", 0), id="queue of a topic"),
    pytest.param("queue:Orders/3/42", places.queue("Orders", 3, 42), id="entry"),
    pytest.param("queue:%RETRY%a/b/1/2", places.queue("%RETRY%a/b", 1, 2), id="slash in a topic"),
    pytest.param("trace:Orders/a/b", places.trace("Orders", "a/b"), id="slash in a key"),
    pytest.param("index:20261117215152334", places.index("20261117215152334"), id="index file"),
    pytest.param("index:2026/slot/5", places.index("2026", "slot", 5), id="slot"),
    pytest.param("index:2026/entry/19704118", places.index("2026", "entry", 19_704_118), id="index entry"),
    pytest.param("positions", Place("positions"), id="positions"),
    pytest.param("findings:CQ03", Place("findings", name="CQ03"), id="findings of a rule"),
    pytest.param("groups:billing", Place("groups", name="billing"), id="group"),
    pytest.param("space:Orders", Place("space", name="Orders"), id="bytes of a topic"),
    pytest.param("config:topics.json", Place("config", name="topics.json"), id="table"),
]


@pytest.mark.parametrize(("text", "place"), FORMS)
def test_reads(text: str, place: Place) -> None:
    assert parse(text) == place


@pytest.mark.parametrize(("text", "place"), FORMS)
def test_writes(text: str, place: Place) -> None:
    assert text_of(place) == text


TYPED = [
    pytest.param("123456", places.log(123_456), id="decimal"),
    pytest.param(" 0x1E240 ", places.log(123_456), id="hexadecimal"),
    pytest.param("81,604,377,362", places.log(81_604_377_362), id="commas"),
    pytest.param("81_604_377_362", places.log(81_604_377_362), id="underscores"),
    pytest.param("9223372036854775807", places.log((1 << 63) - 1), id="largest offset"),
    pytest.param("Orders/0/42", places.queue("Orders", 0, 42), id="entry"),
    pytest.param("Orders#ord-1", places.trace("Orders", "ord-1"), id="topic and key"),
    pytest.param("7F00000100002A9F0000000000001AC4", Search("id", "7F00000100002A9F0000000000001AC4"), id="id"),
    pytest.param("7f00000100002a9f0000000000001ac4", Search("id", "7F00000100002A9F0000000000001AC4"), id="small id"),
    pytest.param("A" * 56, Search("id", "A" * 56), id="id with IPv6"),
    pytest.param("ord-20261120-004214", Search("key", "ord-20261120-004214"), id="key"),
    pytest.param("#12", Search("key", "12"), id="key of digits"),
    pytest.param("9223372036854775808", Search("key", "9223372036854775808"), id="more than 64 bits is a key"),
]


@pytest.mark.parametrize(("text", "expected"), TYPED)
def test_typed_input_is_understood(text: str, expected: Place | Search) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "log:nowhere", "trace:Orders", "trace:/key"])
def test_an_error_names_the_expected_form(text: str) -> None:
    with pytest.raises(UnknownPlace, match="expected"):
        parse(text)


def test_time_with_a_zone_is_exact() -> None:
    moment = datetime(2026, 11, 20, 1, 41, 7, 225_000, tzinfo=UTC)
    assert parse_time("2026-11-20 09:41:07.225 +08:00") == moment.timestamp() * 1000
    assert parse_time("2026-11-20T01:41:07.225Z") == moment.timestamp() * 1000


def test_time_without_a_zone_is_the_machines() -> None:
    local = datetime(2026, 11, 20, 9, 41).astimezone()
    assert parse_time("2026-11-20 09:41") == local.timestamp() * 1000
    assert parse_time("9:41", date(2026, 11, 20)) == local.timestamp() * 1000


@pytest.mark.parametrize("text", ["2026-13-01", "25:00", "2026-11-20 9", "yesterday", "2026-11"])
def test_an_invalid_time_is_none(text: str) -> None:
    assert parse_time(text) is None


@given(st.integers(0, (1 << 63) - 1))
def test_every_offset_is_read_in_every_form(offset: int) -> None:
    assert {parse_number(form) for form in (str(offset), f"{offset:,}", f"{offset:_}", hex(offset))} == {offset}


@given(st.text(max_size=80))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        meant = parse(text)
    except UnknownPlace:
        return
    assert isinstance(meant, Place | Search)


@given(st.text(min_size=1, max_size=20), st.integers(0, 1 << 31), st.integers(0, 1 << 62))
def test_entry_of_any_topic_comes_back(topic: str, queue_id: int, offset: int) -> None:
    place = places.queue(topic, queue_id, offset)
    if topic == topic.lstrip():
        assert parse(text_of(place)) == place


def test_back_and_forward_lead_to_earlier_places() -> None:
    history = History()
    for offset in (1, 2, 3):
        history.visit(places.log(offset))
    assert history.back() == places.log(2)
    assert history.back() == places.log(1)
    assert history.back() is None
    assert history.forward() == places.log(2)
    assert history.can_go_forward


def test_new_step_drops_the_forward_steps() -> None:
    history = History()
    history.visit(places.log(1))
    history.visit(places.log(2))
    history.back()
    history.visit(places.log(9))
    assert not history.can_go_forward
    assert history.back() == places.log(1)


def test_same_place_twice_is_one_step() -> None:
    history = History()
    history.visit(places.log(1))
    history.visit(places.log(1))
    assert not history.can_go_back


def test_moving_the_selection_changes_the_step() -> None:
    history = History()
    history.visit(places.log(1))
    history.visit(places.queue("T", 0, 5))
    history.move(places.queue("T", 0, 9))
    assert history.back() == places.log(1)
    assert history.forward() == places.queue("T", 0, 9)


def test_history_is_bounded() -> None:
    history = History()
    for offset in range(3 * MAX_HISTORY):
        history.visit(places.log(offset))
    steps = 0
    while history.back() is not None:
        steps += 1
    assert steps == MAX_HISTORY - 1
