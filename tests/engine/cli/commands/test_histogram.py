"""``histogram``: bins as records and as a table."""

from __future__ import annotations

import json

import contract_records
import pytest
from counted_histogram import counted, is_near

from engine.cli.main import main
from engine.inspection import open_store
from engine.query import parse


def records_of(capsys, *arguments):
    assert main(["histogram", *map(str, arguments), "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for record in records for line in contract_records.complaints(record)] == []
    return records


@pytest.mark.golden
def test_bins_are_a_plain_count_and_a_summary_comes_last(golden, capsys):
    where = "size > 400 and queueId < 3"
    with open_store(golden("broker-orders")) as store:
        units = list(store.units(crc=False))
        tests = {"": lambda _: True, where: parse(where).compile(store.log.file_name)}
    for condition, test in tests.items():
        filtered = ["--where", condition] if condition else []
        *bins, summary = records_of(capsys, golden("broker-orders"), "--bins", "30", *filtered)
        expected = counted(units, summary["widthMs"], test)
        assert [record["from"] for record in bins] == sorted(expected)
        assert len(bins) <= 30
        for record in bins:
            counted_bin = expected[record["from"]]
            assert {row["topic"]: row["messages"] for row in record["topics"]} == dict(counted_bin.messages)
            assert {row["topic"]: row["bytes"] for row in record["topics"]} == dict(counted_bin.bytes)
            assert (record["physicalOffset"], record["endOffset"]) == (counted_bin.first, counted_bin.end)
        delays = [delay for counted_bin in expected.values() for delay in counted_bin.delays]
        assert is_near(summary["bornToStoredP99Ms"], delays, 99)
        assert summary["units"] == sum(record["messages"] for record in bins)
        assert (summary["from"], summary["to"], summary["complete"]) == (bins[0]["from"], bins[-1]["to"], True)


@pytest.mark.golden
def test_a_time_and_a_number_of_bins_choose_the_bins(golden, capsys):
    *bins, summary = records_of(
        capsys, golden("broker-orders"), "--begin", 1795248628000, "--end", 1795248630000, "--bins", 2
    )
    assert [(record["from"], record["messages"]) for record in bins] == [(1795248628000, 435), (1795248629000, 602)]
    assert summary["units"] == 1037
    (summary,) = records_of(capsys, golden("broker-orders"), "--topic", "Nobody")
    assert (summary["units"], summary["from"], summary["bornToStoredP50Ms"]) == (0, None, None)
    assert main(["histogram", str(golden("broker-orders")), "--bins", "1025"]) == 2
    assert "--bins: expected at most 1,024, found 1,025" in capsys.readouterr().err


@pytest.mark.golden
def test_the_table_has_a_bar_or_a_column_for_each_of_the_largest_topics(golden, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["histogram", str(golden("broker-orders")), "--bins", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("-- 2,813 messages from ")
    assert lines[1] == "-- from born to stored: half within 1 ms, 99 % within 6 ms"
    assert lines[-1].endswith("█") or lines[-1].endswith("▉"), "the last bin has 60 messages"
    assert main(["histogram", str(golden("broker-orders")), "--by", "topic", "--markdown"]) == 0
    head = next(line for line in capsys.readouterr().out.splitlines() if "OrderEvents" in line)
    assert head.count("|") == 12
    assert "other topics" in head
