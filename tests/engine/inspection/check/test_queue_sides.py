"""Queues in files and in a RocksDB of the same store that differ (CQ19)."""

from __future__ import annotations

import shutil

import agree
import made_rocksdb
import pytest
from handmade_stores import healthy

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.findings import check
from engine.rules.findings import Finding

DOUBLE = {"storeType": "default", "rocksdbCQDoubleWriteEnable": "true"}
READS_ROCKSDB = {**DOUBLE, "combineCQPreferCQType": "defaultRocksDB"}
NUMBER = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made_rocksdb.binding()
    made = healthy(60)
    root = made.write(tmp_path_factory.mktemp("both") / "store")
    made_rocksdb.make_database(root / "consumequeue_rocksdb", made_rocksdb.rows_of_store(made))
    return made, root


@pytest.fixture
def root(made, tmp_path):
    return shutil.copytree(made[1], tmp_path / "store")


def rows_of(root):
    return made_rocksdb.QueueRows(root / "consumequeue_rocksdb")


def change_entry(root):
    rows = rows_of(root)
    rows.change_entry("Orders", 0, NUMBER, size=7)
    rows.write()


def numbers_of(rows):
    return [number for number in range(100) if made_rocksdb.codec.entry_key("Orders", 0, number) in rows.entries]


def cut_end(root):
    rows = rows_of(root)
    numbers = numbers_of(rows)
    rows.delete_entries("Orders", 0, numbers[-2:])
    rows.set_bound("Orders", 0, "max", numbers[-3])
    rows.write()


def cut_begin(root):
    rows = rows_of(root)
    rows.delete_entries("Orders", 0, range(NUMBER))
    rows.set_bound("Orders", 0, "min", NUMBER)
    rows.write()


def drop_queue(root):
    rows = rows_of(root)
    rows.delete_entries("Orders", 0, numbers_of(rows))
    del rows.bounds[made_rocksdb.codec.bound_key("Orders", 0, "max")]
    rows.write()


def sides_findings(root, options=None):
    config = from_mapping(options)[0] if options else None
    with open_store(root, config) as store:
        found = [item for item in check(store) if isinstance(item, Finding)]
    return [finding for finding in found if finding.id == "CQ19"]


def test_sides_that_hold_the_same_have_no_finding(root):
    for options in (None, DOUBLE, READS_ROCKSDB, {"storeType": "defaultRocksDB"}):
        assert sides_findings(root, options) == []


CASES = [
    (change_entry, None, "warn", "adds the entries that the RocksDB lacks"),
    (change_entry, DOUBLE, "warn", "begins anew at the end"),
    (change_entry, READS_ROCKSDB, "error", "does not start"),
    (change_entry, {"storeType": "default"}, "note", "does not touch the RocksDB"),
    (change_entry, {"storeType": "defaultRocksDB"}, "note", "does not touch the file queues"),
    (cut_end, None, "note", "adds the entries"),
    (cut_end, DOUBLE, "note", "begins anew at the end"),
    (cut_end, READS_ROCKSDB, "error", "does not start"),
    (drop_queue, DOUBLE, "note", "begins anew at the end"),
    (drop_queue, READS_ROCKSDB, "error", "does not start"),
    (cut_begin, READS_ROCKSDB, "error", "does not start"),
]


@pytest.mark.parametrize(("change", "options", "severity", "words"), CASES)
def test_a_difference_is_as_grave_as_what_a_broker_does_with_it(root, change, options, severity, words):
    change(root)
    (finding,) = sides_findings(root, options)
    assert finding.severity == severity
    assert finding.message.startswith("1 queue in files and in the RocksDB consumequeue_rocksdb differs: Orders/0")
    assert words in finding.message


def test_the_first_other_entry_is_shown_from_both_sides(root):
    change_entry(root)
    (finding,) = sides_findings(root, DOUBLE)
    assert finding.evidence["queueOffset"] == NUMBER
    assert finding.evidence["found"].endswith(", 7 bytes")
    assert finding.evidence["found"] != finding.evidence["expected"]
    assert finding.evidence["counting"] == "files"


def test_a_start_that_5_5_refuses_is_told_from_one_that_adds_the_entries(root):
    """A real 5.5.1 does not start after a clean stop whose RocksDB ends early, and adds the entries after a crash."""
    cut_end(root)
    (finding,) = sides_findings(root, READS_ROCKSDB)
    assert "take the line combineCQPreferCQType=defaultRocksDB out: the broker then starts" in finding.next_step
    (root / "abort").write_text("1")
    (finding,) = sides_findings(root, READS_ROCKSDB)
    assert finding.severity == "note"


@pytest.mark.parametrize(("change", "options"), [(drop_queue, None), (cut_begin, DOUBLE), (cut_begin, None)])
def test_a_rocksdb_that_began_later_is_no_fault_while_the_files_are_read(root, change, options):
    change(root)
    assert sides_findings(root, options) == []


def test_only_lite_topics_are_compared_where_only_they_are_written_twice(root):
    change_entry(root)
    assert sides_findings(root, {**DOUBLE, "rocksdbCQSelectiveDoubleWriteEnable": "true"}) == []


def test_a_file_queue_with_findings_of_its_own_is_left_out(root):
    file = root / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    data[20 * NUMBER : 20 * NUMBER + 20] = bytes(20)
    file.write_bytes(data)
    found = agree.records_of("check", root)
    assert {record["id"] for record in found if record.get("type") == "finding"} & {"CQ03", "CQ19"} == {"CQ03"}


def test_a_wrong_entry_in_files_is_no_reason_to_read_the_files(root):
    """The next step was to let consumers read the files, whose entry was the wrong one."""
    file = next((root / "consumequeue" / "Orders" / "0").iterdir())
    with file.open("r+b") as data:
        data.seek(NUMBER * 20)
        data.write((1 << 30).to_bytes(8, "big"))
    with open_store(root, from_mapping(READS_ROCKSDB)[0]) as store:
        (finding,) = (item for item in check(store) if isinstance(item, Finding) and item.id == "CQ19")
    assert finding.severity == "warn"
    assert "Do not take the line combineCQPreferCQType=defaultRocksDB out" in finding.next_step


def test_a_rocksdb_without_rows_beside_whole_files_is_not_called_a_store_without_queues(root):
    """A killed broker of 5.4.0 had its rows in memory only; it was said that 4.9, which reads the files, leaves all
    messages out.
    """
    made_rocksdb.make_database(root / "consumequeue_rocksdb", {"default": {}, "offset": {}})
    (root / "abort").write_text("4711")
    with open_store(root, from_mapping(READS_ROCKSDB)[0]) as store:
        store.release = "5.4"
        (finding,) = (item for item in check(store) if isinstance(item, Finding) and item.id == "CQ10")
    assert finding.message.startswith("The RocksDB that consumers read has no consume queues")
    assert "4.9" not in finding.message
    assert "next start" in finding.message
