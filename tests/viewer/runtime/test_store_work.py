"""The plan and the check of a whole store, as computed by the worker process."""

from __future__ import annotations

import pytest
from broken_stores import zero_log_from
from controls import FakeControl
from handmade_stores import HandmadeStore

from viewer.runtime.store_work import check, plan


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(60):
        store.put(keys=f"K{number}")
    return store


def test_a_plan_includes_the_other_release(small_store, tmp_path):
    actual_plan = plan(FakeControl(), small_store.write(tmp_path / "s", abort=True), None, "5.3")
    assert (actual_plan.plan.release, actual_plan.plan.exit, actual_plan.plan.end_offset) == (
        "5.3",
        "abnormal",
        small_store.end,
    )
    assert (actual_plan.other_start.release, actual_plan.other_start.will_start) == ("4.9", True)


def test_a_check_gives_its_findings_and_the_incident(small_store, tmp_path):
    root = small_store.write(tmp_path / "s")
    results = check(FakeControl(), root, None)
    assert (results.complete, results.incident) == (True, None)
    zero_log_from(root, small_store.units[50].offset)
    lost = check(FakeControl(), root, None)
    assert "CL11" in {finding.id for finding in lost.findings}
    assert lost.incident is not None


def test_a_stopped_check_is_incomplete(small_store, tmp_path):
    control = FakeControl(at=1)
    control.checks = 1
    assert control.cancelled
    assert not check(control, small_store.write(tmp_path / "s"), None).complete
