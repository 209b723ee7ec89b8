"""A store is written by the real RocketMQ store and by ours in turn: each reads, continues and recovers the other's
part.

``--peer-rounds N`` does so for N seeds and each release; with two or more seeds a store changes hands ten times.
"""

from __future__ import annotations

import random
import shutil

import agree
import peer
import put_traffic
import pytest
import recovered_stores

from engine.config import from_mapping
from engine.message_store import MessageStore

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
TIMEOUT_S = 300_000.0  # ms: the first dispatch of a process may have to compile


def pytest_generate_tests(metafunc):
    """Make one test for each seed and release."""
    first_seed, rounds = metafunc.config.getoption("--peer-seed"), metafunc.config.getoption("--peer-rounds")
    metafunc.parametrize("seed", range(first_seed, first_seed + rounds))


@pytest.fixture
def hand_overs(request):
    """Return how many times a store changes hands."""
    return 10 if request.config.getoption("--peer-rounds") > 1 else 4


def plan_of(seed, release, count=400):
    """Return a plan for the peer with small files; its traffic is the peer's own part."""
    plan = dict(peer.plans(seed, release))["clean"]
    return {**plan, "count": count, "pauseEvery": 0}


def config_of(plan, **options):
    return from_mapping({"timerWheelEnable": False, **plan["config"], **options})[0]


def assert_reads_as_java_reads_it(store, account):
    """Assert that our command answers every question of every aspect like RocketMQ."""
    assert next(line for line in account if line["t"] == "load")["ok"]
    for aspect, compare in agree.ASPECTS.items():
        tally = compare(store, account)
        assert not tally.differences, f"{aspect}: {tally}"
    assert agree.units(store, account).compared > 100


@pytest.mark.parametrize("release", peer.RELEASES)
def test_java_reads_what_we_wrote(tmp_path, release, seed):
    java, plan, store = peer.Peer(release, tmp_path), plan_of(seed, release), tmp_path / "store"
    with MessageStore(store, config_of(plan), release=release[:3]) as ours:
        put_traffic.put(ours, put_traffic.messages(seed, plan, 600))
        put_traffic.put_last(ours, plan)
        assert ours.wait_dispatched(TIMEOUT_S)
        end, bounds = ours.positions().wrote, bounds_of(ours)
    account = java.dump(plan, store)
    assert_reads_as_java_reads_it(store, account)
    assert (end, bounds) == java_bounds(account, "loaded")
    assert (end, bounds) == java_bounds(account, "dispatched")


@pytest.mark.parametrize("release", peer.RELEASES)
def test_a_store_changes_hands(tmp_path, release, seed, hand_overs):
    java, plan, store = peer.Peer(release, tmp_path), plan_of(seed, release), tmp_path / "store"
    for turn in range(hand_overs):
        if turn % 2 == seed % 2:
            java.write({**plan, "seed": seed * 100 + turn, "count": 150}, store)
            continue
        with MessageStore(store, config_of(plan), release=release[:3]) as ours:
            assert ours.recovery_plan.exit == "normal"
            # 4.9 dispatches again from where the queues end: prepared units behind that go into the index once more.
            assert ours.recovery_plan.units == 0 or release == "4.9.8"
            put_traffic.put(ours, put_traffic.messages(f"{seed} {turn}", plan, 150))
        assert not (store / "abort").exists()
    with MessageStore(store, config_of(plan), release=release[:3]) as ours:
        put_traffic.put_last(ours, plan)
    account = java.dump(plan, store)
    assert_reads_as_java_reads_it(store, account)
    with MessageStore(store, config_of(plan), release=release[:3]) as ours:
        assert (ours.positions().wrote, bounds_of(ours)) == java_bounds(account, "dispatched")


@pytest.mark.crash
@pytest.mark.parametrize("release", peer.RELEASES)
def test_java_s_crashed_store_is_recovered_alike(tmp_path, release, seed):
    java, store = peer.Peer(release, tmp_path), tmp_path / "store"
    plan = dict(peer.plans(seed, release))["halted"]
    java.write({**plan, "pauseEvery": 0}, store)
    assert_both_recover_alike(java, plan, store, tmp_path, release)


@pytest.mark.crash
@pytest.mark.parametrize("release", peer.RELEASES)
def test_our_crashed_store_is_recovered_alike(tmp_path, release, seed):
    java, plan, store = peer.Peer(release, tmp_path), plan_of(seed, release), tmp_path / "store"
    pick = random.Random(f"crash {seed} {release}")
    config = config_of(plan, flushDiskType=pick.choice(["ASYNC_FLUSH", "SYNC_FLUSH"]))
    ours = MessageStore(store, config, release=release[:3])
    batches = list(put_traffic.messages(seed, plan, 700))
    stops = pick.randrange(len(batches))
    put_traffic.put(ours, batches[:stops])
    if pick.random() < 0.5:
        ours.wait_dispatched(TIMEOUT_S)
    put_traffic.put(ours, batches[stops:])
    ours.abandon()
    assert (store / "abort").exists()
    assert_both_recover_alike(java, plan, store, tmp_path, release)


def assert_both_recover_alike(java, plan, store, folder, release):
    """Assert that Java's recovery of one copy and ours of another give the same log, queues and index; then each reads
    the other's.
    """
    config, their_copy, our_copy = config_of(plan), folder / "java", folder / "ours"
    shutil.copytree(store, their_copy)
    shutil.copytree(store, our_copy)
    account = java.dump(plan, their_copy, in_place=True)
    with MessageStore(our_copy, config, release=release[:3]) as opened:
        done = opened.recovery_plan
        assert opened.wait_dispatched(TIMEOUT_S)
        assert (done.end_offset, bounds_of(opened)) == java_bounds(
            account, "loaded" if release[0] == "5" else "dispatched"
        )
    our_result, their_result = (recovered_stores.held_by(path, config, done) for path in (their_copy, our_copy))
    assert our_result.log == their_result.log
    assert our_result.queues == their_result.queues
    assert our_result.index == their_result.index
    with MessageStore(their_copy, config, release=release[:3]) as opened:
        assert opened.recovery_plan.units == 0 or release == "4.9.8"
        assert (opened.positions().wrote, bounds_of(opened)) == java_bounds(account, "dispatched")


def bounds_of(store):
    """Return a dictionary: (topic, queue) → (min, max) of every queue that has entries."""
    queues = store._parts.queues
    return {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in queues if q.max_offset}


def java_bounds(account, when):
    """Return the end of the log and the bounds of the queues from Java's account at one moment."""
    moments = [line for line in account if line["t"] == "state"]
    state = next((line for line in moments if line["when"] == when), moments[-1])
    rows = [line for line in account if line["t"] == "queue" and line["when"] == state["when"]]
    return state["maxPhy"], {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in rows if row["max"]}
