"""The tables below ``config/``: the file, or else its ``.bak``, as a broker loads them.

Rows of tables as a broker would load them, and the differences between two versions of a table.
"""

from __future__ import annotations

import json

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store, tables
from engine.inspection.tables import iter_tables, light_offsets, read_backup, read_table, read_tables, table_topics


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    store.put()
    root = store.write(tmp_path / "s")
    (root / "config").mkdir()
    return root


def put(root, name, value):
    (root / "config" / name).write_text(value if isinstance(value, str) else json.dumps(value))


def test_the_backup_is_read_if_the_file_is_broken(root):
    put(root, "topics.json", '{"topicConfigTable": {')
    put(root, "topics.json.bak", {"topicConfigTable": {"Orders": {}}})
    with open_store(root) as store:
        assert read_table(store, "topics.json").used == "bak"
        assert table_topics(store) == ["Orders"]
        assert [table.name for table in read_tables(store)] == ["topics.json"]
        assert read_backup(store, "topics.json") is not None


def test_a_missing_table_is_none(root):
    with open_store(root) as store:
        assert read_table(store, "topics.json") is None
        assert (table_topics(store), light_offsets(store), read_backup(store, "topics.json")) == ([], 0, None)
        assert list(read_tables(store)) == []
        assert len(list(iter_tables(store))) > 3


def test_offsets_of_light_groups_are_counted(root):
    put(root, "lmqConsumerOffset.json", '{"lmqOffsetTable":{"%LMQ%a@g":1,"%LMQ%b@g":2}}')
    with open_store(root) as store:
        assert light_offsets(store) == 2


def test_rows_come_out_of_the_table_a_broker_loads(tmp_path):
    handmade_store = HandmadeStore()
    handmade_store.put()
    root = handmade_store.write(tmp_path / "s")
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text("{broken")
    saved = {
        "topicConfigTable": {"Orders": {"topicName": "Orders", "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}}
    }
    (root / "config" / "topics.json.bak").write_text(json.dumps(saved))
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"Orders@g":{0:5,1:6}}}')
    with open_store(root) as store:
        assert list(tables.topics(store)) == ["Orders"]
        assert [(row.topic, row.group, row.offsets) for row in tables.offsets(store)] == [("Orders", "g", {0: 5, 1: 6})]
        assert tables.groups(store) is None


def test_offsets_that_went_back_are_listed_by_queue():
    old_table = {"offsetTable": {"T@g": {0: 9, 1: 9}}}
    new_table = {"offsetTable": {"T@g": {0: 4, 1: 9}, "T@new": {0: 1}}}
    (step,) = tables.stepped_back(new_table, old_table)
    assert (step.group, step.before, step.now, step.words) == ("g", 9, 4, "T/0@g 9 → 4")


def test_a_negative_offset_is_no_step_back_without_an_earlier_one():
    """ali-ons writes -1 for a queue of which it has consumed nothing. ``check`` failed with a KeyError there."""
    old_table = {"offsetTable": {"T@g": {1: 9}}}
    new_table = {"offsetTable": {"T@g": {0: -1, 1: 9}, "T@new": {0: -1}}}
    assert tables.stepped_back(new_table, old_table) == []


def test_differences_name_the_position_and_skip_versions():
    main = {"dataVersion": {"counter": 1}, "t": {"A": {"perm": 6}, "B": 1}}
    backup = {"dataVersion": {"counter": 2}, "t": {"A": {"perm": 4}}}
    assert tables.differences(main, backup, 9) == ["t.A.perm: 6 → 4", "t.B: 1 → not there"]
    assert tables.differences(main, backup, 1) == ["t.A.perm: 6 → 4"]
    assert tables.differences({"a": "x" * 90}, {"a": ""}, 9) == [f"a: {'x' * 57}… → "]
