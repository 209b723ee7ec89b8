"""Topics get small numbers in order of appearance, the same from both twins and for any number of topics."""

from __future__ import annotations

import random

import pytest
from raw_units import raw_log

from engine.codec.columns import UnitColumns, scan_block, scan_block_plain
from engine.codec.java import jhash
from engine.codec.topic_table import TopicTable

MANY = [
    {"topic": f"topic-{n % 9_000:05d}".encode() if n % 3 else random.Random(n).randbytes(n % 100)}
    for n in range(20_000)
]


def numbers(scan, data, topics):
    out, position, results = UnitColumns(1000), 0, []
    while True:
        result = scan(data, len(data), 0, position, out, topics)
        results += out["topic_id"].tolist()
        position = result.next_position
        if result.stopped != "full":
            return results


def test_ten_thousand_topics_have_different_numbers():
    data = raw_log(*MANY)
    expected: dict[bytes, int] = {}
    ids = [expected.setdefault(unit["topic"], len(expected)) for unit in MANY]
    assert len(expected) > 10_000
    for scan in (scan_block, scan_block_plain):
        topics = TopicTable()
        assert numbers(scan, data, topics) == ids
        assert [topics.raw(n) for n in range(len(topics))] == list(expected)


def test_both_twins_enter_topics_into_the_same_table():
    first_log, second_log = raw_log(*MANY[:3000]), raw_log(*MANY[2000:6000])
    mixed_table, plain_table = TopicTable(), TopicTable()
    topic_numbers = [
        numbers(scan, data, mixed_table)
        for scan, data in ((scan_block, first_log), (scan_block_plain, second_log), (scan_block, second_log))
    ]
    assert topic_numbers == [
        numbers(scan_block_plain, data, plain_table) for data in (first_log, second_log, second_log)
    ]
    assert mixed_table.names == plain_table.names


@pytest.mark.parametrize("scan", [scan_block, scan_block_plain])
def test_past_the_limit_a_topic_has_no_number(scan):
    topics = TopicTable(limit=2)
    assert numbers(scan, raw_log(*({"topic": t} for t in (b"a", b"b", b"c", b"a", b"d"))), topics) == [0, 1, -1, 0, -1]
    assert topics.names == ["a", "b"]


def test_a_name_is_found_again_and_an_unknown_one_is_not():
    topics = TopicTable()
    assert [topics.number_of(raw) for raw in (b"x", "ü".encode(), b"x")] == [0, 1, 0]
    assert (topics.find("ü"), topics.find("y")) == (1, -1)
    assert topics.prefixes().tolist() == [jhash(name + "#") & 0xFFFFFFFF for name in ("x", "ü")]
