"""``config``: the tables below ``config/`` as a broker saved them."""

from __future__ import annotations

import agree


def test_a_store_without_tables_says_so(storescope):
    assert storescope("config") == []
    assert "no tables" in storescope.text("config")


def test_each_table_of_a_broker_is_a_record(golden):
    record = {row["table"]: row for row in agree.records_of("config", golden("broker-orders"))}
    assert {"topics", "subscriptionGroup", "consumerOffset", "delayOffset"} <= record.keys()
    assert {item["used"] for item in record.values() if item.get("willLoad")} == {"main"}
    assert "dataVersion" in record["topics"]["value"]
