"""What columns say of a row is never another answer than the unit's."""

from __future__ import annotations

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


def check(wanted: Filter, block: Block) -> int:
    """Rows that the columns decide; fails where one of them is decided wrongly."""
    columns, topics, units = block
    verdicts = wanted.vector(columns, topics)
    assert verdicts.dtype == np.int8
    assert len(verdicts) == len(units)
    for verdict, unit in zip(verdicts.tolist(), units, strict=True):
        if unit is None:
            assert verdict == -1
        elif verdict:
            assert wanted.matches(unit) is (verdict > 0), f"{wanted.text}: row at {unit.offset}"
    return int(np.count_nonzero(verdicts))


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


def test_a_tag_is_ruled_out_by_its_hash(blocks):
    columns, topics, units = blocks[0]
    tags = sorted({unit.tags for unit in units if unit is not None and unit.tags})
    for text in (f'tags = "{tags[0]}"', f'tags in ("{tags[0]}", "none")', "tags is null", "tags is not null"):
        decided = check(parse(text), (columns, topics, units))
        assert 0 < decided < len(units), text


def test_what_only_the_unit_knows_stays_open(blocks):
    for text in ('keys = "x"', 'body contains "a"', "properties.a > 1", 'bornHost startswith "1"', 'tags < "x"'):
        assert check(parse(text), blocks[0]) == 0, text
    columns, topics, _ = blocks[0]
    assert (parse('keys = "x" and size < 0').vector(columns, topics) == -1).all()


def test_an_unchecked_crc_stays_open(golden):
    data = min((golden("broker-orders") / "commitlog").iterdir()).read_bytes()
    columns, topics = UnitColumns(20), TopicTable()
    scan_block_plain(data, len(data), 0, 0, columns, topics, crc=False)
    assert not parse('crc = "ok"').vector(columns, topics).any()


def test_sums_that_leave_64_bits_stay_open(blocks):
    columns, topics, units = blocks[0]
    wanted = parse("physicalOffset + 9223372036854775807 > 0")
    verdicts = wanted.vector(columns, topics)
    open_rows = [unit for unit, verdict in zip(units, verdicts, strict=True) if not verdict]
    assert len(open_rows) >= len(units) - 2
    check(wanted, blocks[0])
    check(parse("size - 9223372036854775807 - 9223372036854775807 > 0"), blocks[0])


def test_topics_beyond_the_tables_limit_stay_open(golden):
    data = min((golden("broker-orders") / "commitlog").iterdir()).read_bytes()
    columns, topics = UnitColumns(300), TopicTable(limit=1)
    scan_block_plain(data, len(data), 0, 0, columns, topics)
    for text in ('topic = "x"', "retry", 'transaction = "commit"', 'tags = "x"', "tagsCode = 5"):
        verdicts = parse(text).vector(columns, topics)
        assert (verdicts[columns["topic_id"] == -1] <= 0).all()
        assert (verdicts == 0).any(), text


def test_an_empty_block_gives_no_rows():
    assert len(parse('size > 1 and topic = "x" and not crc = "ok"').vector(UnitColumns(5), TopicTable())) == 0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=conditions(1_795_167_667_250))
def test_no_filter_is_decided_otherwise_by_columns(blocks, tree):
    for block in blocks:
        check(Filter("random", tree), block)
