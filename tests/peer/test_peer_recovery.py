"""Recovery of damaged stores, planned by us and carried out by the real RocketMQ store: the same end, the same queues.

``--peer-rounds N`` damages four copies of golden stores for each seed.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil

import golden_stores
import peer
import pytest
import store_damage

from engine.config import MessageStoreConfig
from engine.inspection import recovery
from engine.inspection.snapshot import open_store

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

STORES = ["clean-5.3.3", "crash-late-5.3.3", "crash-5.3.3", "multi-queue-ext-5.3.3", "batchcq-5.3.3", "clean-4.9.8"]
COPIES = 4
SIZES = {
    "mappedFileSizeCommitLog": "mapped_file_size_commit_log",
    "mappedFileSizeConsumeQueue": "mapped_file_size_consume_queue",
    "mapperFileSizeBatchConsumeQueue": "mapper_file_size_batch_consume_queue",
    "maxHashSlotNum": "max_hash_slot_num",
    "maxIndexNum": "max_index_num",
}


def pytest_generate_tests(metafunc):
    first = metafunc.config.getoption("--peer-seed") * COPIES
    count = metafunc.config.getoption("--peer-rounds") * COPIES
    metafunc.parametrize("seed", range(first, first + count))


def configured(plan):
    """The configuration under which the store was written: a damaged one cannot tell its sizes."""
    known = {key: int(value) for key, value in plan["config"].items() if key in SIZES}
    values = {SIZES[key]: value for key, value in known.items()}
    return MessageStoreConfig(**values, timer_wheel_enable=False, given=frozenset(known))


def told(java, plan, store, folder):
    """What Java says, up to where its reading of a damaged store ends: positions come first."""
    with contextlib.suppress(AssertionError):
        return java.dump(plan, store)
    with (folder / "dump.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.endswith("\n")]


def test_a_damaged_store_is_planned_as_java_recovers_it(seed, golden, tmp_path):
    rng = random.Random(f"recovery {seed}")
    name = STORES[seed % len(STORES)]
    plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    store = tmp_path / "store"
    shutil.copytree(golden(name), store)
    harm = store_damage.damage(rng, store)

    account = told(peer.Peer(plan["release"], tmp_path), plan, store, tmp_path)
    with open_store(store, configured(plan)) as opened:
        ours = recovery.plan(opened, plan["release"][:3])

    loaded = next(row for row in account if row["t"] == "load")["ok"]
    assert ours.will_start == loaded, f"{name} {harm} {ours.blockers}"
    if not loaded:
        return
    state = next(row for row in account if row["t"] == "state" and row["when"] == "started")
    assert ours.end_offset == state["maxPhy"], f"{name} {harm}"
    bounds = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in ours.queues}
    rows = [row for row in account if row["t"] == "queue" and row["when"] == "started"]
    theirs = {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in rows}
    assert {key: bounds.get(key, (0, 0)) for key in theirs} == theirs, f"{name} {harm}"
