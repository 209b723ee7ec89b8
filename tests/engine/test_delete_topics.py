"""Topics are deleted during other work, completely or not at all, and their queues begin at 0 again."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from simulated_disk import SimulatedDisk
from stores_with_topics import ROOT, SMALL, bodies, put

from engine.config import from_mapping
from engine.mapped.mapped_file import MappedFile
from engine.message_store import Message, MessageStore


def test_a_concurrent_put_does_not_restore_the_old_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table was cleared without the append lock. A put that had read 5 wrote 6 back, and the topic's next queue
    began with a gap of six entries.
    """
    inside, go, append = threading.Event(), threading.Event(), MappedFile.append

    def held(file: MappedFile, data: bytes, stamp: int = 0) -> bool:
        if threading.current_thread().name == "late":
            inside.set()
            assert go.wait(60)
        return append(file, data, stamp)

    monkeypatch.setattr(MappedFile, "append", held)
    with MessageStore(tmp_path, from_mapping(SMALL)[0]) as store:
        put(store, 10)
        late = threading.Thread(name="late", target=lambda: put(store, 1), daemon=True)
        late.start()
        assert inside.wait(60)
        deletes = threading.Thread(target=lambda: store.delete_topics(["Orders"]), daemon=True)
        deletes.start()
        go.set()
        late.join(60)
        deletes.join(60)
        assert put(store, 4) == [(0, 0), (1, 0), (0, 1), (1, 1)]
        assert store.wait_dispatched()
        assert store.max_offset_in_queue("Orders", 0) == 2


def test_topics_are_deleted_during_puts_to_new_queues(tmp_path: Path) -> None:
    """The error was ``dictionary changed size during iteration``: the queues were deleted, but the rows of the
    table were not.
    """
    is_over, interval_before = threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with MessageStore(tmp_path, from_mapping({**SMALL, "mappedFileSizeCommitLog": 1 << 22})[0]) as store:
            for number in range(600):
                store.put_message(Message(f"T{number % 40}", b"x", queue_id=number // 40))

            def produce() -> None:
                for number in range(500):
                    if is_over.is_set():
                        return
                    store.put_message(Message(f"N{number}", b"x"))

            producer = threading.Thread(target=produce, daemon=True)
            producer.start()
            for topic in range(40):
                store.delete_topics([f"T{topic}"])
                assert put(store, 1, f"T{topic}") == [(0, 0)]
            is_over.set()
            producer.join(60)
            assert store.wait_dispatched()
            assert {store.max_offset_in_queue(f"T{topic}", 0) for topic in range(40)} == {1}
    finally:
        sys.setswitchinterval(interval_before)


@pytest.mark.parametrize("count", [4, 3000])
@pytest.mark.parametrize("kind", ["plain", "ext", "batch", "light"])
def test_undispatched_units_of_a_deleted_topic_get_no_entries(kind: str, count: int) -> None:
    """Their entries were added after the deletion at their old queue offsets. Later messages found these offsets used:
    they were in the log and in no queue. (RocketMQ does this.) Now such units get no entries, singly or in blocks.
    """
    settings = {**SMALL, "mappedFileSizeCommitLog": 1 << 22, "enableConsumeQueueExt": kind == "ext"}
    if kind == "light":
        settings |= {"enableLmq": True, "enableMultiDispatch": True}
    with MessageStore(ROOT, from_mapping(settings)[0], disk=SimulatedDisk(), services=False) as store:
        if kind == "batch":
            store.tables.create_topic("Orders", 2, attributes={"queue.type": "BatchCQ"})
        put(store, 4)
        assert store.wait_dispatched()
        light = {"INNER_MULTI_DISPATCH": "%LMQ%one"} if kind == "light" else {}
        for number in range(count):
            store.put_message(Message("Orders", b"old", queue_id=number % 2, properties={"k": "v", **light}))
        put(store, 3, "Others", 1)
        deleted = ["Orders", "%LMQ%one"] if kind == "light" else ["Orders"]
        assert store.delete_topics(deleted) == 1
        if kind == "batch":
            store.tables.create_topic("Orders", 2, attributes={"queue.type": "BatchCQ"})
        assert put(store, 4) == [(0, 0), (1, 0), (0, 1), (1, 1)]
        store.put_message(Message("Orders", b"new", properties={"k": "v", **light}))
        assert store.wait_dispatched()
        assert bodies(store, "Orders", 0) == [b"x" * 50, b"x" * 50, b"new"]
        assert store.max_offset_in_queue("Orders", 1) == 2
        assert store.max_offset_in_queue("Others", 0) == 3
        assert store.max_offset_in_queue("%LMQ%one", 0) == (kind == "light")
    assert not store.closed or store.positions().dispatched == store.positions().wrote


def test_a_reader_of_a_deleted_topics_queue_finds_no_messages(tmp_path: Path) -> None:
    with MessageStore(tmp_path, from_mapping(SMALL)[0], services=False) as store:
        put(store, 60)
        store.wait_dispatched()
        queue = store.parts.queues.find_or_create("Orders", 0)
        assert len(queue.read_bytes(0, 200)) == 200
        store.delete_topics(["Orders"])
        assert queue.read_bytes(0, 200) == queue.files.read(0, 200) == b""
        with pytest.raises(FileNotFoundError, match="deleted meanwhile"):
            queue.files.write(0, b"late")
        assert (queue.min_offset, queue.max_offset, queue.flush()) == (0, 0, True)
        assert list((tmp_path / "consumequeue").iterdir()) == []
