"""The tables below ``config/``: the file, else its ``.bak``, as a broker loads them."""

from __future__ import annotations

import json

import pytest
from made_stores import MadeStore

from engine.inspection import open_store
from engine.inspection.tables import light_offsets, look_at_tables, read_backup, read_table, read_tables, table_topics


@pytest.fixture
def root(tmp_path):
    made = MadeStore()
    made.put()
    root = made.write(tmp_path / "s")
    (root / "config").mkdir()
    return root


def put(root, name, value):
    (root / "config" / name).write_text(value if isinstance(value, str) else json.dumps(value))


def test_the_backup_is_read_where_the_file_is_broken(root):
    put(root, "topics.json", '{"topicConfigTable": {')
    put(root, "topics.json.bak", {"topicConfigTable": {"Orders": {}}})
    with open_store(root) as store:
        assert read_table(store, "topics.json").used == "bak"
        assert table_topics(store) == ["Orders"]
        assert [table.name for table in read_tables(store)] == ["topics.json"]
        assert read_backup(store, "topics.json") is not None


def test_what_is_not_there_is_none(root):
    with open_store(root) as store:
        assert read_table(store, "topics.json") is None
        assert (table_topics(store), light_offsets(store), read_backup(store, "topics.json")) == ([], 0, None)
        assert list(read_tables(store)) == []
        assert len(list(look_at_tables(store))) > 3


def test_offsets_of_light_groups_are_counted(root):
    put(root, "lmqConsumerOffset.json", '{"lmqOffsetTable":{"%LMQ%a@g":1,"%LMQ%b@g":2}}')
    with open_store(root) as store:
        assert light_offsets(store) == 2
