"""``check`` and plans of a store whose queues are in a RocksDB. What a start does in each state is what the real 5.5.1
did with it.
"""

from __future__ import annotations

import shutil

import made_rocksdb
import pytest
from handmade_stores import healthy

from engine.errors import MissingExtra
from engine.inspection import recovery, undecoded
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rocksdb import database
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden
END = 954_437
"""The end of the log."""
LATE = 940_332
"""The start of a unit of orders/0; 30 units of queues are behind it."""


@pytest.fixture
def root(golden, tmp_path):
    made_rocksdb.binding()
    shutil.copytree(golden("rocks-5.5.1"), tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def rows(root):
    return made_rocksdb.QueueRows(root / "consumequeue")


def checked(root):
    with open_store(root) as store:
        *findings, summary = check(store)
    assert summary.complete
    return {finding.id: finding for finding in findings if isinstance(finding, Finding)}


def planned(root, release="5.5"):
    with open_store(root) as store:
        return recovery.plan(store, release)


def ends(plan):
    return {f"{queue.topic}/{queue.queue_id}": queue.max_offset for queue in plan.queues}


def cut_log(root, offset):
    (file,) = (root / "commitlog").iterdir()
    with file.open("r+b") as log:
        log.seek(offset)
        log.write(bytes(file.stat().st_size - offset))


@pytest.mark.parametrize("name", ["rocks-5.5.1", "rocks-separate-5.5.1"])
def test_a_healthy_store_has_no_finding_and_its_start_changes_nothing(golden, name):
    made_rocksdb.binding()
    assert checked(golden(name)) == {}
    plan = planned(golden(name))
    assert plan.will_start
    assert plan.changes_nothing
    assert plan.loses_nothing


def test_a_missing_row_is_found_and_no_start_writes_it(root, rows):
    rows.delete_entries("TopicA", 0, [100])
    rows.write()
    findings = checked(root)
    assert findings.keys() == {"CQ03", "RP01"}
    finding = findings["CQ03"]
    assert finding.severity == "error"
    assert finding.evidence["queue"] == "TopicA/0"
    assert finding.evidence["queueOffset"] == 100
    assert "no start writes it" in finding.message
    assert findings["RP01"].caused_by == "CQ03"
    plan = planned(root)
    assert plan.undispatched is not None
    assert [(row.topic, row.queue_id, row.messages, row.first_offset) for row in plan.undispatched.queues] == [
        ("TopicA", 0, 1, 100)
    ]


def test_the_step_is_one_that_a_broker_carries_out(root, rows):
    """``dispatch`` refuses such a store. A start of 5.4.0 and 5.5.1 builds every row after this step."""
    rows.delete_entries("TopicA", 0, [100])
    rows.write()
    finding = checked(root)["CQ03"]
    assert finding.command == f"mv {root}/consumequeue {root}.consumequeue.old && touch {root}/abort"
    assert "commitLogRecoverMaxNum" in finding.next_step
    shutil.move(root / "consumequeue", root.with_name("old"))
    (root / "abort").touch()
    made_rocksdb.make_database(root / "consumequeue", {"default": {}, "offset": {}})
    plan = planned(root)
    assert ends(plan) == ends(planned_of_rows(rows, root))
    assert plan.undispatched is not None
    assert plan.undispatched.messages == 0


def planned_of_rows(rows, root):
    copy = root.with_name("whole")
    shutil.copytree(root, copy)
    rows.write()
    shutil.rmtree(copy / "consumequeue")
    shutil.copytree(root / "consumequeue", copy / "consumequeue")
    return planned(copy)


def test_after_a_crash_the_next_start_writes_missing_rows(root, rows):
    rows.delete_entries("TopicA", 0, range(70, 90))
    rows.set_dispatched(500_000)
    rows.write()
    (root / "abort").touch()
    findings = checked(root)
    assert findings["CQ03"].severity == "note"
    assert "writes it" in findings["CQ03"].message
    assert "RP01" not in findings
    plan = planned(root)
    assert plan.dispatch_from == 0
    assert next(queue for queue in plan.queues if queue.topic == "TopicA" and queue.queue_id == 0).entries_added == 20


def test_an_end_that_hides_entries_is_found(root, rows):
    rows.set_bound("TopicA", 0, "max", 146)
    rows.write()
    findings = checked(root)
    assert findings.keys() == {"CQ10", "RP01"}
    assert findings["CQ10"].evidence["found"] == 147
    assert findings["CQ10"].evidence["expected"] == 152
    assert ends(planned(root))["TopicA/0"] == 147


def test_a_queue_without_an_end_is_empty_for_a_broker(root, rows):
    del rows.bounds[made_rocksdb.codec.bound_key("TopicA", 0, "max")]
    rows.write()
    finding = checked(root)["CQ10"]
    assert finding.message.startswith("Queue TopicA/0 has no end in the RocksDB; the log has 152 units of it")
    assert "TopicA/0" not in ends(planned(root))


def test_a_minimum_that_hides_entries_is_found(root, rows):
    rows.set_bound("TopicA", 0, "min", 100)
    rows.write()
    findings = checked(root)
    assert findings.keys() == {"CQ16"}
    assert (findings["CQ16"].evidence["expected"], findings["CQ16"].evidence["found"]) == (0, 100)


def test_an_end_that_was_written_for_another_entry_is_found(root, rows):
    rows.change_entry("TopicA", 0, 151, physical_offset=0)
    rows.write()
    assert checked(root).keys() >= {"CQ16"}


@pytest.mark.parametrize(
    ("fields", "rule"), [({"tags_code": 7}, "CQ09"), ({"size": 99}, "CQ04"), ({"physical_offset": 5}, "CQ12")]
)
def test_a_wrong_row_is_found(root, rows, fields, rule):
    rows.change_entry("TopicA", 0, 50, **fields)
    rows.write()
    finding = checked(root)[rule]
    assert finding.evidence["queue"] == "TopicA/0"
    assert finding.evidence["queueOffset"] == 50


def test_a_clean_start_leaves_out_the_unit_at_the_end_of_dispatch(root, rows):
    """5.5.1 dispatches units *behind* the end of dispatch, so the one that begins right there gets no row."""
    rows.forget_from(LATE)
    rows.write()
    plan = planned(root)
    assert plan.dispatch_from > LATE
    assert plan.undispatched is not None
    assert [(row.topic, row.first_offset, row.messages) for row in plan.undispatched.queues] == [("orders", 598, 1)]
    assert ends(plan)["orders/0"] == 610
    assert "leaves 1 out for good" in checked(root)["CQ10"].message


def test_after_a_crash_everything_behind_the_end_of_dispatch_gets_a_row(root, rows):
    rows.forget_from(LATE)
    rows.write()
    (root / "abort").touch()
    findings = checked(root)
    assert findings["CQ10"].severity == "note"
    assert "RP01" not in findings
    plan = planned(root)
    assert sum(queue.entries_added for queue in plan.queues) == 30
    assert plan.loses_nothing


AFTER_A_CUT = {
    3_000: {"TopicA/0": 1, "TopicA/1": 137, "TopicA/3": 1, "TopicB/1": 1, "orders/0": 2, "SCHEDULE_TOPIC_XXXX/17": 12},
    50_000: {"TopicA/0": 1, "TopicA/1": 2, "TopicB/0": 22, "orders/0": 36, "SCHEDULE_TOPIC_XXXX/2": 4},
    900_000: {"TopicA/0": 136, "TopicB/1": 347},
}
"""Ends after a start of 5.5.1: a search that meets an entry right at the log's end gives up, and a queue whose entries
are all behind it is left alone.
"""


@pytest.mark.parametrize("offset", AFTER_A_CUT)
def test_a_log_that_lost_its_tail_cuts_the_ends_as_a_broker_does(root, offset):
    cut_log(root, offset)
    plan = planned(root)
    assert {name: end for name, end in ends(plan).items() if name in AFTER_A_CUT[offset]} == AFTER_A_CUT[offset]
    findings = checked(root)
    assert findings["CL11"].evidence["expected"] == END
    with open_store(root) as store:
        store.commit_log.settle_end()
        queues = store.queues.by_topic()
        assert {
            f"{topic}/{number}": queue.max_offset for topic, by_id in queues.items() for number, queue in by_id.items()
        } == ends(plan)


def test_after_a_crash_rows_that_are_written_again_set_the_ends(root):
    """The end of dispatch is that of the rows written last, so nothing is cut."""
    cut_log(root, 50_000)
    (root / "abort").touch()
    plan = planned(root)
    after_a_crash = {"TopicA/0": 8, "TopicA/1": 2, "orders/0": 36, "SCHEDULE_TOPIC_XXXX/2": 4}
    assert {name: end for name, end in ends(plan).items() if name in after_a_crash} == after_a_crash


def test_releases_that_are_not_known_are_refused(root):
    with pytest.raises(Exception, match=r"plans follow 5\.3 and later"):
        planned(root, "4.9")


def test_the_step_of_a_part_that_is_not_checked_names_what_reads_it(golden, monkeypatch, tmp_path):
    """It said to ask a running broker, of tables that ``config`` reads and of queues that the extra reads."""
    made_rocksdb.binding()
    root = shutil.copytree(golden("rocksdb-orders-5.5.1"), tmp_path / "store")
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{}}')
    with open_store(root) as store:
        steps = {item.command for item in check(store) if isinstance(item, Finding) and item.id == "DK02"}
    assert steps == {f"storescope config {root}"}
    monkeypatch.setattr(undecoded, "is_available", lambda: False)
    monkeypatch.setattr(database, "_binding", no_binding)
    with open_store(golden("rocks-5.5.1")) as store:
        (finding,) = (item for item in check(store) if isinstance(item, Finding))
    assert (finding.id, finding.command) == ("DK02", "pip install 'storescope[rocksdb]'")


