"""A topic whose units are in the log and whose queues and table row are gone was deleted."""

from __future__ import annotations

import json
import shutil

from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.deleted_topics import deleted_topics, is_listed


def store(root, listed=("Orders",)):
    handmade_store = HandmadeStore()
    first_offset = handmade_store.put("Gone").offset
    for _ in range(3):
        handmade_store.put("Orders")
    handmade_store.write(root)
    (root / "config").mkdir()
    table = {"topicConfigTable": {name: {"topicName": name} for name in listed}}
    (root / "config" / "topics.json").write_text(json.dumps(table))
    return first_offset


def test_a_topic_without_queues_and_row_was_deleted(tmp_path):
    first_offset = store(tmp_path / "s")
    shutil.rmtree(tmp_path / "s" / "consumequeue" / "Gone")
    with open_store(tmp_path / "s") as opened:
        assert is_listed(opened)
        assert deleted_topics(opened, {"Gone": first_offset, "Orders": first_offset}) == ["Gone"]


def test_a_topic_with_queues_or_a_row_was_not_deleted(tmp_path):
    first_offset = store(tmp_path / "queues")
    with open_store(tmp_path / "queues") as opened:
        assert deleted_topics(opened, {"Gone": first_offset}) == []
    store(tmp_path / "row", listed=("Orders", "Gone"))
    shutil.rmtree(tmp_path / "row" / "consumequeue" / "Gone")
    with open_store(tmp_path / "row") as opened:
        assert deleted_topics(opened, {"Gone": first_offset}) == []


def test_a_table_that_no_broker_can_load_lists_nothing(tmp_path):
    store(tmp_path / "s")
    (tmp_path / "s" / "config" / "topics.json").write_text('{"topicConfigTable": []}')
    with open_store(tmp_path / "s") as opened:
        assert not is_listed(opened)
