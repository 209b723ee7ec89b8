"""Small relations say what the commands say that they are made from."""

from __future__ import annotations

import json

import pytest


@pytest.mark.golden
def test_groups_are_those_of_the_command(ask, records):
    listed = records("groupProgress", "groups")
    found = ask("SELECT * FROM groups")
    assert [(row["consumerGroup"], row["consumerOffset"]) for row in found] == [
        (record["group"], record["offset"]) for record in listed
    ]
    for name in ("topic", "queueId", "maxOffset", "behind", "oldestUnreadTimestamp", "state", "mode"):
        assert [row[name] for row in found] == [record[name] for record in listed]


@pytest.mark.golden
def test_findings_are_those_of_the_check(ask, records):
    listed = records("finding", "check", "--all", store="crash-flip-5.3.3")
    found = ask("SELECT * FROM findings", "crash-flip-5.3.3")
    assert sorted((row["id"], row["severity"], row["message"], row["fileOffset"]) for row in found) == sorted(
        (record["id"], record["severity"], record["message"], record["offset"]) for record in listed
    )
    assert found


@pytest.mark.golden
def test_topics_and_queues_have_the_bounds_of_info(ask, records):
    (store,) = records("store", "info")
    bounds = {
        (topic["topic"], queue["queueId"]): (queue["minOffset"], queue["maxOffset"])
        for topic in store["topics"]
        for queue in topic["queues"]
    }
    queues = ask("SELECT * FROM queues")
    assert {(row["topic"], row["queueId"]): (row["minOffset"], row["maxOffset"]) for row in queues} == bounds
    (row,) = ask("SELECT * FROM topics WHERE topic = 'OrderEvents'")
    assert (row["messages"], row["queues"], row["perm"], row["isOrdered"]) == (1597, 4, 6, False)


@pytest.mark.golden
def test_index_files_and_tables_are_rows(ask, records):
    (store,) = records("store", "info")
    assert [row["file"] for row in ask("SELECT file FROM index_files")] == [file["name"] for file in store["index"]]
    tables = {record["table"]: record["value"] for record in records("config", "config")}
    (row,) = ask("""SELECT value FROM tables WHERE path = '$."topicConfigTable"."OrderEvents"."perm"'""")
    assert json.loads(row["value"]) == tables["topics"]["topicConfigTable"]["OrderEvents"]["perm"] == 6
