"""The folders of a deleted topic disappear at once and are removed later."""

from __future__ import annotations

import contextlib
import errno
import random
import tracemalloc
from pathlib import Path

import pytest
from dispatching import DispatchTarget
from raw_units import raw_log
from simulated_disk import SimulatedDisk
from stores_with_topics import ROOT, SMALL, bodies, put

from engine.config import MessageStoreConfig, from_mapping
from engine.errors import StoreError, WrongFileSize
from engine.mapped.disk import RealDisk
from engine.mapped.power_loss import PowerLoss
from engine.message_store import Message, MessageStore
from engine.store.consume_queue import BatchConsumeQueue
from engine.store.consume_queue_store import ASIDE

FAULTS = [
    ("move_folder", "*"),
    ("sync_folder", "*consumequeue*"),
    ("delete", "*"),
    ("remove_folder", "*"),
    ("write_file", "*config*"),
    ("replace", "*config*"),
]


@pytest.mark.parametrize(("kind", "path"), FAULTS)
@pytest.mark.parametrize("failing_call", range(3))
def test_a_topic_is_complete_or_gone_whichever_call_fails(kind: str, path: str, failing_call: int) -> None:
    disk = SimulatedDisk()
    settings = from_mapping({**SMALL, "enableConsumeQueueExt": True})[0]
    with MessageStore(ROOT, settings, disk=disk, services=False) as store:
        for topic in ("Orders", "Others"):
            store.tables.create_topic(topic, 2)
            put(store, 60, topic)
        store.wait_dispatched()
        disk.fail(errno.EIO, kind=kind, path=path, after=failing_call)
        try:
            store.delete_topics(["Orders", "Others"])
        except OSError:
            assert kind == "move_folder"
        disk.heal()
        for topic in ("Orders", "Others"):
            present = topic in disk.folders(ROOT / "consumequeue")
            assert present == (topic in store.tables.topics())
            assert len(bodies(store, topic, 0)) == 30 * present
            assert put(store, 1, topic) == [(0, 30 * present)]
        store.wait_dispatched()
        store.tables.save()
    with MessageStore(ROOT, settings, disk=disk, services=False) as store:
        assert store.recovery_plan.exit == "normal"
        assert ASIDE not in disk.folders(ROOT / "consumequeue") + disk.folders(ROOT / "consumequeue_ext")
        for topic in ("Orders", "Others"):
            assert len(bodies(store, topic, 0)) in {1, 31}
            assert (topic in store.tables.topics()) == (len(bodies(store, topic, 0)) == 31)


@pytest.mark.parametrize("keep", [0.0, 1.0])
def test_a_topic_has_all_or_none_of_its_queue_files_after_a_power_loss(keep: float) -> None:
    settings = from_mapping(SMALL)[0]
    for call in range(1, 40):
        disk = SimulatedDisk()
        store = MessageStore(ROOT, settings, disk=disk, services=False)
        put(store, 60)
        store.wait_dispatched()
        for name in ("flush", "queues", "checkpoint"):
            store.services.step(name)
        store.flush()
        store._parts.queues.flush()
        disk.crash_at = disk.calls + call
        try:
            store.delete_topics(["Orders"])
        except PowerLoss:
            done = False
        else:
            done = True
        disk.cut_power()
        with contextlib.suppress(PowerLoss):
            store.abandon()
        after_power_loss = disk.after_power_loss(random.Random(call), keep)
        files = {queue: len(after_power_loss.names(ROOT / "consumequeue" / "Orders" / queue)) for queue in ("0", "1")}
        assert files in ({"0": 3, "1": 3}, {"0": 0, "1": 0}), f"power failed at call {call}"
        with MessageStore(ROOT, settings, disk=after_power_loss, services=False) as second_store:
            assert after_power_loss.folders(ROOT / "consumequeue").count(ASIDE) == 0
            assert second_store.positions().wrote == store.positions().wrote
        if done:
            return
    raise AssertionError("it never ended")


CONFIG, _ = from_mapping({"mappedFileSizeConsumeQueue": 100, "mapperFileSizeBatchConsumeQueue": 92})


def filled(root: Path, batch: frozenset[str] = frozenset({"B"})) -> DispatchTarget:
    place = DispatchTarget(CONFIG, RealDisk(), root, batch)
    names = ((b"A", 0), (b"A", 2), (b"B", 1), ("主题 %RETRY%".encode(), 0))
    place.dispatch(raw_log(*({"topic": name, "queue_id": number, "queue_offset": 0} for name, number in names)))
    return place


