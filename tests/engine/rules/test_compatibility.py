"""Storage modes, and what releases and modes do not read."""

from __future__ import annotations

import pytest

from engine.rules.compatibility import (
    MODES,
    StoreContents,
    TableContents,
    hidden,
    mode_in,
    modes_of,
    refusals,
    settings_for,
)


def kinds(contents, release, mode, configuration=None):
    return {item.kind for item in hidden(contents, release, MODES[mode], configuration)}


def keys(contents, release, mode, configuration=None):
    return {item.key for item in settings_for(contents, release, MODES[mode], configuration)}


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({}, "files"),
        ({"storeType": "defaultRocksDB"}, "rocksdb"),
        ({"storeType": "defaultRocksDB", "configManagerVersion": "v2"}, "rocksdb-v2"),
        ({"configManagerVersion": "v2"}, "files-v2"),
        ({"rocksdbCQDoubleWriteEnable": "true"}, "combined"),
    ],
)
def test_a_configuration_turns_on_a_mode(settings, mode):
    assert mode_in(settings).name == mode


def test_4_9_has_queues_in_files_only():
    assert [mode.name for mode in modes_of("4.9")] == ["files"]
    assert len(modes_of("5.3")) == len(MODES)


@pytest.mark.parametrize(
    ("form", "reading"),
    [
        ("json", {"files", "combined", "rocksdb"}),
        ("rows", {"rocksdb"}),
        ("single", {"rocksdb"}),
        ("v2", {"files-v2", "rocksdb-v2"}),
    ],
)
def test_only_rocksdb_tables_take_over_json_tables(form, reading):
    contents = StoreContents(tables=(TableContents("topics", form, "config/x", 3, counter=1),))
    assert {mode for mode in MODES if not kinds(contents, "5.5", mode)} == reading


def test_a_json_table_of_version_0_is_not_taken_over():
    """A broker of 5.5.1 took over topics and groups, but no offsets: the counter of these was still 0."""
    contents = StoreContents(tables=(TableContents("offsets", "json", "config", 1),))
    assert kinds(contents, "5.5", "rocksdb") == {"offsets"}
    assert kinds(contents, "5.5", "files") == set()


def test_an_empty_table_is_not_missed_and_an_unknown_one_is():
    for rows, expected in ((0, set()), (None, {"offsets"})):
        contents = StoreContents(tables=(TableContents("offsets", "v2", "config/rdb", rows),))
        assert kinds(contents, "5.5", "files") == expected


def test_the_single_rocksdb_of_tables_is_of_5_4_and_needs_its_setting():
    contents = StoreContents(tables=(TableContents("groups", "single", "config/metadata", 3),))
    assert kinds(contents, "5.3", "rocksdb") == {"groups"}
    assert kinds(contents, "5.4", "rocksdb", {"storeType": "defaultRocksDB"}) == {"groups"}
    assert "useSingleRocksDBForAllConfigs" in keys(contents, "5.4", "rocksdb")


def test_rows_of_messages_need_a_release_and_a_setting():
    contents = StoreContents(timer_rows=5, transaction_rows=None, pop_rows=1)
    assert kinds(contents, "4.9", "files") == {"timerRows", "transactionRows", "popRows"}
    assert kinds(contents, "5.3", "files") == {"timerRows", "transactionRows"}
    assert kinds(contents, "5.4", "files") == set()
    configuration = {"timerRocksDBEnable": "true"}
    assert kinds(contents, "5.4", "files", configuration) == {"transactionRows", "popRows"}
    assert {"transRocksDBEnable", "popConsumerKVServiceEnable"} <= keys(contents, "5.4", "files", configuration)
    assert "timerRocksDBEnable" not in keys(contents, "5.4", "files", configuration)


def test_going_back_hides_what_came_with_later_releases():
    contents = StoreContents(
        has_tag_entries=True,
        wheel_messages=2,
        has_pops=True,
        lite_topics=("Chat",),
        priority_topics=("Alarms",),
        batch_topics=("Batches",),
        mapped_topics=1,
        compacted_queues=1,
    )
    assert kinds(contents, "5.5", "files") == set()
    assert kinds(contents, "5.4", "files") == {"liteTopics"}
    assert kinds(contents, "5.3", "files") == {"liteTopics", "priorityTopics", "tagEntries"}
    older = {"timers", "pops", "batchQueues", "staticTopics", "compactedQueues"}
    assert kinds(contents, "4.9", "files") == {"liteTopics", "priorityTopics", "tagEntries", *older}


def test_going_on_hides_groups_with_long_names():
    contents = StoreContents(groups=("g" * 121, "g" * 120))
    assert kinds(contents, "5.3", "files") == set()
    (item,) = hidden(contents, "5.4", MODES["files"])
    assert (item.kind, item.count) == ("longGroups", 1)


def why_not(contents, release, mode, configuration):
    return list(refusals(contents, release, MODES[mode], configuration))


def test_5_5_refuses_queues_written_twice_without_light_queues_in_the_rocksdb():
    configuration = {"rocksdbCQDoubleWriteEnable": "true"}
    assert len(why_not(StoreContents(), "5.5", "combined", configuration)) == 1
    assert why_not(StoreContents(), "5.4", "combined", configuration) == []
    assert why_not(StoreContents(), "5.5", "combined", {**configuration, "combineCQUseRocksdbForLmq": "true"}) == []
    assert why_not(StoreContents(), "5.5", "combined", None) == []
    assert "combineCQUseRocksdbForLmq" in keys(StoreContents(), "5.5", "combined")


def test_5_5_refuses_a_rocksdb_in_the_other_folder():
    """5.5.1 ends with "find RocksDBConsumeQueue in original/separate path"; 5.4.0 makes a new one."""
    separate = {"storeType": "defaultRocksDB", "useSeparateStorePathForRocksdbCQ": "true"}
    for folder, configuration, count in (
        ("consumequeue_rocksdb", separate, 0),
        ("consumequeue_rocksdb", {}, 1),
        ("consumequeue", separate, 1),
        ("consumequeue", {}, 0),
    ):
        contents = StoreContents(queue_rows_folder=folder)
        assert len(why_not(contents, "5.5", "rocksdb", configuration)) == count
        assert why_not(contents, "5.4", "rocksdb", configuration) == []
        assert why_not(contents, "5.5", "files", configuration) == []


def test_sizes_that_a_configuration_lacks_keep_a_broker_from_starting_or_hide_the_index():
    contents = StoreContents(sizes={"mappedFileSizeCommitLog": 1, "mappedFileSizeConsumeQueue": 2, "maxIndexNum": 3})
    assert len(why_not(contents, "5.5", "files", {})) == 2
    assert len(why_not(contents, "5.5", "rocksdb", {})) == 1
    assert kinds(contents, "5.5", "files", {}) == {"index"}
    assert kinds(contents, "5.5", "files") == set()
