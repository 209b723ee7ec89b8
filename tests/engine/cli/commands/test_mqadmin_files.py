"""mqadmin's commands without a broker say what mqadmin 5.5.0 says of the same files (``mqadmin-5.5.0.txt.xz``)."""

from __future__ import annotations

import json
import lzma
import re
import shutil

import agree
import golden_stores
import made_rocksdb
import pytest

from engine.codec.json_dialect import parse

TABLES, COMPACTED = "rocksdb-orders-5.5.1", "broker-compaction-5.5.1"


def real_outputs(name: str) -> dict[str, str]:
    """Return what mqadmin printed by its command line."""
    with lzma.open(golden_stores.GOLDEN / name / "mqadmin-5.5.0.txt.xz", "rt", encoding="utf-8") as file:
        text = file.read()
    return {head: body for head, _, body in (part.partition("\n") for part in text.split("### ")[1:])}


def quoted(value):
    """Return a parsed table with its queue ids as strings, as standard JSON has them."""
    return json.loads(json.dumps(value))


TABLE_COMMANDS = [line for line in real_outputs(TABLES) if "-j false" not in line]
ROW_COMMANDS = [
    line for line in real_outputs(TABLES) if "-j false" in line or (line.startswith("export") and "-j" not in line)
]


@pytest.mark.parametrize("line", [line for line in TABLE_COMMANDS if line not in ROW_COMMANDS])
def test_tables_are_those_that_mqadmin_prints(line, golden):
    made_rocksdb.binding()
    text = real_outputs(TABLES)[line]
    expected = parse(text[text.index("{") :].strip().encode()).value
    status, out, _ = agree.command(*line.replace("STORE", str(golden(TABLES))).split())
    assert (status, json.loads(out)) == (0, quoted(expected))
    (record,) = agree.records_of(*line.replace("STORE", str(golden(TABLES))).split())
    assert record["value"] == quoted(expected)


@pytest.mark.parametrize("line", ROW_COMMANDS)
def test_rows_are_those_that_mqadmin_lists(line, golden):
    """mqadmin writes the first row behind the name of the table, and offsets as Java writes a map."""
    made_rocksdb.binding()
    rows = re.compile(r"(\d+), Key: (.*), Value: (.*)")
    expected = rows.findall(real_outputs(TABLES)[line])
    if "consumerOffsets" in line:
        expected = [
            (number, key, re.sub(r"(\d+)=(\d+)", r'"\1":\2', value).replace(", ", ","))
            for number, key, value in expected
        ]
    _, out, _ = agree.command(*line.replace("STORE", str(golden(TABLES))).split())
    assert rows.findall(out) == expected
    assert expected


@pytest.mark.parametrize("table", ["topics", "subscriptionGroups", "consumerOffsets"])
def test_other_layouts_are_read_too(table, golden):
    """mqadmin cannot read the layout of configManagerVersion=v2."""
    made_rocksdb.binding()
    store = golden("rocksdb-tables-v2-5.5.1")
    names = {"topics": "topics", "subscriptionGroups": "subscriptionGroup", "consumerOffsets": "consumerOffset"}
    (record,) = agree.records_of("rocksDBConfigToJson", "-p", store / "config", "-t", table)
    (whole,) = [item for item in agree.records_of("config", store) if item["table"] == names[table]]
    assert record["value"].items() <= whole["value"].items()
    assert any(record["value"].values()) or table == "subscriptionGroups"


def test_a_folder_without_such_a_table_is_refused(golden):
    made_rocksdb.binding()
    status, _, error = agree.command("rocksDBConfigToJson", "-p", golden(COMPACTED) / "config", "-t", "topics")
    assert status == 3
    assert "found none" in error


def test_a_second_database_with_the_table_is_named(golden, tmp_path):
    made_rocksdb.binding()
    config = tmp_path / "config"
    shutil.copytree(golden(TABLES) / "config", config)
    shutil.copytree(golden("rocksdb-tables-v2-5.5.1") / "config" / "rdb", config / "rdb")
    status, _, error = agree.command("rocksDBConfigToJson", "-p", config, "-t", "topics")
    assert status == 0
    assert f"{config / 'rdb'} has this table, too" in error


def test_messages_of_a_compacted_log_are_those_that_mqadmin_lists(golden):
    ((line, text),) = real_outputs(COMPACTED).items()
    names = {
        "commitLogOffset": "physicalOffset",
        "storeSize": "size",
        "queueOffset": "queueOffset",
        "queueId": "queueId",
        "storeTimestamp": "storeTimestamp",
        "msgId": "offsetMsgId",
        "KEYS": "keys",
        "UNIQ_KEY": "uniqueKey",
    }
    expected = [dict(re.findall(r"(\w+)=([\w-]+)", message)) for message in text.splitlines() if message]
    units = agree.records_of(*line.replace("STORE", str(golden(COMPACTED))).split())
    assert len(units) == len(expected) == 40
    for unit, message in zip(units, expected, strict=True):
        ours = {name: unit[field] for name, field in names.items()}
        assert {**ours, "KEYS": " ".join(ours["KEYS"])} == {
            name: int(message[name]) if isinstance(ours[name], int) else message[name] for name in names
        }


def test_a_folder_is_no_file_of_a_compacted_log(golden):
    status, _, error = agree.command("dumpCompactionLog", "-f", golden(COMPACTED))
    assert status == 2
    assert "found a folder" in error
