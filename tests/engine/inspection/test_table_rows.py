"""Rows of tables as a broker would have them, and what two versions of a table say apart."""

from __future__ import annotations

import json

from made_stores import MadeStore

from engine.inspection import open_store, table_rows


def test_rows_come_out_of_the_table_a_broker_loads(tmp_path):
    made = MadeStore()
    made.put()
    root = made.write(tmp_path / "s")
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text("{broken")
    kept = {"topicConfigTable": {"Orders": {"topicName": "Orders", "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}}}
    (root / "config" / "topics.json.bak").write_text(json.dumps(kept))
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"Orders@g":{0:5,1:6}}}')
    with open_store(root) as store:
        assert list(table_rows.topics(store)) == ["Orders"]
        assert [(row.topic, row.group, row.offsets) for row in table_rows.offsets(store)] == [
            ("Orders", "g", {0: 5, 1: 6})
        ]
        assert table_rows.groups(store) is None


def test_offsets_that_went_back_are_told_by_queue():
    before = {"offsetTable": {"T@g": {0: 9, 1: 9}}}
    now = {"offsetTable": {"T@g": {0: 4, 1: 9}, "T@new": {0: 1}}}
    (step,) = table_rows.stepped_back(now, before)
    assert (step.group, step.before, step.now, step.words) == ("g", 9, 4, "T/0@g 9 → 4")


def test_differences_name_the_place_and_leave_versions_out():
    main = {"dataVersion": {"counter": 1}, "t": {"A": {"perm": 6}, "B": 1}}
    other = {"dataVersion": {"counter": 2}, "t": {"A": {"perm": 4}}}
    assert table_rows.differences(main, other, 9) == ["t.A.perm: 6 → 4", "t.B: 1 → not there"]
    assert table_rows.differences(main, other, 1) == ["t.A.perm: 6 → 4"]
    assert table_rows.differences({"a": "x" * 90}, {"a": ""}, 9) == [f"a: {'x' * 57}… → "]
