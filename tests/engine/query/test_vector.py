"""A filter decided by columns never differs from the decision by the unit.

The rows that a filter selects in a block are those that its plain test selects, whatever the bytes are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from query_trees import conditions

from engine.codec import block_texts, message
from engine.codec.columns import UNIT, UnitColumns, scan_block_plain, twin
from engine.codec.topic_table import TopicTable
from engine.query import parse
from engine.query.filter import Filter
from engine.query.tree import Compare, Constant, Field, In, IsNull, Matches, Node, Not, TextTest, all_of, any_of
from engine.query.vector import unit_of
from engine.query.vector import verdicts as of_rows

pytestmark = pytest.mark.golden

STORES = ("broker-orders", "broker-transactions", "broker-retries", "ipv6-and-unicode-5.3.3", "clean-4.9.8")
Block = tuple[UnitColumns, TopicTable, list[message.Unit | None]]


@pytest.fixture(scope="module")
def blocks(golden: Callable[..., Path]) -> list[Block]:
    """Return one scanned block of each store with the units of its rows; None for a row that is no unit."""
    block_list = []
    for name in STORES:
        path = min((golden(name) / "commitlog").iterdir())
        data = path.read_bytes()
        columns, topics = UnitColumns(400), TopicTable()
        scan_block_plain(data, len(data), 0, 0, columns, topics)
        units = [
            message.decode(data, int(columns.offset[row])) if columns.kind[row] == UNIT else None
            for row in range(len(columns))
        ]
        block_list.append((columns, topics, units))
    return block_list


def verdicts(expected: Filter, columns: UnitColumns, topics: TopicTable) -> np.ndarray:
    """Return the verdict on every row of a block; rows that are no units are −1."""
    rows = np.flatnonzero(columns["kind"] == UNIT)
    full = np.full(len(columns), -1, np.int8)
    full[rows] = of_rows(expected.tree, columns, topics, None, rows)
    return full


def check(expected: Filter, block: Block) -> int:
    """Return the rows that the columns decide; fail if one of them is decided wrongly."""
    columns, topics, units = block
    actual_verdicts = verdicts(expected, columns, topics)
    assert len(actual_verdicts) == len(units)
    for verdict, unit in zip(actual_verdicts.tolist(), units, strict=True):
        if unit is None:
            assert verdict == -1
        elif verdict:
            assert expected.matches(unit) is (verdict > 0), f"{expected.text}: row at {unit.offset}"
    return int(np.count_nonzero(actual_verdicts))


DECIDED = [
    "true",
    "size > 300",
    "not size between 200 and 400",
    "queueId in (0, 2)",
    "queueId not in (0, 2) or physicalOffset != physicalOffsetField",
    "sysFlag & 1 = 1",
    "storeTimestamp - bornTimestamp <= 2ms",
    'storeTimestamp >= "2026-01-01" and storeTimestamp < now',
    'topic matches /order/i and not topic contains "%"',
    'topic = "SCHEDULE_TOPIC_XXXX" or delayed or retry or deadLetter',
    "compressed and not batch",
    'crc = "ok"',
    'transaction is null or transaction in ("half", "op")',
    "size is not null",
    "flag = queueId",
]


@pytest.mark.parametrize("text", DECIDED)
def test_columns_alone_decide_these_conditions(blocks, text):
    for block in blocks:
        assert check(parse(text, zone=UTC), block) == len(block[2])


TEXTS = [
    'keys = "K1"',
    'keys != "K1"',
    'not keys in ("K1", "K52", "")',
    'keys contains "5" or keys endswith "2"',
    "keys is null",
    'tags = "TagA" or tags in ("TagB", "none")',
    "tags is not null",
    'tags between "TagA" and "TagB"',
    "tags matches /tag[ab]/i",
    'uniqueKey startswith "0A01"',
    "uniqueKey is null",
    "properties.DELAY > 1",
    'properties.WAIT != "true"',
    "properties.DELAY in (1, 2, 3)",
    "properties.DELAY between 2 and 5",
    "not properties.DELAY between 2 and 5",
    'bornHost startswith "127" or storeHost contains ":"',
    "file is null",
    'properties.p3 like "sierra%" and keys like "%5%" and not tags like "TagA"',
    "keys matches /K5+/ or keys matches /^K.?2$/",
    "keys not matches /K5{1,2}$/ and not tags matches /Tag[AB]/",
    "properties.p3 not matches /sierr?a/ or uniqueKey matches /0+A0/",
    "keys matches /订|K/ or tags matches /agA$/i",
    'keys matches /K5/ or uniqueKey contains "\ufffd"',
]
"""Conditions on texts that stand in the bytes of every unit as they are."""


@pytest.mark.parametrize("text", TEXTS)
def test_the_bytes_of_a_block_decide_conditions_on_its_texts(blocks, text):
    for block in blocks:
        assert check(parse(text, zone=UTC), block) == len(block[2])


def test_compressed_bodies_are_left_to_the_unit(blocks):
    for text in ('body contains "e"', 'body = ""', "body is null", "body matches /[a-c]/", 'body < "x"'):
        for columns, topics, units in blocks:
            check(parse(text), (columns, topics, units))
            packed = [unit is not None and bool(unit.sys_flag & message.COMPRESSED) for unit in units]
            assert not verdicts(parse(text), columns, topics)[packed].any()


def test_conditions_that_need_the_unit_stay_open(blocks):
    for text in ("body = topic", "properties.a = properties.b", 'offsetMsgId contains "A"', "keys contains tags"):
        assert check(parse(text), blocks[0]) == 0, text
    columns, topics, _ = blocks[0]
    assert (verdicts(parse("body = topic and size < 0"), columns, topics) == -1).all()


def test_an_unchecked_crc_stays_open(golden):
    data = min((golden("broker-orders") / "commitlog").iterdir()).read_bytes()
    columns, topics = UnitColumns(20), TopicTable()
    scan_block_plain(data, len(data), 0, 0, columns, topics, crc=False)
    assert not verdicts(parse('crc = "ok"'), columns, topics).any()


def test_sums_that_leave_64_bits_stay_open(blocks):
    columns, topics, units = blocks[0]
    expected = parse("physicalOffset + 9223372036854775807 > 0")
    actual_verdicts = verdicts(expected, columns, topics)
    open_rows = [unit for unit, verdict in zip(units, actual_verdicts, strict=True) if not verdict]
    assert len(open_rows) >= len(units) - 2
    check(expected, blocks[0])
    check(parse("size - 9223372036854775807 - 9223372036854775807 > 0"), blocks[0])


def test_topics_beyond_the_tables_limit_stay_open(golden):
    data = min((golden("broker-orders") / "commitlog").iterdir()).read_bytes()
    columns, topics = UnitColumns(300), TopicTable(limit=1)
    scan_block_plain(data, len(data), 0, 0, columns, topics)
    for text in ('topic = "x"', "retry", 'transaction = "commit"', "tagsCode = 5"):
        actual_verdicts = verdicts(parse(text), columns, topics)
        assert (actual_verdicts[columns["topic_id"] == -1] <= 0).all()
        assert (actual_verdicts == 0).any(), text


def test_an_empty_block_gives_no_rows():
    assert len(verdicts(parse('size > 1 and topic = "x" and not crc = "ok"'), UnitColumns(5), TopicTable())) == 0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=conditions(1_795_167_667_250))
def test_columns_decide_every_filter_like_the_unit(blocks, tree):
    for block in blocks:
        check(Filter("random", tree), block)


STORES_of_blocks = (
    "broker-orders",
    "broker-transactions",
    "broker-retries",
    "broker-sqlfilter",
    "batchcq-5.3.3",
    "crash-flip-5.3.3",
    "propcrc-5.3.3",
    "ipv6-and-unicode-5.3.3",
    "clean-4.9.8",
)
NOW = 1_795_167_667_250
ODD = (0x00, 0x01, 0x02, 0x20, 0x31, 0x41, 0x80, 0xC3, 0xE6, 0xF0, 0xFF)
FILE = "00000000000000000000"
Block_of_blocks = tuple[UnitColumns, TopicTable]


def scanned(data: bytes) -> Block_of_blocks:
    """Return the first rows of a log file."""
    columns, topics = UnitColumns(200), TopicTable()
    scan_block_plain(data, len(data), 0, 0, columns, topics)
    return columns, topics


def spoiled(data: bytes, seed: int) -> bytes:
    """Overwrite some bytes in bodies, topics and properties, so that units stay units."""
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
def spoiled_blocks(golden: Callable[..., Path]) -> list[Block_of_blocks]:
    """Return blocks of real stores, and the same with changed bytes in the texts of their units."""
    results = []
    for name in STORES_of_blocks:
        data = min((golden(name) / "commitlog").iterdir()).read_bytes()
        results += [scanned(data), scanned(spoiled(data, 1)), scanned(spoiled(data, 2))]
    return results


def words(block: UnitColumns) -> list[str]:
    """Return texts that occur in units of a block, and parts of them."""
    actual_texts = {"", " ", "%", "\ufffd", "é", "true"}
    for row in np.flatnonzero(block["kind"] == UNIT).tolist()[::7]:
        unit = unit_of(block, row)
        texts = [*unit.properties.values(), *unit.keys, unit.body[:9].decode("utf-8", "replace"), unit.born_host]
        actual_texts |= {piece for text in texts for piece in (text, text[:3], text[-2:], text[1:4])}
    return sorted(actual_texts)


def about_texts(sought: list[str]) -> st.SearchStrategy[Node]:
    """Generate conditions whose constants are texts that occur."""
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


def assert_same_rows(tree: Node, blocks: list[Block_of_blocks]) -> None:
    """Compare the rows selected by columns and bytes with those of the plain test."""
    expected = Filter("random", tree)
    test = expected.compile(lambda _: FILE)
    for columns, topics in blocks:
        units = np.flatnonzero(columns["kind"] == UNIT).tolist()
        plain = [row for row in units if test(unit_of(columns, row))]
        results = expected.on_blocks(topics, lambda _: FILE).rows(columns).tolist()
        assert results == plain, [unit_of(columns, row) for row in set(plain) ^ set(results)][:2]
        half = np.array(units[::2], np.intp)
        among = expected.on_blocks(topics, lambda _: FILE).rows(columns, half).tolist()
        assert among == [row for row in plain if row in set(units[::2])]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_block_gives_the_rows_of_the_plain_test(spoiled_blocks, data):
    chosen = data.draw(st.sampled_from(range(len(spoiled_blocks))))
    assert_same_rows(data.draw(about_texts(words(spoiled_blocks[chosen][0]))), [spoiled_blocks[chosen]])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=conditions(NOW))
def test_a_block_gives_the_rows_of_the_plain_test_for_any_condition(spoiled_blocks, tree):
    assert_same_rows(tree, spoiled_blocks)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_without_compiled_code_the_rows_are_the_same(spoiled_blocks, data, monkeypatch):
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    assert twin() is None
    chosen = data.draw(st.sampled_from(range(len(spoiled_blocks))))
    assert_same_rows(data.draw(about_texts(words(spoiled_blocks[chosen][0]))), [spoiled_blocks[chosen]])


def test_compressed_bodies_and_odd_bytes_are_among_them(spoiled_blocks):
    flags = [int(flag) for columns, _ in spoiled_blocks for flag in columns["sys_flag"]]
    assert any(flag & message.COMPRESSED for flag in flags)
    assert any(flag & message.INNER_BATCH for flag in flags)
    assert any("\ufffd" in word for columns, _ in spoiled_blocks for word in words(columns) if len(word) > 1)


@given(
    raw=st.lists(st.sampled_from([b"\x01", b"\x02", b"a", b"ab", b"\xff", b" ", b"value" * 9]), max_size=14),
    name=st.sampled_from([b"a", b"ab", b"aa", b"\xff"]),
    padding=st.integers(0, 40),
)
def test_both_twins_find_the_value_of_a_property_where_the_codec_does(raw, name, padding):
    text = b"".join(raw)
    buffer = np.frombuffer(b"\x02" * padding + text + b"a\x01zz", np.uint8)
    block = UnitColumns(1)
    block.count, block.buffer = 1, buffer
    block.properties_position[0], block.properties_length[0] = padding, len(text)
    value_bytes = block_texts.property_values(block, np.array([0]), name).to_list()[0]
    plain = block_texts.property_values_plain(buffer, block["properties_position"], block["properties_length"], name)
    assert value_bytes == plain.to_list()[0]
    if name != b"\xff":
        value = message.props.decode(text).get(name.decode())
        assert (None if value_bytes is None else value_bytes.decode("utf-8", "replace")) == value


@given(
    texts=st.lists(st.binary(max_size=80) | st.sampled_from([b"", b"ab" * 40, b"a b  ab "]), min_size=1, max_size=6),
    sought=st.sampled_from([b"", b"a", b"ab", b"ba", b"b" * 40, b"abab" * 9, b"\x00"]),
    how=st.sampled_from(["equal", "contains", "startswith", "endswith"]),
)
def test_text_conditions_agree_with_python(texts, sought, how):
    data = b"".join(texts)
    sizes = np.array([len(text) for text in texts], np.int32)
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    block_text = block_texts.Texts(np.frombuffer(data or b"\0", np.uint8), starts, sizes)
    tests = {
        "equal": lambda text: text == sought,
        "contains": lambda text: sought in text,
        "startswith": lambda text: text.startswith(sought),
        "endswith": lambda text: text.endswith(sought),
    }
    assert block_text.match(how, sought).tolist() == [int(tests[how](text)) for text in texts]
    keys = [[key for key in text.split(b" ") if key] for text in texts]
    expected = [-1 if not text_keys else int(any(tests[how](key) for key in text_keys)) for text_keys in keys]
    assert block_text.match(how, sought, keys=True).tolist() == expected
