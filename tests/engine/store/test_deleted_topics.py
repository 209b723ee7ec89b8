"""The folders of a deleted topic: they disappear at once and are removed later."""

from __future__ import annotations

import contextlib
import errno
import random

import pytest
from simulated_disk import SimulatedDisk
from topics_put import ROOT, SMALL, bodies, put

from engine.config import from_mapping
from engine.mapped.power_loss import PowerLoss
from engine.message_store import MessageStore
from engine.store.deleted_topics import ASIDE

FAULTS = [
    ("move_folder", "*"),
    ("sync_folder", "*consumequeue*"),
    ("delete", "*"),
    ("remove_folder", "*"),
    ("write_file", "*config*"),
    ("replace", "*config*"),
]


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
