"""Our recovery plan for damaged stores, and the recovery of the real RocketMQ store: the same end, the same queues.

Any release may start any store, for example after an upgrade or a downgrade. By default the newest release starts
twenty damaged stores, and the two releases compared longest start two each; ``--peer-rounds N`` starts four a seed by
each of four releases, so ``--peer-rounds 75`` is 300 states of each.
"""

from __future__ import annotations

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
from engine.releases import rules_of

PAST_TEN = "queues-gone-past-ten-files-5.5.1"
pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

STORES = {
    "5.5.1": ["clean-5.5.1", "late-queue-flush-5.5.1", "crash-5.4.0", "crash-late-5.3.3", "batchcq-5.3.3", PAST_TEN],
    "5.4.0": ["crash-5.4.0", "clean-5.5.1", "late-queue-flush-5.5.1", "crash-5.3.3", PAST_TEN, "multi-queue-ext-5.3.3"],
    "5.3.3": ["clean-5.3.3", "crash-late-5.3.3", "crash-5.3.3", "multi-queue-ext-5.3.3", "batchcq-5.3.3"],
    "4.9.8": ["clean-4.9.8", "crash-4.9.8"],
}
"""The stores that each release starts."""
COUNTS = {"5.5.1": 20, "5.3.3": 2, "4.9.8": 2}
"""How many states of each release are tried where nobody asks for more."""
COPIES = 4
LIMITS = (1, 2, 3, 10, 10, 50)
"""commitLogRecoverMaxNum: golden stores have few files."""
SIZES = {
    "mappedFileSizeCommitLog": "mapped_file_size_commit_log",
    "mappedFileSizeConsumeQueue": "mapped_file_size_consume_queue",
    "mapperFileSizeBatchConsumeQueue": "mapper_file_size_batch_consume_queue",
    "maxHashSlotNum": "max_hash_slot_num",
    "maxIndexNum": "max_index_num",
    "commitLogRecoverMaxNum": "commit_log_recover_max_num",
    "checkCommitLogOffsetOnRecover": "check_commit_log_offset_on_recover",
    "messageIndexSafe": "message_index_safe",
}


def pytest_generate_tests(metafunc):
    first_seed = metafunc.config.getoption("--peer-seed") * COPIES
    rounds = metafunc.config.getoption("--peer-rounds")
    counts = COUNTS if rounds == 1 else dict.fromkeys(STORES, rounds * COPIES)
    cases = [(release, seed) for release, count in counts.items() for seed in range(first_seed, first_seed + count)]
    metafunc.parametrize(("release", "seed"), cases)


def configured(plan):
    """Return the configuration under which the store was written: a damaged store cannot reveal its sizes."""
    known_values = {key: int(value) for key, value in plan["config"].items() if key in SIZES}
    values = {SIZES[key]: value for key, value in known_values.items()}
    return MessageStoreConfig(**values, timer_wheel_enable=False, given=frozenset(known_values))


def settings_of(rng, release):
    """Return the broker's settings for recovery that the release knows."""
    settings = {"messageIndexSafe": rng.random() < 0.2}
    if rules_of(release[:3]).recovery_file_limit is not None:
        settings["commitLogRecoverMaxNum"] = rng.choice(LIMITS)
    if rules_of(release[:3]).checks_unit_offset:
        settings["checkCommitLogOffsetOnRecover"] = rng.random() < 0.2
    return settings


def test_a_damaged_store_is_planned_as_java_recovers_it(release, seed, golden, tmp_path):
    rng = random.Random(f"recovery {seed}")
    name = STORES[release][seed % len(STORES[release])]
    plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    store = tmp_path / "store"
    shutil.copytree(golden(name), store)
    harm = store_damage.damage(rng, store)
    plan["config"] |= (settings := settings_of(rng, release))
    harm.append(str(settings))

    account, death = peer.Peer(release, tmp_path).start_copy(plan, store)
    with open_store(store, configured(plan)) as opened:
        ours = recovery.plan(opened, release[:3])

    if "java.lang.OutOfMemoryError" in death:  # 4.9 asks for as much heap as the first wrong unit's length field says
        announced = [*(blocker.broker_log for blocker in ours.blockers), *ours.notes]
        assert any("OutOfMemoryError" in text for text in announced), f"{name} {harm}"
        return
    state = next((row for row in account if row["t"] == "state" and row["when"] == "started"), None)
    assert ours.will_start == (state is not None), f"{name} {harm} {ours.blockers} {death}"
    if state is None:
        return
    assert ours.end_offset == state["maxPhy"], f"{name} {harm}"
    bounds = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in ours.queues}
    rows = [row for row in account if row["t"] == "queue" and row["when"] == "started"]
    theirs = {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in rows}
    assert {key: bounds.get(key, (0, 0)) for key in theirs} == theirs, f"{name} {harm}"
