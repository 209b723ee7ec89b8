"""Mappings of static topics that contradict themselves, their topic or their queue (CF19)."""

from __future__ import annotations

import json
from pathlib import Path

import handmade_stores
import pytest

from engine.codec.queue_mappings import MappedRange, TopicMapping
from engine.inspection.check.static_topics import findings
from engine.inspection.snapshot import open_store


def texts(root: Path, mapping: TopicMapping, queues: int = 4) -> list[tuple[str, str]]:
    """Return severity and text of each finding in a store with this mapping of topic Orders."""
    handmade_stores.healthy().write(root)
    (root / "config").mkdir(exist_ok=True)
    rows = {"topicQueueMappingInfoMap": {"Orders": mapping.record()}}
    (root / "config/topicQueueMapping.json").write_text(json.dumps(rows))
    topic = {"topicName": "Orders", "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}
    (root / "config/topics.json").write_text(json.dumps({"topicConfigTable": {"Orders": topic}}))
    with open_store(root) as store:
        return [(finding.severity, str(finding.message)) for finding in findings(store)]


def mapping(*ranges: MappedRange, **options: object) -> TopicMapping:
    return TopicMapping("Orders", "a", 1, 1, {0: ranges}, **options)


def test_a_mapping_that_fits_the_store_has_no_finding(tmp_path: Path) -> None:
    assert texts(tmp_path, mapping(MappedRange(0, 3, "b", 0, 0, 9), MappedRange(1, 0, "a", 10_000))) == []


@pytest.mark.parametrize(
    ("ranges", "severity", "words"),
    [
        ((MappedRange(1, 0, "a", 0), MappedRange(0, 1, "a", 9)), "error", "contradicts itself: 0: The gen does not"),
        ((MappedRange(0, 9, "a", 0),), "error", "Logical queue 0 of Orders is queue 9, and topics.json has 4 queues"),
        (
            (MappedRange(0, 0, "a", 0, 0, 2), MappedRange(1, 0, "b", 10_000)),
            "warn",
            "behind the end of logical queue 0",
        ),
    ],
)
def test_what_is_wrong_with_a_mapping_is_said(tmp_path: Path, ranges, severity: str, words: str) -> None:
    ((found_severity, text),) = texts(tmp_path, mapping(*ranges))
    assert found_severity == severity
    assert words in text


def test_a_queue_of_two_logical_queues_is_a_contradiction(tmp_path: Path) -> None:
    shared = (MappedRange(0, 0, "a", 0),)
    ((_, text),) = texts(tmp_path, TopicMapping("Orders", "a", 2, 1, {0: shared, 1: shared}))
    assert text.endswith("0, 1: a/0")