def test_queues_are_found_by_topic_and_id_and_made_without_touching_the_disk(tmp_path):
    place = DispatchTarget(CONFIG, RealDisk(), tmp_path)
    assert place.queues.queue("A", 0) is None
    assert place.queues.find_or_create("A", 0) is place.queues.queue("A", 0)
    assert list(tmp_path.iterdir()) == []


def test_written_files_are_loaded_as_full(tmp_path):
    filled(tmp_path).queues.close()
    place = DispatchTarget(CONFIG, RealDisk(), tmp_path, frozenset({"B"}))
    place.queues.load()
    assert place.queues.offsets() == {("A", 0): 5, ("A", 2): 5, ("B", 1): 0, ("主题 %RETRY%", 0): 5}
    assert isinstance(place.queues.queue("B", 1), BatchConsumeQueue)
    assert sorted(place.queues.queues_of("A")) == [0, 2]


def test_folders_without_a_queue_id_are_skipped(tmp_path):
    (tmp_path / "consumequeue" / "A" / "lost+found").mkdir(parents=True)
    place = DispatchTarget(CONFIG, RealDisk(), tmp_path)
    place.queues.load()
    assert len(place.queues) == 0


def test_a_queue_of_the_wrong_kind_does_not_load(tmp_path):
    filled(tmp_path)
    with pytest.raises(StoreError, match="expected plain queues by the topic's attributes, found batch queues"):
        DispatchTarget(CONFIG, RealDisk(), tmp_path).queues.load()


def test_a_file_of_a_wrong_length_does_not_load_but_an_empty_last_one_is_deleted(tmp_path):
    filled(tmp_path)
    extra = tmp_path / "consumequeue" / "A" / "0" / f"{100:020d}"
    extra.touch()
    place = DispatchTarget(CONFIG, RealDisk(), tmp_path, frozenset({"B"}))
    place.queues.load()
    assert not extra.exists()
    extra.write_bytes(b"x")
    with pytest.raises(WrongFileSize, match="expected 100 bytes, found 1"):
        DispatchTarget(CONFIG, RealDisk(), tmp_path, frozenset({"B"})).queues.load()


def test_only_queues_that_were_written_are_flushed(tmp_path):
    place = filled(tmp_path)
    assert len(place.queues.dirty()) == 4
    assert not place.queues.flush(2)
    assert place.queues.flush(0)
    assert place.queues.dirty() == []


def test_a_topic_is_deleted_with_its_folders(tmp_path):
    place = filled(tmp_path)
    assert place.queues.delete_topic("A")
    assert not place.queues.delete_topic("A")
    assert sorted(path.name for path in (tmp_path / "consumequeue").iterdir()) == ["主题 %RETRY%"]
    assert place.queues.queue("A", 0) is None
    assert place.queues.delete_topic("B")
    assert list((tmp_path / "batchconsumequeue").iterdir()) == []


def test_an_empty_log_destroys_every_queue(tmp_path):
    place = filled(tmp_path)
    place.queues.destroy_all()
    assert [path for path in tmp_path.rglob("0*") if path.is_file() and "index" not in path.parts] == []
    assert set(place.queues.offsets().values()) == {0}


def test_ten_thousand_topics_keep_few_files_open_and_little_memory(tmp_path):
    """A store has forty thousand queues, so each must keep little memory."""
    disk = RealDisk(open_files=16)
    place = DispatchTarget(MessageStoreConfig(mapped_file_size_consume_queue=100), disk, tmp_path)
    names = [f"t{number}" for number in range(300)]
    place.queues.find_or_create("warm", 0).put(0, 100, 0, 0)
    tracemalloc.start()
    memory_before = tracemalloc.get_traced_memory()[0]
    for number, name in enumerate(names):
        place.queues.find_or_create(name, 0).put(100 + number * 100, 100, 0, 0)
    used = tracemalloc.get_traced_memory()[0] - memory_before
    tracemalloc.stop()
    assert disk.open_files <= 16
    assert used / len(names) < 2500


@pytest.mark.parametrize("topic", ["../commitlog", "..", "a/b", "é\x00b", ""])
def test_a_name_that_is_no_folders_name_moves_nothing(tmp_path: Path, topic: str) -> None:
    """An administrator's request may contain any name, and an earlier query has already created the queue object."""
    with MessageStore(tmp_path / "store") as store:
        store.put_message(Message("Orders", b"one"))
        assert store.wait_dispatched(30_000)
        store.parts.queues.find_or_create(topic, 0)
        paths_before = sorted(str(path) for path in tmp_path.rglob("*"))
        store.delete_topics([topic])
        assert sorted(str(path) for path in tmp_path.rglob("*")) == paths_before
        assert store.max_offset_in_queue("Orders", 0) == 1
