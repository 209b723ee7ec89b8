"""``rows``: messages that a broker keeps in a RocksDB."""

from __future__ import annotations

import json

from engine.cli.main import main


def records(capsys, *arguments):
    assert main(["rows", *map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_row_leads_to_its_message(golden, capsys):
    rows = records(capsys, golden("rocksdb-rows-5.5.1"))
    assert [row["subject"] for row in rows] == ["timer"] * 5 + ["transactions"] * 3 + ["pop"] * 6
    assert {row["verdict"] for row in rows} == {"match"}
    assert rows[5] == {
        "type": "row",
        "subject": "transactions",
        "state": "open",
        "verdict": "match",
        "topic": "PaymentEvents",
        "queueId": 1,
        "queueOffset": None,
        "consumerGroup": None,
        "producerGroup": "shop",
        "uniqueKey": "7F00000167CC71887A5792ADB2700009",
        "key": None,
        "time": None,
        "count": 7,
        "physicalOffset": 4_468,
        "size": 373,
        "file": "00000000000000000000",
        "isInFiles": True,
    }


def test_rows_are_chosen_by_subject_and_verdict(golden, capsys):
    root = golden("rocksdb-rows-5.4.0")
    assert {row["subject"] for row in records(capsys, root, "--of", "pop")} == {"pop"}
    assert records(capsys, root, "--verdict", "missing") == []


def test_groups_and_keys_can_be_hidden(golden, capsys):
    root = golden("rocksdb-rows-5.5.1")
    rows = records(capsys, root, "--mask", "groups,keys")
    plain = records(capsys, root)
    assert not {"shop", "billing"} & {row[name] for row in rows for name in ("consumerGroup", "producerGroup")}
    assert all(one["uniqueKey"] != other["uniqueKey"] for one, other in zip(rows, plain, strict=True))


def test_a_store_without_such_rows_says_so(golden, capsys):
    assert main(["rows", str(golden("clean-5.5.1"))]) == 0
    assert capsys.readouterr().out == "-- the store has no such rows in a RocksDB\n"
