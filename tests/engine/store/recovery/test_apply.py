"""Applying a recovery: the files equal those of RocketMQ's own recovery, and a crash on the way does no harm."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import golden_stores
import handmade_stores
import pytest
import recovered_stores
from handmade_stores import healthy
from simulated_disk import PowerLoss, SimulatedDisk

from engine.codec.index import Geometry
from engine.config import MessageStoreConfig
from engine.files.layout import StorePaths
from engine.services.rebuild import Rebuild
from engine.store.recovery import apply as recovery_apply
from engine.store.recovery import load_source
from engine.store.recovery import planning as recovery

CRASHED = golden_stores.names("recovered.tar.xz")


def release(name):
    return golden_stores.release_of(name)


def bounds(parts):
    return {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in parts.queues if q.max_offset}


@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", CRASHED)
def test_the_files_are_those_that_rocketmq_leaves(name, golden, tmp_path):
    store, config = tmp_path / "store", recovered_stores.golden_config(name)
    shutil.copytree(golden(name), store)
    plan, parts = recovered_stores.recover(store, config, release(name))
    parts.flush()
    parts.close()
    ours = recovered_stores.held_by(store, config, plan)
    theirs = recovered_stores.held_by(golden(name, "recovered"), config, plan)
    assert ours.log == theirs.log
    assert ours.queues == theirs.queues
    assert ours.index == theirs.index
    assert [f.name for f in sorted((store / "commitlog").iterdir())] == [
        f.name for f in sorted((golden(name, "recovered") / "commitlog").iterdir())
    ]
    assert ours.log
    assert ours.queues
    assert ours.index


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.3.3", "clean-4.9.8", "multi-queue-ext-5.3.3", "batchcq-5.3.3", "lmq-5.3.3"])
def test_a_store_that_was_closed_is_left_as_it_is(name, golden, tmp_path):
    store, config = tmp_path / "store", recovered_stores.golden_config(name)
    shutil.copytree(golden(name), store)
    files_before = golden_stores.fingerprint(store)
    plan, parts = recovered_stores.recover(store, config, release(name))
    parts.close()
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store)) == []
    assert plan.changes_nothing


@pytest.mark.full_form(keep=6)
@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", CRASHED)
def test_every_way_of_carrying_a_plan_out_leaves_the_same(name, golden, tmp_path, monkeypatch):
    monkeypatch.setattr(recovery_apply, "BULK_BYTES", 0)
    config, release_name = recovered_stores.golden_config(name), release(name)
    results = []
    for way in ("one walk", "plan first", "two threads", "mapped"):
        store = tmp_path / way
        shutil.copytree(golden(name), store)
        parts = recovered_stores.opened(store, config, release=release_name)
        source = load_source.source(StorePaths(store), config, parts.disk)

        def bulk(parts=parts):
            return Rebuild(parts.queues, parts.index, config)

        if way == "plan first":
            plan = recovery.plan(source, release_name)
            recovery_apply.apply(plan, source, parts)
        else:
            monkeypatch.setattr(load_source, "MIN_MAPPED_BYTES", 0 if way == "mapped" else 1 << 40)
            plan = recovery_apply.recover(source, parts, release_name, None if way == "one walk" else bulk)
        parts.flush()
        parts.close()
        queues = [replace(queue, files_deleted=()) for queue in plan.queues]
        results.append((recovered_stores.held_by(store, config, plan), queues, plan.end_offset, plan.units))
        assert results[-1] == results[0], way


# A crash during the recovery

ROOT = Path("/s")
GEOMETRY = Geometry(handmade_stores.SLOTS, handmade_stores.ENTRIES)
SMALL = MessageStoreConfig(
    mapped_file_size_commit_log=handmade_stores.LOG_SIZE,
    mapped_file_size_consume_queue=handmade_stores.QUEUE_SIZE,
    max_hash_slot_num=handmade_stores.SLOTS,
    max_index_num=handmade_stores.ENTRIES,
    timer_wheel_enable=False,
)


def torn(folder):
    """Damage like a crash: the log's last page is lost, its queues have later entries, and the checkpoint confirms
    one file.
    """
    store = healthy()
    second = next(u for u in store.units if u.offset == handmade_stores.LOG_SIZE)
    store.log = store.log[: store.units[-9].offset + 20] + bytes(store.end - store.units[-9].offset - 20)
    store.write(folder, abort=True)
    store.write_checkpoint(folder, second.store_timestamp + 3000, second.store_timestamp + 3000)


def lagging(folder):
    """Damage like a crash: the queues lag behind the log, and stale bytes follow its end."""
    store = healthy(70)
    offset = store.units[40].offset
    stale, store.units = store.units, [u for u in store.units if u.offset < offset]
    store.write(folder, abort=True)
    store.units = stale
    store.write_checkpoint(folder, 1, 1)


def without_queues(folder):
    """Close the store cleanly, then remove its queues."""
    store = healthy()
    store.write(folder)
    shutil.rmtree(folder / "consumequeue")


def emptied(folder):
    """Remove the log: a broker deletes the queues."""
    store = healthy()
    store.write(folder)
    shutil.rmtree(folder / "commitlog")


def answers(contents):
    """Return the answers of the index: a unit dispatched twice in a row may be in it twice
    (docs/formats/index-file.md#query).
    """
    rows = [recovered_stores.index_rows(content, GEOMETRY) for content in contents.index]
    return {(int(row["key_hash"]), int(row["phy_offset"])) for file in rows for row in file}


@pytest.mark.full_form(keep=5)
@pytest.mark.crash
@pytest.mark.parametrize("release", ["5.3", "4.9"])
@pytest.mark.parametrize("harm", [torn, lagging, without_queues, emptied])
def test_a_power_loss_at_any_call_of_a_recovery_is_recovered_from(harm, release, tmp_path):
    harm(tmp_path)

    def disk(**how):
        simulated_disk = SimulatedDisk()
        recovered_stores.copy_to(simulated_disk, tmp_path, ROOT)
        simulated_disk.calls, simulated_disk.crash_at = 0, how.get("crash_at")
        return simulated_disk

    full_disk = disk()
    plan, parts = recovered_stores.recover(ROOT, SMALL, release, full_disk)
    parts.flush()
    expected = recovered_stores.held_by(ROOT, SMALL, plan, full_disk)
    calls, rng = full_disk.calls, random.Random(f"{harm.__name__} {release}")
    for number in range(1, calls + 1):
        cut = disk(crash_at=number)
        with pytest.raises(PowerLoss):
            recovered_stores.recover(ROOT, SMALL, release, cut)[1].flush()
        for keep in (0.0, 1.0, None):
            after_power_loss = cut.after_power_loss(rng, keep)
            repeated, parts = recovered_stores.recover(ROOT, SMALL, release, after_power_loss)
            parts.flush()
            contents, where = (
                recovered_stores.held_by(ROOT, SMALL, repeated, after_power_loss),
                f"call {number} of {calls}, keep {keep}",
            )
            assert (contents.log, contents.queues) == (expected.log, expected.queues), where
            if harm is not emptied:
                assert answers(contents) == answers(expected), where
            assert bounds(parts) == {
                key: (min_offset, max_offset) for key, (min_offset, max_offset, _) in expected.queues.items()
            }


@pytest.mark.crash
@pytest.mark.parametrize("cut", [False, True])
def test_a_queue_file_whose_first_entry_was_lost_goes(cut, tmp_path):
    """After a power loss a queue's new file had a name but no bytes. RocketMQ keeps it: where the log is cut, it treats
    the zeros as an entry, and the next message gets a wrong queue offset; otherwise 5.3 no longer starts.
    """
    store, entries = healthy(110), handmade_stores.QUEUE_SIZE // 20
    (topic, queue_id), count = next(i for i in store.next_offsets.items() if i[1] > entries and i[1] % entries)
    lost = [u for u in store.units if (u.topic, u.queue_id) == (topic, queue_id)][count // entries * entries :]
    if cut:
        store.log = store.log[: lost[0].offset - store.first_offset]
    store.write(tmp_path, abort=True)
    name = tmp_path / "consumequeue" / topic / str(queue_id) / f"{count // entries * entries * 20:020d}"
    name.write_bytes(bytes(handmade_stores.QUEUE_SIZE))
    plan, parts = recovered_stores.recover(tmp_path, SMALL)
    queue = parts.queues.queue(topic, queue_id)
    assert plan.will_start
    assert queue.max_offset == (count // entries * entries if cut else count)
    assert name.exists() == (not cut)
    _, parts = recovered_stores.recover(tmp_path, SMALL)
    assert parts.queues.queue(topic, queue_id).max_offset == queue.max_offset


@pytest.mark.crash
def test_a_topic_that_no_folder_can_be_named_after_gets_no_queue(tmp_path):
    """A torn unit had NULs as its topic, and the store did not open. "../.." would have led out of the store."""
    store = healthy(10)
    for topic in ("../../out", "a\0b", "..", "x/y"):
        store.put(topic)
    root = tmp_path / "inner" / "store"
    store.write(root, queues=False, abort=True, checkpoint=False)
    plan, parts = recovered_stores.recover(root, SMALL)
    assert (plan.units, plan.end_offset) == (len(store.units), store.end)
    assert {queue.topic for queue in parts.queues} == {unit.topic for unit in store.units[:10]}
    assert [path.name for path in (tmp_path / "inner").iterdir()] == ["store"]
    assert list(tmp_path.iterdir()) == [tmp_path / "inner"]


def test_a_plan_that_would_not_start_is_not_applied(tmp_path):
    """The plan goes with the error: a caller shows its reasons."""
    healthy(80).write(tmp_path)
    second_file = sorted((tmp_path / "commitlog").iterdir())[1]
    second_file.write_bytes(second_file.read_bytes()[:-8])
    files_before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(recovery_apply.WouldNotStart) as refusal:
        recovered_stores.recover(tmp_path, SMALL)
    assert [blocker.finding for blocker in refusal.value.plan.blockers] == ["CL07"]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files_before
