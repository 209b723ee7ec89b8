"""Queue offsets: given out in order, loaded after a recovery, forgotten with a topic (spec 3.2)."""

from __future__ import annotations

from put_logs import PutLog

from engine.codec.encode import Message
from engine.store.queue_offsets import QueueOffsetTable


def test_offsets_that_recovery_found_go_on(tmp_path) -> None:
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


def test_a_table_tells_what_it_holds() -> None:
    table = QueueOffsetTable()
    assert (len(table), table.next("T", 0), table.offsets()) == (0, 0, {})
    table.increase("T", 0, 3)
    table.increase("T", 0)
    assert (len(table), table.next("T", 0), table.offsets()) == (1, 4, {("T", 0): 4})
