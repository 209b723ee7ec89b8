"""The folders of queues: which are listed, and what a refresh sees of them."""

from __future__ import annotations

import shutil

from handmade_stores import healthy

from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.inspection import open_store
from engine.message_store import Message, MessageStore

CONFIG = MessageStoreConfig(mapped_file_size_commit_log=1 << 20)


def put_five(store, body):
    for _ in range(5):
        store.put_message(Message("Orders", body))
    assert store.wait_dispatched()
    store.flush()


def test_a_deleted_and_recreated_topic_shows_its_new_entries(tmp_path):
    with MessageStore(tmp_path, CONFIG) as store:
        put_five(store, b"old")
        with open_store(tmp_path) as actual_store:
            assert [actual_store.queue("Orders", 0).entry(n).queue_offset for n in range(5)] == list(range(5))
            store.delete_topics(["Orders"])
            put_five(store, b"new")
            assert actual_store.refresh()
            units = [item for item in actual_store.units() if isinstance(item, Unit) and item.body == b"new"]
            queue = actual_store.queue("Orders", 0)
            assert [queue.entry(n).physical_offset for n in range(5)] == [unit.offset for unit in units]


def test_a_folder_that_is_no_queue_number_is_left_out(tmp_path):
    root = healthy(5).write(tmp_path / "store")
    queue = root / "consumequeue" / "Orders" / "0"
    shutil.copytree(queue, queue.with_name("00"))
    shutil.copytree(queue, queue.with_name("notes"))
    with open_store(root) as store:
        numbers = list(store.queue_folders.by_topic()["Orders"])
        assert numbers == sorted(numbers)
        assert [reader.sequence.folders[0].name for reader in store.queue_folders.readers()].count("0") >= 1
        names = {reader.sequence.folders[0].name for reader in store.queue_folders.readers()}
        assert names.isdisjoint({"00", "notes"})


def test_a_queue_in_two_kinds_of_folders_is_known(tmp_path):
    root = healthy(5).write(tmp_path / "store")
    shutil.copytree(root / "consumequeue" / "Orders", root / "batchconsumequeue" / "Orders")
    with open_store(root) as store:
        assert store.topics()["Orders"][0].kind == "batch"
        assert store.queue_folders.topics_of_both_kinds == {"Orders"}
