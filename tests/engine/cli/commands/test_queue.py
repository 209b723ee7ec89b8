"""``queue``: entries of one consume queue."""

from __future__ import annotations


def test_entries_match_the_dispatched_messages(storescope):
    records = storescope("queue", "Orders", 0)
    expected = [unit for unit in storescope.store.units if unit.topic == "Orders"]
    assert [
        (record["queueOffset"], record["physicalOffset"], record["size"], record["tagsCode"]) for record in records
    ] == [(unit.queue_offset, unit.offset, unit.size, unit.tags_code) for unit in expected]


def test_a_range_is_compared_with_the_log(storescope):
    records = storescope("queue", "Paid", 0, "--from", 2, "--to", 4, "--resolve")
    assert [(record["queueOffset"], record["verdict"]) for record in records] == [(2, "ok"), (3, "ok")]


def test_a_missing_queue_is_named(storescope):
    assert "Nowhere" in storescope.text("queue", "Nowhere", 0, status=3)
