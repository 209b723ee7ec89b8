"""Records of every command have the documented fields with the right JSON types, on many kinds of stores."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json

import agree
import pytest
from commands import reading_commands
from contract_records import RECORDS, complaints

pytestmark = pytest.mark.golden

STORES = [
    ("broker-orders", "store"),
    ("broker-retries-4.9.7", "store"),
    ("broker-sqlfilter", "store"),
    ("batchcq-5.3.3", "store"),
    ("ipv6-and-unicode-5.3.3", "store"),
    ("crash-flip-5.3.3", "store"),
    ("first-files-deleted-5.3.3", "store"),
]
ELSEWHERE = {"damage", "snapshot", "capsule", "finding", "slave", "request", "replayed", "replayDifference"}


@pytest.mark.full_form(keep=4)
@pytest.mark.parametrize(("name", "archive"), STORES)
def test_every_record_of_every_command(golden, name, archive):
    kinds = set()
    for arguments in reading_commands(golden(name, archive)):
        status, out, err = agree.command(*arguments, "--json")
        assert status in {0, 1}, (arguments, err)
        for record in map(json.loads, out.splitlines()):
            kinds.add(record["type"])
            assert complaints(record) == [], arguments
    if name == "broker-orders":
        assert kinds >= set(RECORDS) - ELSEWHERE


def test_damage_and_its_neighbours(golden, tmp_path):
    file = sorted((golden("clean-5.3.3") / "commitlog").iterdir())[0]
    data = bytearray(file.read_bytes())
    data[5000:5400] = b"\xee" * 400
    (tmp_path / file.name).write_bytes(data)
    _, out, _ = agree.command("units", tmp_path / file.name, "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert {record["type"] for record in records} == {"unit", "damage", "blank", "end"}
    assert [line for record in records for line in complaints(record)] == []
    places = [record for record in records if record["type"] != "end"]
    for row, following in itertools.pairwise(places):
        assert row["physicalOffset"] + row["size"] == following["physicalOffset"]


def test_a_snapshot(golden, tmp_path):
    _, out, _ = agree.command("snapshot", golden("propcrc-5.3.3"), tmp_path / "copy", "--json")
    (record,) = map(json.loads, out.splitlines())
    assert complaints(record) == []


def test_resolved_entries_have_a_verdict(golden):
    entries = agree.records_of("queue", golden("broker-orders"), "OrderEvents", 0, "--resolve")
    assert {entry["verdict"] for entry in entries} == {"ok"}
    assert all("verdict" not in entry for entry in agree.records_of("queue", golden("broker-orders"), "OrderEvents", 0))


def test_a_batch_queue_has_the_sizes_of_its_batches(golden):
    store = golden("batchcq-5.3.3")
    assert "batchCq" in agree.records_of("info", store)[0]["flavour"]
    topic = sorted((store / "batchconsumequeue").iterdir())[0]
    entries = agree.records_of("queue", store, topic.name, sorted(topic.iterdir())[0].name)
    assert entries
    assert all(entry["batchSize"] >= 1 and entry["storeTimestamp"] > 0 for entry in entries)


def test_bodies_are_included_on_request(golden):
    for unit in agree.records_of("units", golden("broker-orders"), "--body", "--limit", 50):
        if unit["type"] == "unit":
            body = base64.b64decode(unit["body"])
            assert (len(body), hashlib.sha256(body).hexdigest()) == (unit["bodyLength"], unit["bodySha256"])


@pytest.mark.parametrize("limit", [1, 7, 5000])
def test_a_limit_that_truncates_is_reported(golden, limit):
    *units, end = agree.records_of("units", golden("broker-transactions"), "--limit", limit)
    counted = sum(unit["type"] == "unit" for unit in units)
    assert (end["units"], end["complete"]) == (counted, counted < limit)


def test_ranges_are_exclusive_at_their_end(golden):
    units = agree.records_of("units", golden("broker-transactions"))
    third = units[2]["physicalOffset"]
    response = agree.records_of(
        "units", golden("broker-transactions"), "--from", units[1]["physicalOffset"], "--to", third
    )
    assert [unit["physicalOffset"] for unit in response if unit["type"] == "unit"] == [units[1]["physicalOffset"]]
    entries = agree.records_of("queue", golden("broker-transactions"), "OrderEvents", 0, "--from", 3, "--to", 5)
    assert [entry["queueOffset"] for entry in entries] == [3, 4]


def test_absent_values_are_null(golden):
    units = [unit for unit in agree.records_of("units", golden("broker-transactions")) if unit["type"] == "unit"]
    operations = [unit for unit in units if unit["topic"] == "RMQ_SYS_TRANS_OP_HALF_TOPIC"]
    assert {unit["uniqueKey"] for unit in operations} == {None}
    assert all(unit["keys"] == [] for unit in operations)
    assert all(unit["tags"] != "" for unit in units)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("broker-orders", "57a110f39722e58f6a07f9edc21077227f3da039f32ddd1968a3f95ae6734238"),
        ("ipv6-and-unicode-5.3.3", "b0f08b791dcda3b93a06b27318476b29cf1332e055c527a7647d9ad38ad43cd4"),
        ("crash-flip-5.3.3", "4d8d0a7f8790fac73438a94d719420aea385bd6608c78df102bfd1b9a187842f"),
    ],
)
def test_the_units_of_a_real_store_are_printed_in_the_same_bytes(golden, name, digest):
    """Field names, their order and values stay the same for scripts, whatever code produces them."""
    _, out, _ = agree.command("units", golden(name), "--json", "--body")
    assert hashlib.sha256(out.encode()).hexdigest() == digest
