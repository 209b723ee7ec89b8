"""Entries of queues and index files: the same as their lists."""

from __future__ import annotations

import pytest

QUEUES = ("broker-orders-5.5.1", "multi-queue-ext-5.3.3", "batchcq-5.3.3", "rocksdb-orders-5.5.1")


@pytest.mark.golden
@pytest.mark.parametrize("store", QUEUES)
def test_entries_of_a_queue_are_those_of_its_list(ask, records, store):
    for queue in ask("SELECT topic, queueId FROM queues ORDER BY ALL LIMIT 3", store):
        listed = records("cq", "queue", queue["topic"], str(queue["queueId"]), store=store)
        condition = f"topic = '{queue['topic']}' AND queueId = {queue['queueId']}"
        found = ask(f"SELECT * FROM queue_entries WHERE {condition}", store)
        for name in ("queueOffset", "physicalOffset", "size", "state"):
            assert [row[name] for row in found] == [entry[name] for entry in listed]
        tags = [entry["ext"]["tagsCode"] if entry["ext"] else entry["tagsCode"] for entry in listed]
        assert [row["tagsCode"] for row in found] == tags
        assert [row["batchSize"] for row in found] == [entry.get("batchSize") for entry in listed]


@pytest.mark.golden
def test_index_entries_are_those_of_their_list(ask, records):
    listed = records("indexEntry", "index", "--entries")
    found = ask("SELECT * FROM index_entries")
    names = ("file", "entry", "slot", "keyHash", "phyOffset", "timeDiff", "storeTimestamp", "prev")
    assert [{name: row[name] for name in names} for row in found] == [
        {name: entry[name] for name in names} for entry in listed
    ]
    assert len(found) > 1000


@pytest.mark.golden
def test_entries_join_the_messages_that_they_point_at(ask):
    (row,) = ask(
        "SELECT count(*) AS entries, count(u.physicalOffset) AS found, count(*) FILTER (e.size = u.size) AS same "
        "FROM queue_entries e LEFT JOIN units u USING (physicalOffset)"
    )
    assert row["entries"] == row["found"] == row["same"] == 2817
