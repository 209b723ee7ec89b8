"""``queue``: entries of one consume queue."""

from __future__ import annotations

import json
import struct

import agree
import pytest
from handmade_stores import healthy


def test_entries_match_the_dispatched_messages(storescope):
    records = storescope("queue", "Orders", 0)
    expected = [unit for unit in storescope.store.units if unit.topic == "Orders"]
    assert [
        (record["queueOffset"], record["physicalOffset"], record["size"], record["tagsCode"]) for record in records
    ] == [(unit.queue_offset, unit.offset, unit.size, unit.tags_code) for unit in expected]


def test_a_range_is_compared_with_the_log(storescope):
    records = storescope("queue", "Paid", 0, "--from", 2, "--to", 4, "--resolve")
    assert [(record["queueOffset"], record["verdict"]) for record in records] == [(2, "ok"), (3, "ok")]


def test_a_plain_list_has_the_entries_of_a_resolved_one(storescope):
    """It is written many entries at once; entries without a message and those of batches have the same fields."""
    plain, resolved = (storescope("queue", "Orders", 0, *more) for more in ((), ("--resolve",)))
    assert [record | {"verdict": "ok"} for record in plain] == resolved
    assert storescope("queue", "Orders", 0, "--from", 3, "--to", 5) == plain[3:5]


def test_entries_in_front_of_the_first_and_zero_bytes_keep_their_states(tmp_path):
    root = healthy(60).write(tmp_path / "store")
    file = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    data = file.read_bytes()
    prefilled = struct.pack(">qiq", 0, 0x7FFFFFFF, 0)
    file.write_bytes(2 * prefilled + bytes(20) + data[60:])
    records = agree.records_of("queue", root, "Orders", "0", "--to", "5")
    assert [record["state"] for record in records] == ["prefilled", "prefilled", "empty", "entry", "entry"]
    assert [record["queueOffset"] for record in records] == [0, 1, 2, 3, 4]


def test_a_missing_queue_is_named(storescope):
    assert "Nowhere" in storescope.text("queue", "Nowhere", 0, status=3)


@pytest.mark.golden
def test_queues_in_files_and_in_a_rocksdb_are_compared(golden):
    pytest.importorskip("rocksdict")
    status, printed, _ = agree.command("queue", str(golden("combine-5.5.1")), "--both", "--json")
    both, *queues = [json.loads(line) for line in printed.splitlines()]
    assert (status, both["type"], both["counting"]) == (0, "bothSides", "files")
    assert {(queue["type"], queue["firstDifference"]) for queue in queues} == {("queueSides", None)}
    assert all(queue["filesMaxOffset"] == queue["rocksdbMaxOffset"] for queue in queues)
    _, text, _ = agree.command("queue", str(golden("combine-5.5.1")), "TopicA", "1", "--both")
    assert "-- both hold the same" in text
    assert "-- the file queues count: no configuration is given" in text


def test_both_needs_both_and_the_entries_need_a_queue(storescope):
    assert "found only one of them" in storescope.text("queue", "--both", status=3)
    assert "expected TOPIC and QUEUE, or --both" in storescope.text("queue", status=2)
