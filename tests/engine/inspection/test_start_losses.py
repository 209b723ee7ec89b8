"""Units of a log that are in no queue."""

from __future__ import annotations

from types import SimpleNamespace

import incident_states as states
import pytest

from engine.inspection import recovery, start_losses
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.golden


@pytest.fixture
def built(golden, tmp_path):
    """``built(state)``: the broker's store in the state of an incident."""
    return lambda state: states.build(golden("broker-orders"), tmp_path / "store", state)


def test_a_plan_searches_undispatched_units_in_the_whole_log(built, monkeypatch):
    """The plan searched only the last 256 MiB."""
    root = built(states.queue_folder_lost)
    progress_calls = []
    with open_store(root) as store:
        plan = recovery.plan(
            store, look=start_losses.WalkOptions(lambda position, total: progress_calls.append((position, total)))
        )
    assert plan.undispatched.examined_from == plan.log_min
    assert progress_calls == sorted(progress_calls)
    assert all(position < total for position, total in progress_calls)


def test_a_stopped_search_reports_how_far_it_came(built):
    root = built(states.queue_folder_lost)
    with open_store(root) as store:
        undispatched = recovery.plan(store).undispatched
        starts = [file.start_offset for file in store.log.files]
        done = []
        stop = SimpleNamespace(is_set=lambda: len(done) > 0)
        plan = recovery.plan(store, look=start_losses.WalkOptions(lambda position, of: done.append(position), stop))
        none = recovery.plan(
            store, look=start_losses.WalkOptions(None, SimpleNamespace(is_set=lambda: True))
        ).undispatched
        assert store.log.min_offset < plan.undispatched.examined_from
    assert plan.undispatched.examined_from in starts
    assert 0 < plan.undispatched.messages < undispatched.messages
    assert none == plan.undispatched
    assert plan.queues