def no_binding():
    raise MissingExtra("not installed")


@pytest.mark.parametrize("pattern", ["CURRENT", "*.sst"])
def test_a_rocksdb_that_cannot_be_read_is_an_error_with_a_step(golden, tmp_path, pattern):
    """It was a note that the part is not decoded, and the step was to read it with ``config``."""
    made_rocksdb.binding()
    root = shutil.copytree(golden("rocksdb-orders-5.5.1"), tmp_path / "store")
    for folder in (root / "consumequeue", root / "config" / "topics"):
        for path in folder.glob(pattern):
            path.unlink()
    with open_store(root) as store:
        findings = [item for item in check(store) if isinstance(item, Finding) and item.id == "DK02"]
    assert [finding.severity for finding in findings] == ["error"] * 2
    assert all("It cannot be read: expected" in finding.message for finding in findings)
    assert all("estore this folder from a backup" in finding.next_step for finding in findings)


def test_a_whole_rocksdb_of_another_layout_is_not_damaged(tmp_path):
    """It was an error to restore from a backup, though nothing about it is known."""
    made_rocksdb.binding()
    root = healthy().write(tmp_path / "store", queues=False)
    made_rocksdb.make_database(root / "consumequeue", {"elsewhere": {b"key": b"value"}})
    with open_store(root) as store:
        (finding,) = [item for item in check(store) if isinstance(item, Finding) and item.id == "DK02"]
    assert finding.severity == "note"
    assert "expected a RocksDB with the column family" in finding.message
    assert "estore this folder" not in finding.next_step
