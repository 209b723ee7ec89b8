"""Queue offsets: assigned in order, loaded after a recovery, removed with a topic
(docs/formats/consume-queue.md#queue-offsets).
"""

from __future__ import annotations

import pytest
from put_logs import PutLog

from engine.codec.encode import Message
from engine.mapped.mapped_file import MappedFile
from engine.store.queue_offsets import QueueOffsetTable, Topic


def test_offsets_continue_after_recovery(tmp_path) -> None:
    put = PutLog(tmp_path)
    put.log.put_message(Message("T", b"x", 1))
    put.offsets.load({("T", 0): 40, ("U", 3): 7})
    assert put.log.put_message(Message("T", b"x", 0)).append.queue_offset == 40
    assert put.log.put_message(Message("T", b"x", 1)).append.queue_offset == 0
    assert put.offsets.next("U", 3) == 7
    put.offsets.forget("T")
    assert put.log.put_message(Message("T", b"x", 0)).append.queue_offset == 0


def test_thousands_of_queues_keep_their_places(tmp_path) -> None:
    put = PutLog(tmp_path, 1 << 20)
    for _ in range(2):
        for queue in range(200):
            put.log.put_message(Message("T", b"x", queue))
    assert put.offsets.offsets() == {("T", queue): 2 for queue in range(200)}


def test_a_table_lists_its_offsets() -> None:
    table = QueueOffsetTable()
    assert (len(table), table.next("T", 0), table.offsets()) == (0, 0, {})
    table.increase("T", 0, 3)
    table.increase("T", 0)
    assert (len(table), table.next("T", 0), table.offsets()) == (1, 4, {("T", 0): 4})


@pytest.mark.parametrize("appended", [True, False])
@pytest.mark.parametrize(
    "put_one",
    [
        lambda log: log.put_message(Message("T", b"x")),
        lambda log: log.put_message(Message("T", b"x", properties={"DELAY": "0"})),
        lambda log: log.put_batch([Message("T", b"x")]),
    ],
    ids=["plain", "ruled", "batch"],
)
def test_an_interrupted_put_leaves_a_unit_with_its_offset_or_neither(
    tmp_path, monkeypatch, put_one, appended: bool
) -> None:
    """Ctrl+C between a unit and its queue offset gave the offset to the next message too, and one of them was in no
    queue.
    """
    put = PutLog(tmp_path)
    put_one(put.log)
    append = MappedFile.append

    def interrupted(file: MappedFile, data: bytes, stamp: int = 0) -> bool:
        if appended:
            append(file, data, stamp)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MappedFile, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            put_one(put.log)
    put_one(put.log)
    assert [unit.queue_offset for unit in put.units()] == list(range(3 if appended else 2))
    assert put.log.lock_time == 0


@pytest.mark.parametrize(("length", "magic"), [(6, 0xDAA320A7), (127, 0xDAA320A7), (128, 0xDAA320AB)])
def test_a_legal_topic_has_its_field_and_the_same_for_columns(length, magic):
    topic = Topic("T" * length, legal=True, auto_version=True)
    assert (topic.legal, topic.magic & 0xFFFFFFFF, topic.places) == (True, magic, {})
    assert topic.raw.endswith(b"T" * length)
    assert topic.field is not None
    assert topic.fixed == topic.field.fixed


@pytest.mark.parametrize(("name", "legal"), [("Orders", False), ("T" * 70_000, True)])
def test_a_topic_that_may_not_be_stored_or_does_not_fit_a_field_is_not_legal(name, legal):
    topic = Topic(name, legal=legal, auto_version=True)
    assert (topic.legal, topic.raw, topic.fixed) == (False, b"", 0)
