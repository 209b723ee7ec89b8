"""The rows that a filter takes of a block are those that its plain test takes, whatever the bytes are."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from query_trees import conditions

from engine.codec import block_texts, message
from engine.codec.columns import UNIT, UnitColumns, scan_block_plain, twin
from engine.codec.topic_table import TopicTable
from engine.query.blocks import unit_of
from engine.query.filter import Filter
from engine.query.tree import Compare, Constant, Field, In, IsNull, Matches, Node, Not, TextTest, all_of, any_of

pytestmark = pytest.mark.golden

STORES = (
    "broker-orders", "broker-transactions", "broker-retries", "broker-sqlfilter", "batchcq-5.3.3", "crash-flip-5.3.3",
    "propcrc-5.3.3", "ipv6-and-unicode-5.3.3", "clean-4.9.8",
)  # fmt: skip
NOW = 1_795_167_667_250
ODD = (0x00, 0x01, 0x02, 0x20, 0x31, 0x41, 0x80, 0xC3, 0xE6, 0xF0, 0xFF)
FILE = "00000000000000000000"
Block = tuple[UnitColumns, TopicTable]


def scanned(data: bytes) -> Block:
    """The first rows of a log file."""
    columns, topics = UnitColumns(200), TopicTable()
    scan_block_plain(data, len(data), 0, 0, columns, topics)
    return columns, topics


def spoiled(data: bytes, seed: int) -> bytes:
    """The bytes with odd ones strewn over bodies, topics and properties, so that units stay units."""
    columns, _ = scanned(data)
    rng, bad = random.Random(seed), bytearray(data)
    for row in np.flatnonzero(columns["kind"] == UNIT).tolist():
        for place, length in (
            (int(columns.body_position[row]), int(columns.body_length[row])),
            (int(columns.properties_position[row]), int(columns.properties_length[row])),
        ):
            for _ in range(rng.randint(0, 4) if length else 0):
                bad[place + rng.randrange(length)] = rng.choice(ODD)
    return bytes(bad)


@pytest.fixture(scope="module")
def blocks(golden: Callable[..., Path]) -> list[Block]:
    """Blocks of stores as brokers left them, and with odd bytes in the texts of their units."""
    found = []
    for name in STORES:
        data = min((golden(name) / "commitlog").iterdir()).read_bytes()
        found += [scanned(data), scanned(spoiled(data, 1)), scanned(spoiled(data, 2))]
    return found


def words(block: UnitColumns) -> list[str]:
    """Texts that units of a block have, and pieces of them."""
    found = {"", " ", "%", "\ufffd", "é", "true"}
    for row in np.flatnonzero(block["kind"] == UNIT).tolist()[::7]:
        unit = unit_of(block, row)
        texts = [*unit.properties.values(), *unit.keys, unit.body[:9].decode("utf-8", "replace"), unit.born_host]
        found |= {piece for text in texts for piece in (text, text[:3], text[-2:], text[1:4])}
    return sorted(found)


def about_texts(sought: list[str]) -> st.SearchStrategy[Node]:
    """Conditions whose constants are texts that occur."""
    plain = st.sampled_from(["tags", "uniqueKey", "body", "bornHost", "storeHost", "offsetMsgId", "file"]).map(Field)
    named = st.sampled_from(["KEYS", "TAGS", "WAIT", "DELAY", "p1", "p3", "é"]).map(lambda name: Field(name, True))
    field = plain | named
    listed, negated = st.just(Field("keys")), st.booleans()
    text = st.sampled_from(sought).map(lambda word: Constant(word, "text"))
    number = st.integers(-3, 70).map(lambda value: Constant(value, "number"))
    pattern = st.sampled_from(["K", "e", "a1", r"^\d", "[a-m]+$", "sierra", "é|x"])
    tests = (
        st.builds(Compare, st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), field, text)
        | st.builds(Compare, st.sampled_from(("=", "!=")), listed, text)
        | st.builds(Compare, st.sampled_from(("=", "!=", "<", ">=")), named, number)
        | st.builds(TextTest, st.sampled_from(("contains", "startswith", "endswith")), field | listed, text, negated)
        | st.builds(
            TextTest,
            st.just("like"),
            field | listed,
            st.tuples(st.sampled_from(["", "%", "_"]), st.sampled_from(sought), st.sampled_from(["", "%"])).map(
                lambda pieces: Constant("".join(pieces), "text")
            ),
            negated,
        )
        | st.builds(Matches, field | listed, pattern, st.sampled_from(["", "i"]), negated)
        | st.builds(In, field | listed, st.lists(text, min_size=1, max_size=20).map(tuple), negated)
        | st.builds(In, named, st.lists(text | number, min_size=1, max_size=4).map(tuple), negated)
        | st.builds(IsNull, field | listed, negated)
    )
    return st.recursive(
        tests,
        lambda inner: (
            st.builds(Not, inner)
            | st.lists(inner, min_size=2, max_size=3).map(lambda items: all_of(*items))
            | st.lists(inner, min_size=2, max_size=3).map(lambda items: any_of(*items))
        ),
        max_leaves=6,
    )


def assert_same_rows(tree: Node, blocks: list[Block]) -> None:
    """The rows by columns and bytes are those of the plain test."""
    wanted = Filter("random", tree)
    test = wanted.compile(lambda _: FILE)
    for columns, topics in blocks:
        units = np.flatnonzero(columns["kind"] == UNIT).tolist()
        plain = [row for row in units if test(unit_of(columns, row))]
        found = wanted.on_blocks(topics, lambda _: FILE).rows(columns).tolist()
        assert found == plain, [unit_of(columns, row) for row in set(plain) ^ set(found)][:2]
        half = np.array(units[::2], np.intp)
        among = wanted.on_blocks(topics, lambda _: FILE).rows(columns, half).tolist()
        assert among == [row for row in plain if row in set(units[::2])]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_block_gives_the_rows_that_the_plain_test_takes(blocks, data):
    chosen = data.draw(st.sampled_from(range(len(blocks))))
    assert_same_rows(data.draw(about_texts(words(blocks[chosen][0]))), [blocks[chosen]])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=conditions(NOW))
def test_so_it_does_for_conditions_of_any_kind(blocks, tree):
    assert_same_rows(tree, blocks)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_without_compiled_code_the_rows_are_the_same(blocks, data, monkeypatch):
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    assert twin() is None
    chosen = data.draw(st.sampled_from(range(len(blocks))))
    assert_same_rows(data.draw(about_texts(words(blocks[chosen][0]))), [blocks[chosen]])


def test_compressed_bodies_and_odd_bytes_are_among_them(blocks):
    flags = [int(flag) for columns, _ in blocks for flag in columns["sys_flag"]]
    assert any(flag & message.COMPRESSED for flag in flags)
    assert any(flag & message.INNER_BATCH for flag in flags)
    assert any("\ufffd" in word for columns, _ in blocks for word in words(columns) if len(word) > 1)


@given(
    raw=st.lists(st.sampled_from([b"\x01", b"\x02", b"a", b"ab", b"\xff", b" ", b"value" * 9]), max_size=14),
    name=st.sampled_from([b"a", b"ab", b"aa", b"\xff"]),
    before=st.integers(0, 40),
)
def test_both_twins_find_the_value_of_a_property_where_the_codec_does(raw, name, before):
    text = b"".join(raw)
    buffer = np.frombuffer(b"\x02" * before + text + b"a\x01zz", np.uint8)
    block = UnitColumns(1)
    block.count, block.buffer = 1, buffer
    block.properties_position[0], block.properties_length[0] = before, len(text)
    found = block_texts.property_values(block, np.array([0]), name).every()[0]
    plain = block_texts.property_values_plain(buffer, block["properties_position"], block["properties_length"], name)
    assert found == plain.every()[0]
    if name != b"\xff":
        value = message.props.decode(text).get(name.decode())
        assert (None if found is None else found.decode("utf-8", "replace")) == value


@given(
    texts=st.lists(st.binary(max_size=80) | st.sampled_from([b"", b"ab" * 40, b"a b  ab "]), min_size=1, max_size=6),
    sought=st.sampled_from([b"", b"a", b"ab", b"ba", b"b" * 40, b"abab" * 9, b"\x00"]),
    how=st.sampled_from(["equal", "contains", "startswith", "endswith"]),
)
def test_what_is_asked_of_bytes_is_what_python_says(texts, sought, how):
    data = b"".join(texts)
    sizes = np.array([len(text) for text in texts], np.int32)
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    held = block_texts.Texts(np.frombuffer(data or b"\0", np.uint8), starts, sizes)
    tests = {
        "equal": lambda text: text == sought,
        "contains": lambda text: sought in text,
        "startswith": lambda text: text.startswith(sought),
        "endswith": lambda text: text.endswith(sought),
    }
    assert held.ask(how, sought).tolist() == [int(tests[how](text)) for text in texts]
    keys = [[key for key in text.split(b" ") if key] for text in texts]
    expected = [-1 if not each else int(any(tests[how](key) for key in each)) for each in keys]
    assert held.ask(how, sought, keys=True).tolist() == expected
