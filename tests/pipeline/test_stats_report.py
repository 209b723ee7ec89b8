"""Report of sums: one record for the whole and rows by kind, whose parts add up."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore

pytest.importorskip("pyarrow")

from engine.pipeline.files import find_stores
from engine.pipeline.splits import plan
from engine.pipeline.stats import sum_splits
from engine.pipeline.stats_report import files_of, report


@pytest.fixture
def stats_report(tmp_path):
    store = HandmadeStore()
    for number in range(60):
        store.put(("Orders", "Paid")[number % 3 == 0], number % 2, tags=f"T{number % 2}")
    places = find_stores([str(store.write(tmp_path / "store"))])
    splits = plan(places, 1 << 20).splits
    return report(sum_splits(splits), files_of(places, splits))


def test_topics_and_queues_hold_all_messages_the_largest_first(stats_report):
    results = stats_report
    topics = results.rows["statsTopic"]
    assert [row["topic"] for row in topics] == ["Orders", "Paid"]
    assert sum(row["messages"] for row in topics) == sum(row["messages"] for row in results.rows["statsQueue"])


def test_the_parts_of_a_file_are_its_bytes(stats_report):
    results = stats_report
    for row in results.rows["statsFile"]:
        assert row["units"] + row["headers"] + row["stale"] + row["blank"] + row["damage"] + row["zeros"] == row["size"]
    assert results.total["files"] == len(results.rows["statsFile"])
