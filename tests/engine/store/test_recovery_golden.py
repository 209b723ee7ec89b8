"""Recovery plans compared with real RocketMQ on the same stores: end of log, queue bounds, index files."""

from __future__ import annotations

import golden_stores
import pytest

from engine import releases
from engine.inspection import recovery
from engine.inspection.snapshot import open_store

DUMPED = golden_stores.names("expected.jsonl.xz")
CRASHED = golden_stores.names("recovered.tar.xz")


def release(name):
    return next((item for item in releases.NAMES if f"-{item}." in name), "5.3")


def last_state(account):
    rows = [row for row in account if row["t"] in ("state", "queue")]
    when = [row["when"] for row in rows if row["t"] == "state"][-1]
    state = next(row for row in rows if row["t"] == "state" and row["when"] == when)
    return state, [row for row in rows if row["t"] == "queue" and row["when"] == when]


def plan_of(path, release):
    with open_store(path) as store:
        return recovery.plan(store, release)


def check_agrees(plan, state, queues):
    """Compare; a queue without entries that only a query created need not be in the plan."""
    ours = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in plan.queues}
    theirs = {(row["topic"], row["queue"]): (row["min"], row["max"]) for row in queues}
    assert plan.end_offset == state["maxPhy"]
    assert {key: ours.get(key, (0, 0)) for key in theirs} == theirs
    assert plan.will_start
    assert plan.blockers == ()


@pytest.mark.golden
@pytest.mark.parametrize("name", DUMPED)
def test_agrees_with_a_real_start(name, golden, golden_account):
    state, queues = last_state(golden_account(name, "expected.jsonl.xz"))
    check_agrees(plan_of(golden(name), release(name)), state, queues)


@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", CRASHED)
def test_a_recovered_store_starts_as_it_was_left(name, golden, golden_account):
    state, queues = last_state(golden_account(name, "recovered.jsonl.xz"))
    plan = plan_of(golden(name, "recovered"), release(name))
    check_agrees(plan, state, queues)
    assert plan.exit == "normal"
    assert (plan.units, plan.index_deleted, plan.groups_beyond) == (0, (), ())


@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", [name for name in CRASHED if "gone" not in name])
def test_names_the_index_files_that_the_real_start_deleted(name, golden):
    plan = plan_of(golden(name), release(name))
    names = {path.name for path in (golden(name, "recovered") / "index").iterdir()}
    assert {file.name for file in plan.index_kept} <= names
    assert not {file.name for file in plan.index_deleted} & names


@pytest.mark.golden
@pytest.mark.crash
def test_agrees_with_a_real_broker_that_was_killed(golden, golden_account):
    account = list(golden_account("broker-crash", "recovered.jsonl.xz"))
    plan = plan_of(golden("broker-crash"), "5.3")
    ours = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in plan.queues}
    theirs = {(row["topic"], row["queueId"]): (row["min"], row["max"]) for row in account if row["kind"] == "queue"}
    assert {key: ours[key] for key in theirs} == theirs
    positions = next(row["positions"] for row in account if row["kind"] == "positions")
    assert plan.end_offset == positions["maxPhyOffset"]
    assert plan.exit == "abnormal"
    assert [path.rsplit("/", 1)[1] for path in plan.files_deleted] == ["00000000000003145728"]


@pytest.mark.golden
def test_planning_changes_nothing(golden, unchanged):
    plan_of(unchanged(golden("crash-power-5.3.3")), "5.3")


@pytest.mark.golden
def test_a_plan_becomes_the_record_of_the_contract(golden):
    record = plan_of(golden("crash-flip-5.3.3"), "5.3").record()
    assert record["type"] == "recoveryPlan"
    expected = {
        "willStart",
        "blockers",
        "exit",
        "startFile",
        "why",
        "startOffset",
        "endOffset",
        "endReason",
        "unitsKept",
        "bytesDropped",
        "dispatchFrom",
        "units",
        "filesDeleted",
        "queues",
        "groupsBeyond",
        "index",
        "bytesToRead",
    }
    assert expected <= record.keys()
    assert record["bytesDropped"] == 398929
    assert record["unitsDropped"] == 783
