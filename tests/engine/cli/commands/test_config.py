"""``config``: the tables below ``config/`` as a broker saved them."""

from __future__ import annotations

import agree
import pytest


def test_a_store_without_tables_says_so(storescope):
    assert storescope("config") == []
    assert "no tables" in storescope.text("config")


def test_each_table_of_a_broker_is_a_record(golden):
    record = {row["table"]: row for row in agree.records_of("config", golden("broker-orders"))}
    assert {"topics", "subscriptionGroup", "consumerOffset", "delayOffset"} <= record.keys()
    assert {item["used"] for item in record.values() if item.get("willLoad")} == {"main"}
    assert "dataVersion" in record["topics"]["value"]


@pytest.mark.golden
def test_lite_topics_and_their_groups_follow_the_tables(golden):
    """A broker of 5.5.1 gave the same offsets, times and groups in its answers to 200075 to 200078."""
    records = agree.records_of("config", golden("lite-priority-5.5.1"))
    lite = {(row["topic"], row["liteTopic"]): row for row in records if row["type"] == "liteTopic"}
    assert sorted(lite) == [("Chat", "room-1"), ("Chat", "room-2"), ("Chat", "room-3"), ("News", "day")]
    assert lite["Chat", "room-2"]["groups"] == [{"group": "chatters", "behind": 5}]
    assert lite["News", "day"]["expirationTimestamp"] is None
    (group,) = (row for row in records if row["type"] == "liteGroup")
    assert group["settings"] == {"lite.bind.topic": "Chat", "lite.sub.client.quota": "50"}
    _, text, _ = agree.command("config", str(golden("lite-priority-5.5.1")))
    assert "Chat, lite topic room-2: %LMQ%$Chat$room-2, offsets 0 to 8, last message " in text
    assert "; not read by chatters (5)" in text
    assert "never deleted" in text
