"""Plans of starts whose broker writes queues into files and into a RocksDB and reads the RocksDB."""

from __future__ import annotations

import made_rocksdb
import pytest
from handmade_stores import healthy

from engine.config import from_mapping
from engine.inspection import open_store, recovery

PREFERS_ROCKSDB = {
    "storeType": "default",
    "rocksdbCQDoubleWriteEnable": "true",
    "combineCQPreferCQType": "defaultRocksDB",
}
QUEUE = ("Orders", 0)


@pytest.fixture
def root(tmp_path):
    made_rocksdb.binding()
    made = healthy(60)
    root = made.write(tmp_path / "store")
    made_rocksdb.make_database(root / "consumequeue_rocksdb", made_rocksdb.rows_of_store(made))
    return root


def planned(root, release="5.4", **settings):
    with open_store(root, from_mapping({**PREFERS_ROCKSDB, **settings})[0]) as store:
        store.release = release
        return recovery.plan(store, release)


def bounds(plan):
    return {(queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset) for queue in plan.queues}


def shorten(root, count=1):
    """Take the newest rows of a queue away; the end of dispatch stays."""
    rows = made_rocksdb.QueueRows(root / "consumequeue_rocksdb")
    end = bounds(planned(root))[QUEUE][1]
    rows.delete_entries(*QUEUE, range(end - count, end))
    if count < end:
        rows.set_bound(*QUEUE, "max", end - count - 1)
    else:
        del rows.bounds[made_rocksdb.codec.bound_key(*QUEUE, "max")]
    rows.write()
    return end


@pytest.mark.parametrize("release", ["5.3", "5.4", "5.5"])
def test_equal_sides_start_and_stay(root, release):
    plan = planned(root, release)
    assert plan.will_start
    assert plan.units == 0
    assert bounds(plan)[QUEUE][1] > 5


@pytest.mark.parametrize("release", ["5.4", "5.5"])
def test_a_start_ends_where_the_ends_of_a_queue_differ(root, release):
    shorten(root)
    plan = planned(root, release)
    (blocker,) = plan.blockers
    assert not plan.will_start
    assert blocker.finding == "CQ19"
    assert "Orders/0" in blocker.message
    assert "not satisfied readable conditions" in blocker.broker_log


def test_a_queue_of_which_the_rocksdb_has_nothing_begins_at_the_end_of_the_file_queue(root):
    end = shorten(root, bounds(planned(root))[QUEUE][1])
    plan = planned(root)
    assert plan.will_start
    assert bounds(plan)[QUEUE] == (end, end)


def test_ends_are_not_compared_where_the_rocksdb_numbers(root):
    end = shorten(root)
    plan = planned(root, combineAssignOffsetCQType="defaultRocksDB")
    assert plan.will_start
    assert bounds(plan)[QUEUE][1] == end - 1


def test_a_crash_dispatches_what_the_rocksdb_lacks(root):
    end = shorten(root)
    (root / "abort").write_text("4711")
    plan = planned(root)
    assert plan.will_start
    assert bounds(plan)[QUEUE][1] == end


def test_releases_before_5_4_read_the_file_queues(root):
    end = shorten(root)
    plan = planned(root, "5.3")
    assert plan.will_start
    assert bounds(plan)[QUEUE][1] == end


def test_a_broker_of_5_5_does_not_number_from_the_rocksdb_that_has_its_light_queues(root):
    settings = {"combineAssignOffsetCQType": "defaultRocksDB", "combineCQUseRocksdbForLmq": "true"}
    assert planned(root, "5.4", **settings).will_start
    assert [blocker.finding for blocker in planned(root, "5.5", **settings).blockers] == ["CF05"]


def test_what_was_not_written_before_a_clean_stop_is_dispatched_with_a_warning(root):
    """The rows are written by a thread of their own, and the start may compare the ends before."""
    rows = made_rocksdb.QueueRows(root / "consumequeue_rocksdb")
    offsets = sorted(made_rocksdb.codec.decode_entry(value).physical_offset for value in rows.entries.values())
    rows.forget_from(offsets[len(offsets) // 2])
    rows.write()
    plan = planned(root)
    assert plan.units > 0
    assert any("may compare the ends" in note for note in plan.notes)
