"""The one-page summary: figures of files and queues, flavours, and notes about unreadable parts."""

from __future__ import annotations

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.inspection import open_store
from engine.inspection.info import messages_in, store_info


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


@pytest.mark.golden
@pytest.mark.parametrize(("name", "word"), [("lmq-5.3.3", "lmq"), ("propcrc-5.3.3", "propCrc")])
def test_flavours_are_recognised(golden, name, word):
    with open_store(golden(name)) as store:
        assert word in store_info(store).flavour
