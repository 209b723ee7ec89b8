"""``space``: JSON rows, sums that add up, tables on the terminal, and the forecast last."""

from __future__ import annotations

import json

import agree
import contract_records
import pytest
from handmade_stores import HandmadeStore


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    store = HandmadeStore()
    for number in range(60):
        store.put(topic=("Orders", "Paid")[number % 2], tags=f"T{number % 3}", queue_id=number % 3)
    return store.write(tmp_path_factory.mktemp("space") / "store")


def records(*arguments: str) -> list[dict]:
    status, out, _ = agree.command("space", *arguments, "--json")
    assert status == 0
    return [json.loads(line) for line in out.splitlines()]


def test_json_rows_add_up_and_end_with_the_forecast(root):
    all_records = records(str(root))
    rows = [record for record in all_records if record["type"] == "space"]
    total = next(record for record in all_records if record["type"] == "spaceSum")
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    assert sum(row["bytes"] for row in rows) == total["bytes"] == total["counted"] == size
    assert sum(row["allocated"] for row in rows) == total["allocated"]
    assert total["equal"]
    assert all_records[-1]["type"] == "retention"
    assert sum(record["bytes"] for record in all_records if record["type"] == "spaceTag") == sum(
        record["bytes"] for record in all_records if record["type"] == "spaceProducer"
    )


def test_every_record_has_the_documented_fields(root):
    for record in records(str(root)):
        assert not contract_records.complaints(record), record


def test_quick_reads_files_and_queues_only(root):
    actual_records = records(str(root), "--quick")
    assert not [record for record in actual_records if record["type"] == "spaceTag"]
    total = next(row for row in actual_records if row["type"] == "spaceSum")
    assert total["how"] == "queues"
    assert total["equal"]


def test_the_terminal_shows_tables_a_sum_and_the_rule(root):
    status, out, _ = agree.command("space", str(root))
    assert status == 0
    for words in (
        "Orders",
        "Paid",
        "zero tail",
        "equal to the files",
        "fileReservedTime 72 h",
        "newest file",
        "T1",
        "127.0.0.1",
    ):
        assert words in out


def test_markdown_has_its_tables(root):
    status, out, _ = agree.command("space", str(root), "--markdown")
    assert status == 0
    assert "| Topic | Commit log | Queue files |" in out
    assert "- **Retention**:" in out


def test_a_configuration_decides_the_forecast(root, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("fileReservedTime=5\ndeleteWhen=23\n")
    forecast = records(str(root), "--config", str(conf))[-1]
    assert (forecast["fileReservedTime"], forecast["deleteWhen"], forecast["configured"]) == (5, "23", True)


def test_a_folder_that_is_not_a_store_is_a_one_line_error(tmp_path):
    status, out, err = agree.command("space", str(tmp_path))
    assert (status, out) == (3, "")
    assert err.startswith("storescope: ")
    assert err.count("\n") == 1
