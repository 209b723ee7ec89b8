"""Queues in files are compared with those in a RocksDB of the same store."""

from __future__ import annotations

import shutil

import made_rocksdb
import pytest
from handmade_stores import healthy

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.get_message import get_message
from engine.inspection.queue_sides import QueueOnBothSides, compare_sides, find_both_sides, read_side_words


@pytest.fixture
def root(tmp_path):
    made_rocksdb.binding()
    made = healthy(60)
    root = made.write(tmp_path / "store")
    made_rocksdb.make_database(root / "consumequeue_rocksdb", made_rocksdb.rows_of_store(made))
    return root


def sides(root):
    with open_store(root) as store:
        return {(queue.topic, queue.queue_id): queue for queue in compare_sides(store)}


def change(root, topic="Orders", queue_id=0):
    return made_rocksdb.QueueRows(root / "consumequeue_rocksdb"), topic, queue_id


def test_equal_sides_have_no_difference(root):
    compared = sides(root)
    assert len(compared) > 1
    assert all(queue.files == queue.rocksdb for queue in compared.values())
    assert {queue.first_difference for queue in compared.values()} == {None}


def test_the_first_other_entry_is_named(root):
    rows, *queue = change(root)
    rows.change_entry(*queue, 3, size=7)
    rows.change_entry(*queue, 5, size=7)
    rows.write()
    compared = sides(root)
    assert compared.pop(tuple(queue)).first_difference == 3
    assert {other.first_difference for other in compared.values()} == {None}


def test_a_missing_row_and_an_earlier_end_are_differences(root):
    rows, *queue = change(root)
    rows.delete_entries(*queue, [2])
    rows.write()
    assert sides(root)[tuple(queue)].first_difference == 2
    rows, *queue = change(root)
    end = sides(root)[tuple(queue)].files[1]
    rows.delete_entries(*queue, [end - 1])
    rows.set_bound(*queue, "max", end - 2)
    rows.write()
    assert sides(root)[tuple(queue)].rocksdb == (0, end - 1)


def test_a_queue_that_is_only_in_files_differs_at_its_beginning(root):
    rows, *queue = change(root)
    end = sides(root)[tuple(queue)].files[1]
    rows.delete_entries(*queue, range(end))
    del rows.bounds[made_rocksdb.codec.bound_key(*queue, "max")]
    rows.write()
    assert sides(root)[tuple(queue)] == QueueOnBothSides(*queue, (0, end), None, 0)


@pytest.mark.parametrize(
    ("options", "counting", "words"),
    [
        ({}, "files", "the next start adds the entries that the RocksDB lacks"),
        ({"storeType": "defaultRocksDB"}, "rocksdb", "does not touch the file queues"),
        ({"storeType": "default", "rocksdbCQDoubleWriteEnable": "true"}, "files", "leaves out the first entry"),
        ({"storeType": "default"}, "files", "does not touch the RocksDB, because"),
    ],
)
def test_the_configuration_says_which_counts_and_what_a_start_does(root, options, counting, words):
    config = from_mapping(options)[0] if options else None
    with open_store(root, config) as store:
        both = find_both_sides(store)
    assert both.counting == counting
    assert words in both.next_start
    assert ("the configuration says so" in both.why) == bool(options)


def test_a_store_with_one_kind_of_queues_has_no_sides(root):
    shutil.rmtree(root / "consumequeue_rocksdb")
    with open_store(root) as store:
        assert find_both_sides(store) is None
        assert list(compare_sides(store)) == []


DOUBLE = {"storeType": "default", "rocksdbCQDoubleWriteEnable": "true"}
PREFERS_ROCKSDB = {**DOUBLE, "combineCQPreferCQType": "defaultRocksDB"}


@pytest.mark.parametrize(
    ("options", "release", "count"),
    [
        (PREFERS_ROCKSDB, None, "in the RocksDB"),
        ({**PREFERS_ROCKSDB, "combineCQPreferCQType": "DEFAULTROCKSDB"}, "5.4", "in the RocksDB"),
        ({key: value for key, value in PREFERS_ROCKSDB.items() if key != "storeType"}, "5.5", "in the RocksDB"),
        (PREFERS_ROCKSDB, "5.3", "in files"),
        (DOUBLE, None, "in files"),
        ({**PREFERS_ROCKSDB, "rocksdbCQDoubleWriteEnable": "false"}, None, "in files"),
    ],
)
def test_the_queues_are_read_that_the_broker_reads(root, options, release, count):
    """With combineCQPreferCQType=defaultRocksDB everything still read the file queues."""
    rows, *queue = change(root)
    end = sides(root)[tuple(queue)].files[1]
    rows.delete_entries(*queue, [end - 1])
    rows.set_bound(*queue, "max", end - 2)
    rows.write()
    with open_store(root, from_mapping(options)[0]) as store:
        store.release = release
        found = get_message(store, *queue, 0, max_count=1000)
        words = read_side_words(store)
        assert store.queues.find(*queue).in_rocksdb == (count == "in the RocksDB")
    assert found.count == found.max_offset == (end - 1 if count == "in the RocksDB" else end)
    assert words.startswith(
        "Queues are read from the RocksDB" if count == "in the RocksDB" else "Queues are read from the files"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"combineCQPreferCQType": "RocksDB"},
        {"combineAssignOffsetCQType": "files"},
        {"combineCQLoadingCQTypes": "default"},
    ],
)
def test_a_broker_does_not_start_whose_queues_are_not_among_those_that_it_opens(root, wrong):
    with open_store(root, from_mapping({**PREFERS_ROCKSDB, **wrong})[0]) as store:
        both = find_both_sides(store)
    assert "the broker does not start" in both.next_start


def test_a_store_with_one_kind_of_queues_needs_no_word_on_which_is_read(root):
    shutil.rmtree(root / "consumequeue_rocksdb")
    with open_store(root) as store:
        assert read_side_words(store) == ""


@pytest.mark.golden
def test_a_store_of_5_5_1_gives_the_same_answers_from_either_side(golden):
    root = golden("combine-5.5.1")
    answers = []
    for options in (DOUBLE, PREFERS_ROCKSDB):
        with open_store(root, from_mapping(options)[0]) as store:
            queues = [queue for by_id in store.queues.by_topic().values() for queue in by_id.values()]
            answers.append(
                [
                    (
                        queue.topic,
                        queue.queue_id,
                        queue.min_offset,
                        queue.max_offset,
                        [
                            (entry.queue_offset, entry.physical_offset, entry.size, entry.tags_code)
                            for entry in queue.entries()
                        ],
                    )
                    for queue in queues
                ]
            )
            in_rocksdb = {queue.in_rocksdb for queue in queues}
            assert in_rocksdb == {options is PREFERS_ROCKSDB}
    assert answers[0] == answers[1]
    assert sum(len(entries) for *_, entries in answers[0]) > 1_000
