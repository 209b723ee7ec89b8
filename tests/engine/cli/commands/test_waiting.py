"""``waiting``: messages that wait, and what their services have reached."""

from __future__ import annotations

import json

import contract_records
import pytest

from engine.cli.main import main


@pytest.mark.golden
def test_rows_come_in_order_of_due_time_and_a_summary_last(golden, capsys):
    assert main(["waiting", str(golden("rocksdb-rows-5.5.1")), "--json", "--limit", "2"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["type"] for record in records] == ["waiting", "waiting", "waitingSummary"]
    assert [line for record in records for line in contract_records.complaints(record)] == []
    assert records[0]["due"] <= records[1]["due"]
    summary = records[2]
    assert (summary["messages"], summary["listed"], summary["complete"]) == (13, 2, True)
    assert summary["kinds"] == {"pop": 6, "timer": 3, "half": 3, "retry": 1}


@pytest.mark.golden
def test_totals_stand_below_the_table(golden, capsys):
    assert main(["waiting", str(golden("broker-pop")), "--limit", "1"]) == 0
    text = capsys.readouterr().out
    assert "-- 5 messages wait; 1 of them listed (--limit)" in text
    assert "-- groups: billing 5" in text


def test_a_store_in_which_nothing_waits_says_so(storescope):
    assert storescope.text("waiting") == "-- no message waits in this store\n"
    (summary,) = storescope("waiting")
    assert (summary["messages"], summary["complete"], summary["services"]) == (0, True, [])


@pytest.mark.golden
def test_groups_and_keys_are_masked_in_rows_and_totals(golden, capsys):
    store = str(golden("broker-pop"))
    assert main(["waiting", store, "--json", "--mask", "keys,groups"]) == 0
    text = capsys.readouterr().out
    *rows, summary = [json.loads(line) for line in text.splitlines()]
    (group,) = summary["groups"]
    assert group.startswith("group-")
    assert {row["group"] for row in rows} == {group}
    assert all(row["uniqueKey"].startswith("key-") for row in rows)
    assert "billing" not in text
    assert main(["waiting", store, "--mask", "groups"]) == 0
    assert "billing" not in capsys.readouterr().out
