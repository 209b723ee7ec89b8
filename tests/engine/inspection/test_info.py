"""The one-page summary: figures of files and queues, flavours, and notes about unreadable parts."""

from __future__ import annotations

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.codec.encode import Message
from engine.codec.lite_topics import lite_queue_name
from engine.config import MessageStoreConfig
from engine.inspection import open_store
from engine.inspection.info import LiteInfo, messages_in, store_info
from engine.message_store import MessageStore


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(40):
        store.put(("Orders", "Paid")[number % 2], number % 4, keys=f"K{number}")
    return store.write(tmp_path / "store", abort=True)


def test_the_figures_of_a_small_store(root):
    with open_store(root) as store:
        info = store_info(store)
        assert (info.kind, info.min_offset, info.max_offset, info.abort) == ("store", 0, store.log.max_offset, True)
    assert {size for _, size in info.log_files} == {LOG_SIZE}
    assert info.bytes["commitlog"] == LOG_SIZE * len(info.log_files)
    assert {topic: len(queues) for topic, queues in info.topics.items()} == {"Orders": 2, "Paid": 2}
    assert messages_in(info) == 40
    assert info.flavour == ["v1"]
    assert (info.consume_queue_files, info.index_files) == (4, 2)


def test_a_broken_header_and_checkpoint_are_notes(root):
    min((root / "index").iterdir()).write_bytes(b"short")
    (root / "checkpoint").write_bytes(b"x")
    with open_store(root) as store:
        info = store_info(store)
    assert (len(info.index), info.checkpoint) == (1, None)
    assert sum("expected a header" in note for note in info.notes) == 1


def test_lite_topics_are_counted_and_listed_behind_their_topic(tmp_path):
    config = MessageStoreConfig(enable_lmq=True, enable_multi_dispatch=True)
    attributes = {"message.type": "LITE", "lite.topic.expiration": "60"}
    with MessageStore(tmp_path, config, release="5.5") as store:
        store.tables.create_topic("Parent", 1, attributes=attributes)
        for topic, name in (("Parent", "b"), ("Parent", "a"), ("Zebra", "a")):
            light = lite_queue_name(topic, name)
            store.put_message(Message(topic, b"x", 0, {"__LITE_TOPIC": name, "INNER_MULTI_DISPATCH": light}))
        store.wait_dispatched()
    with open_store(tmp_path) as snapshot:
        info = store_info(snapshot)
    lite_queues = ["%LMQ%$Parent$a", "%LMQ%$Parent$b"]
    assert list(info.topics) == ["Parent", *lite_queues, "Zebra", "%LMQ%$Zebra$a"]
    assert info.lite_topics == [LiteInfo("Parent", 2, 60), LiteInfo("Zebra", 1, None)]


@pytest.mark.golden
@pytest.mark.parametrize(("name", "word"), [("lmq-5.3.3", "lmq"), ("propcrc-5.3.3", "propCrc")])
def test_flavours_are_recognised(golden, name, word):
    with open_store(golden(name)) as store:
        assert word in store_info(store).flavour
