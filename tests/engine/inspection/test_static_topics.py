"""Logical queues of static topics: their ranges with the offsets that the store has."""

from __future__ import annotations

import json
from pathlib import Path

import agree
import handmade_stores
import pytest

from engine.codec.message import Unit
from engine.codec.queue_mappings import MappedRange, TopicMapping
from engine.inspection.snapshot import open_store
from engine.inspection.static_topics import logical_ranges

STATIC = "static-topic-5.5.1"


def static_store(root: Path, ranges: tuple[MappedRange, ...]) -> int:
    """Write a store whose topic Orders is static, and return the end of its queue 0."""
    handmade = handmade_stores.healthy()
    handmade.write(root)
    mapping = TopicMapping("Orders", "a", 1, 1, {0: ranges})
    (root / "config").mkdir(exist_ok=True)
    text = json.dumps({"topicQueueMappingInfoMap": {"Orders": mapping.record()}})
    (root / "config/topicQueueMapping.json").write_text(text)
    return handmade.next_offsets["Orders", 0]


def test_ranges_of_the_store_have_physical_and_logical_bounds(tmp_path: Path) -> None:
    ranges = (MappedRange(0, 7, "b", 0, 0, 5), MappedRange(1, 0, "a", 10_000), MappedRange(2, 1, "c", -1))
    end = static_store(tmp_path, ranges)
    with open_store(tmp_path) as store:
        rows = list(logical_ranges(store))
    assert [(row.range, row.is_local, row.is_leading) for row in rows] == [
        (ranges[0], False, False),
        (ranges[1], True, False),
        (ranges[2], False, True),
    ]
    assert [row.logical_bounds for row in rows] == [None, (10_000, 10_000 + end), None]
    assert (rows[1].min_offset, rows[1].max_offset) == (0, end)


def test_config_lists_logical_queues(tmp_path: Path) -> None:
    end = static_store(tmp_path, (MappedRange(0, 0, "a", 500),))
    (row,) = [row for row in agree.records_of("config", tmp_path) if row["type"] == "logicalQueue"]
    assert (row["topic"], row["isLeader"]) == ("Orders", True)
    assert (row["maxOffset"], row["maxLogicalOffset"]) == (end, 500 + end)


@pytest.mark.golden
def test_offsets_are_those_that_brokers_and_mqadmin_gave(golden, golden_account) -> None:
    """A physical offset of a static topic says nothing to a client: queue 2 began with offset 0, which is 10,000."""
    root, lines = golden(STATIC), list(golden_account(STATIC, "truth.jsonl.xz"))
    entries = {
        row["physicalOffset"]: (row["logicalQueueId"], row["logicalOffset"])
        for queue_id in range(4)
        for row in agree.records_of("queue", root, "Ledger", queue_id)
    }
    with open_store(root) as store:
        units = {item.keys[0]: item.offset for item in store.log.walk() if isinstance(item, Unit) and item.keys}
    sends = [line for line in lines if line["kind"] == "send" and line["broker"] == "broker-b"]
    assert len(sends) == len(entries) == 40
    for send in sends:
        assert entries[units[send["key"]]] == (send["logicalQueueId"], send["logicalOffset"])
    rows = agree.records_of("topicStatus", "-s", root, "-t", "Ledger")
    reported = {(line["broker"], line["queueId"]): line for line in lines if line["kind"] == "topicStatus"}
    for row in rows:
        physical = reported["broker-b", row["queueId"]]
        assert (row["minOffset"], row["maxOffset"]) == (physical["minOffset"], physical["maxOffset"])
        assert row["maxLogicalOffset"] == reported["__syslo__global__", row["logicalQueueId"]]["maxOffset"]


@pytest.mark.golden
def test_messages_are_read_by_logical_offset(golden) -> None:
    root = golden(STATIC)
    answer, *units = agree.records_of("get", root, "Ledger", 1, 10_003, "--logical", "--max", 2)
    assert (answer["logicalQueueId"], answer["logicalOffset"], answer["nextBeginOffset"]) == (1, 10_003, 5)
    assert [(unit["queueId"], unit["queueOffset"]) for unit in units] == [(2, 3), (2, 4)]
    _, _, words = agree.command("get", root, "Ledger", 1, 3, "--logical")
    assert "logical offset 3 is in queue 0 of broker-a, another broker's store" in words
    _, _, words = agree.command("get", root, "Ledger", 9, 3, "--logical")
    assert "Ledger has no logical queue 9 in this store" in words
