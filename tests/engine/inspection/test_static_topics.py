"""Logical queues of static topics: their ranges with the offsets that the store has."""

from __future__ import annotations

import json
from pathlib import Path

import agree
import handmade_stores

from engine.codec.queue_mappings import MappedRange, TopicMapping
from engine.inspection.snapshot import open_store
from engine.inspection.static_topics import logical_ranges


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
