"""A topic that is deleted is set aside by one rename."""

from __future__ import annotations

import contextlib
import errno
import random
from pathlib import Path
from typing import Any

import pytest

from engine.codec.message import decode
from engine.config import from_mapping
from engine.mapped.power_loss import PowerLoss
from engine.mapped.simulated_disk import SimulatedDisk
from engine.message_store import Message, MessageStore
from engine.store.set_aside import ASIDE

SMALL: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 16, "mappedFileSizeConsumeQueue": 200, "maxHashSlotNum": 50, "maxIndexNum": 400,
    "mappedFileSizeConsumeQueueExt": 1 << 12,
}  # fmt: skip


ROOT = Path("/store")


def put(store: MessageStore, count: int, topic: str = "Orders", queues: int = 2) -> list[tuple[int, int]]:
    """Queue and queue offset of each message."""
    made = []
    for number in range(count):
        result = store.put_message(Message(topic, b"x" * 50, queue_id=number % queues))
        assert result.append is not None
        made.append((number % queues, result.append.queue_offset))
    return made


def bodies(store: MessageStore, topic: str, queue_id: int) -> list[bytes]:
    found: list[bytes] = []
    for block in store.stream(topic, queue_id):
        with block:
            found += [decode(message).body for message in block.messages()]
    return found


FAULTS = [("move_folder", "*"), ("sync_folder", "*consumequeue*"), ("delete", "*"), ("remove_folder", "*"),
          ("write_file", "*config*"), ("replace", "*config*")]  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), FAULTS)
@pytest.mark.parametrize("after", range(3))
def test_whichever_call_fails_a_topic_is_there_or_gone(kind: str, path: str, after: int) -> None:
    disk = SimulatedDisk()
    settings = from_mapping({**SMALL, "enableConsumeQueueExt": True})[0]
    with MessageStore(ROOT, settings, disk=disk, services=False) as store:
        for topic in ("Orders", "Others"):
            store.tables.create_topic(topic, 2)
            put(store, 60, topic)
        store.wait_dispatched()
        disk.fail(errno.EIO, kind=kind, path=path, after=after)
        try:
            store.delete_topics(["Orders", "Others"])
        except OSError:
            assert kind == "move_folder"
        disk.heal()
        for topic in ("Orders", "Others"):
            there = topic in disk.folders(ROOT / "consumequeue")
            assert there == (topic in store.tables.topics())
            assert len(bodies(store, topic, 0)) == 30 * there
            assert put(store, 1, topic) == [(0, 30 * there)]
        store.wait_dispatched()
        store.tables.save()
    with MessageStore(ROOT, settings, disk=disk, services=False) as store:
        assert store.recovery_plan.exit == "normal"
        assert ASIDE not in disk.folders(ROOT / "consumequeue") + disk.folders(ROOT / "consumequeue_ext")
        for topic in ("Orders", "Others"):
            assert len(bodies(store, topic, 0)) in {1, 31}
            assert (topic in store.tables.topics()) == (len(bodies(store, topic, 0)) == 31)


@pytest.mark.parametrize("keep", [0.0, 1.0])
def test_wherever_the_power_fails_a_topic_has_all_of_its_queue_files_or_none(keep: float) -> None:
    settings = from_mapping(SMALL)[0]
    for call in range(1, 40):
        disk = SimulatedDisk()
        store = MessageStore(ROOT, settings, disk=disk, services=False)
        put(store, 60)
        store.wait_dispatched()
        for name in ("flush", "queues", "checkpoint"):
            store.step(name)
        store.flush()
        store._parts.queues.flush()
        disk.crash_at = disk.calls + call
        try:
            store.delete_topics(["Orders"])
        except PowerLoss:
            done = False
        else:
            done = True
        disk.pull_the_plug()
        with contextlib.suppress(PowerLoss):
            store.abandon()
        found = disk.after_power_loss(random.Random(call), keep)
        files = {queue: len(found.names(ROOT / "consumequeue" / "Orders" / queue)) for queue in ("0", "1")}
        assert files in ({"0": 3, "1": 3}, {"0": 0, "1": 0}), f"power failed at call {call}"
        with MessageStore(ROOT, settings, disk=found, services=False) as again:
            assert found.folders(ROOT / "consumequeue").count(ASIDE) == 0
            assert again.positions().wrote == store.positions().wrote
        if done:
            return
    raise AssertionError("it never ended")
