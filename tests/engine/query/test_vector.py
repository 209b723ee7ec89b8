"""What columns say of a row is never another answer than the unit's."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from query_trees import conditions

from engine.codec import message
from engine.codec.columns import UNIT, UnitColumns, scan_block_plain
from engine.codec.topic_table import TopicTable
from engine.query import parse
from engine.query.filter import Filter
from engine.query.vector import needed_text
from engine.query.vector import verdicts as of_rows

pytestmark = pytest.mark.golden

STORES = ("broker-orders", "broker-transactions", "broker-retries", "ipv6-and-unicode-5.3.3", "clean-4.9.8")
Block = tuple[UnitColumns, TopicTable, list[message.Unit | None]]


@pytest.fixture(scope="module")
def blocks(golden: Callable[..., Path]) -> list[Block]:
    """One scanned block of each store with the units of its rows; None where a row is no unit."""
    found = []
    for name in STORES:
        path = min((golden(name) / "commitlog").iterdir())
        data = path.read_bytes()
        columns, topics = UnitColumns(400), TopicTable()
        scan_block_plain(data, len(data), 0, 0, columns, topics)
        units = [
            message.decode(data, int(columns.offset[row])) if columns.kind[row] == UNIT else None
            for row in range(len(columns))
        ]
        found.append((columns, topics, units))
    return found


def verdicts(wanted: Filter, columns: UnitColumns, topics: TopicTable) -> np.ndarray:
    """The verdict on every row of a block; rows that are no units are −1."""
    rows = np.flatnonzero(columns["kind"] == UNIT)
    found = np.full(len(columns), -1, np.int8)
    found[rows] = of_rows(wanted.tree, columns, topics, None, rows)
    return found


def check(wanted: Filter, block: Block) -> int:
    """Rows that the columns decide; fails where one of them is decided wrongly."""
    columns, topics, units = block
    found = verdicts(wanted, columns, topics)
    assert len(found) == len(units)
    for verdict, unit in zip(found.tolist(), units, strict=True):
        if unit is None:
            assert verdict == -1
        elif verdict:
            assert wanted.matches(unit) is (verdict > 0), f"{wanted.text}: row at {unit.offset}"
    return int(np.count_nonzero(found))


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
def test_columns_alone_decide_these(blocks, text):
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
def test_the_bytes_of_a_block_decide_what_is_asked_of_its_texts(blocks, text):
    for block in blocks:
        assert check(parse(text, zone=UTC), block) == len(block[2])


def test_compressed_bodies_are_left_to_the_unit(blocks):
    for text in ('body contains "e"', 'body = ""', "body is null", "body matches /[a-c]/", 'body < "x"'):
        for columns, topics, units in blocks:
            check(parse(text), (columns, topics, units))
            packed = [unit is not None and bool(unit.sys_flag & message.COMPRESSED) for unit in units]
            assert not verdicts(parse(text), columns, topics)[packed].any()


def test_what_only_the_unit_knows_stays_open(blocks):
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
    wanted = parse("physicalOffset + 9223372036854775807 > 0")
    found = verdicts(wanted, columns, topics)
    open_rows = [unit for unit, verdict in zip(units, found, strict=True) if not verdict]
    assert len(open_rows) >= len(units) - 2
    check(wanted, blocks[0])
    check(parse("size - 9223372036854775807 - 9223372036854775807 > 0"), blocks[0])


def test_topics_beyond_the_tables_limit_stay_open(golden):
    data = min((golden("broker-orders") / "commitlog").iterdir()).read_bytes()
    columns, topics = UnitColumns(300), TopicTable(limit=1)
    scan_block_plain(data, len(data), 0, 0, columns, topics)
    for text in ('topic = "x"', "retry", 'transaction = "commit"', "tagsCode = 5"):
        found = verdicts(parse(text), columns, topics)
        assert (found[columns["topic_id"] == -1] <= 0).all()
        assert (found == 0).any(), text


def test_an_empty_block_gives_no_rows():
    assert len(verdicts(parse('size > 1 and topic = "x" and not crc = "ok"'), UnitColumns(5), TopicTable())) == 0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=conditions(1_795_167_667_250))
def test_no_filter_is_decided_otherwise_by_columns(blocks, tree):
    for block in blocks:
        check(Filter("random", tree), block)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("9{4}", "9999"),
        ("order-0{2,}1", "order-00"),
        ("ab+c", "ab"),
        ("ab*cde", "cde"),
        ("abc?d", "ab"),
        (r"^K\d+-end$", "-end"),
        (r"a\.b\/c", "a.b/c"),
        ("[abc]xyz[^]]q", "xyz"),
        ("(one|two) three", " three"),
        ("(?:x)yy", "yy"),
        ("ab{1}?c", "abc"),
        ("a{,3}bb", "bb"),
        ("{a}", "{a}"),
        ("a|b", ""),
        (r"\x41b", ""),
        (r"(a)\1bcd", ""),
        ("(?i)abc", ""),
        ("(?#|)abc", ""),
        ("((a)b)cdef", ""),
        ("订单{2}号", "订单单号"),
    ],
)
def test_the_text_that_a_pattern_needs(pattern: str, text: str) -> None:
    assert needed_text(pattern) == text


def test_every_match_has_the_text_that_its_pattern_needs() -> None:
    pick = random.Random(5)
    pieces = [
        *"aab(){}|.^$*+?[]\\-,12",
        "{2}",
        "{1,2}",
        "{,2}",
        r"\d",
        r"\b",
        r"\.",
        "[ab]",
        "[^a]",
        "(?:",
        "(?=",
        "(?i)",
    ]
    tried = needed = 0
    while tried < 3000:
        pattern = "".join(pick.choices(pieces, k=pick.randint(1, 9)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = re.compile(pattern)
        except (re.error, FutureWarning, DeprecationWarning):
            continue
        tried += 1
        text = needed_text(pattern)
        needed += bool(text)
        for _ in range(20):
            line = "".join(pick.choices("aaabb.-12|({", k=pick.randint(0, 14)))
            if found.search(line):
                assert text in line, (pattern, line)
    assert needed > 1000
