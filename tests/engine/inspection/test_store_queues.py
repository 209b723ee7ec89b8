"""The queues that a broker would use: in files, in a RocksDB, or in both."""

from __future__ import annotations

import made_rocksdb
import pytest
from handmade_stores import healthy

from engine.config import from_mapping
from engine.errors import CannotRead
from engine.inspection import open_store
from engine.inspection.get_message import get_message
from engine.inspection.queue_sides import read_side_words

OPTIONS = {"storeType": "default", "rocksdbCQDoubleWriteEnable": "true", "combineCQUseRocksdbForLmq": "true"}


@pytest.fixture
def root(tmp_path):
    made_rocksdb.binding()
    made = healthy(60)
    root = made.write(tmp_path / "store")
    made_rocksdb.make_database(root / "consumequeue_rocksdb", made_rocksdb.rows_of_store(made))
    return root


@pytest.mark.parametrize(("release", "is_read"), [(None, True), ("5.5", True), ("5.4", False)])
def test_light_queues_are_read_from_the_rocksdb_where_only_it_has_them(root, release, is_read):
    """They were unknown: only the file queues were read."""
    rows, *queue = (made_rocksdb.QueueRows(root / "consumequeue_rocksdb"), "Orders", 0)
    rows.entries[made_rocksdb.codec.entry_key("%LMQ%abc", 0, 0)] = made_rocksdb.codec.encode_entry(
        rows.entry(*queue, 3)
    )
    rows.set_bound("%LMQ%abc", 0, "max", 0)
    rows.write()
    with open_store(root, from_mapping(OPTIONS)[0]) as store:
        store.release = release
        topics = store.queues.by_topic()
        assert ("%LMQ%abc" in topics) == ("%LMQ%abc" in store.queues.topic_names()) == is_read
        assert not store.queues.find(*queue).in_rocksdb
        if is_read:
            assert store.queues.find("%LMQ%abc", 0).max_offset == 1
            assert get_message(store, "%LMQ%abc", 0, 0).count == 1
            assert "light queues from the RocksDB" in read_side_words(store)


def test_a_queue_that_may_be_in_an_unread_folder_is_not_absent(tmp_path, monkeypatch):
    root = healthy(5).write(tmp_path / "store")
    with open_store(root) as store:
        assert store.queues.find("Absent", 0) is None

    def refuse(folder, listed=False):
        raise CannotRead("no right to read", file=str(folder))

    with open_store(root) as store:
        monkeypatch.setattr(store.reading, "folders", refuse)
        with pytest.raises(CannotRead, match="no right to read"):
            store.queues.find("Orders", 0)
