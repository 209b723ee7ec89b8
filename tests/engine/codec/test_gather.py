"""Message objects into columns: the compiled twin gathers what plain Python gathers, and refuses the rest."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import gather
from engine.codec.encode import Message
from engine.codec.message_columns import MessageColumns
from engine.store.put.message import RULED

plain = st.characters(codec="utf-8", exclude_characters="\x01\x02")
names = st.lists(st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "größe", "a%s"]), unique=True, min_size=1, max_size=4)
BODY = b"just a body"


def fields(columns: MessageColumns) -> list[tuple[object, ...]]:
    """Every row of the columns, as what would be stored of it."""
    bodies, texts, rows, at, text = bytes(columns.bodies), bytes(columns.properties), [], 0, 0
    for row, size in enumerate(columns.body_length):
        if columns.properties_length is not None:
            long = columns.properties_length[row]
        else:
            long = len(b"\x02".join(texts[text:].split(b"\x02", columns.pairs)[: columns.pairs])) + 1
        topic = 0 if columns.topic_id is None else columns.topic_id[row]
        host = 0 if columns.born_host is None else columns.born_host[row]
        born = None if columns.born_timestamp is None else columns.born_timestamp[row]
        queue = 0 if columns.queue_id is None else columns.queue_id[row]
        rows.append(
            (columns.topics[topic], bodies[at : at + size], texts[text : text + long], queue, columns.hosts[host], born)
        )
        at, text = at + size, text + long
    assert (at, text) == (len(bodies), len(texts))
    return rows


def compiled(messages: list[Message]) -> MessageColumns | None:
    """What the twin alone makes of them."""
    twin = gather.twin()
    assert twin is not None
    return twin.gather(messages, RULED)


@st.composite
def batches(draw: st.DrawFn) -> list[Message]:
    """Batches as they mostly are: plain fields, and maps of the same names, texts, or neither."""
    keys = draw(names)
    maps = st.tuples(*(st.text(plain, max_size=40) for _ in keys)).map(
        lambda values: dict(zip(keys, values, strict=True))
    )
    born = draw(st.sampled_from([st.none(), st.integers(-5, 1 << 60)]))
    kind = draw(st.sampled_from(["map", "text", "none"]))
    return [
        Message(
            draw(st.sampled_from(["A", "größer"])), draw(st.binary(max_size=200)), draw(st.integers(0, 0x7FFFFFFF)),
            draw(maps) if kind == "map" else None, draw(st.binary(max_size=30)) if kind == "text" else None,
            born_timestamp=draw(born), born_host=draw(st.sampled_from(["1.2.3.4:5", "[::1]:7"])),
        )
        for _ in range(draw(st.integers(1, 9)))
    ]  # fmt: skip


@given(batches())
def test_both_gather_the_same(many: list[Message]) -> None:
    found, expected = compiled(many), gather.gather_plain(many, RULED)
    assert found is not None
    assert expected is not None
    assert fields(found) == fields(expected)
    found.check()


def test_more_than_there_was_room_for() -> None:
    """Blobs begin with some room; what does not fit is gathered once more."""
    many = [Message("T", bytes([at]) * 5000, at, {"KEYS": "x" * 3000}) for at in range(40)]
    found = compiled(many)
    assert found is not None
    assert fields(found)[39] == ("T", b"\x27" * 5000, b"KEYS\x01" + b"x" * 3000 + b"\x02", 39, "127.0.0.1:0", None)
    assert len(fields(found)) == 40


def test_nobody_keeps_what_was_gathered() -> None:
    """Only borrowed references are taken: a leak, or one too few, would show in the counts."""
    value, body, when = BODY.decode(), bytes(bytearray(b"a body")), int("1" + "0" * 15)
    many = [Message("T", body, 1, {"KEYS": value}, born_timestamp=when) for _ in range(8)]
    things = (value, body, when, many[0], many[0].properties, None)
    before = [sys.getrefcount(thing) for thing in things[:-1]]
    for _ in range(1000):
        assert compiled(many) is not None
    assert [sys.getrefcount(thing) for thing in things[:-1]] == before


class Own(Message):
    """A message of another type."""


M = Message("T", BODY, 0, {"a": "b"})
REFUSED = [
    pytest.param([Own("T", BODY)], id="another type of message"),
    pytest.param([M.changed(flag=1)], id="a flag"),
    pytest.param([M.changed(sys_flag=4)], id="a system flag"),
    pytest.param([M.changed(store_host="1.2.3.4:5")], id="a store host"),
    pytest.param([M.changed(reconsume_times=1)], id="consumed before"),
    pytest.param([M.changed(prepared_transaction_offset=1)], id="a transaction"),
    pytest.param([M.changed(queue_id=-1)], id="a queue below zero"),
    pytest.param([M.changed(queue_id=1 << 70)], id="a queue beyond everything"),
    pytest.param([M.changed(queue_id=True)], id="a truth for a number"),
    pytest.param([M.changed(body=bytearray(b"x"))], id="a body that changes"),
    pytest.param([M.changed(body=None)], id="no body"),
    pytest.param([M, M.changed(born_timestamp=5)], id="one with a time of birth"),
    pytest.param([M.changed(born_timestamp=1 << 63)], id="born beyond everything"),
    pytest.param([M, M.changed(properties={"c": "b"})], id="another name"),
    pytest.param([M, M.changed(properties={"a": "b", "c": "d"})], id="a name more"),
    pytest.param([M.changed(properties={"a": "b", "c": "d"}), M], id="a name less"),
    pytest.param([M, M.changed(properties={})], id="no name"),
    pytest.param([M.changed(properties={"a": "\ud800"})], id="a lone surrogate"),
    pytest.param([M.changed(properties={"a": 5})], id="a number for a value"),
    pytest.param([M.changed(properties={"a": "\x02"})], id="a value with 0x02"),
    pytest.param([M.changed(properties_raw=b"x")], id="a map and a text"),
    pytest.param([M.changed(properties={"DELAY": "1"})], id="a property with rules"),
]


@pytest.mark.parametrize("many", REFUSED)
def test_the_twin_leaves_it_to_plain_python(many: list[Message]) -> None:
    assert compiled(many) is None


def test_a_field_that_was_never_set_is_refused() -> None:
    bare = Message.__new__(Message)
    bare.properties = None
    assert compiled([bare]) is None


def test_any_sequence_is_gathered() -> None:
    found = gather.gather((M,) * 3, RULED)
    assert found is not None
    assert [row[2] for row in fields(found)] == [b"a\x01b\x02"] * 3
