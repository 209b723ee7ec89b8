"""Plans of starts after a crash, as a whole."""

from __future__ import annotations

import pytest
from handmade_stores import healthy
from recovery_plans import planned


@pytest.mark.golden
def test_an_accelerated_start_begins_within_its_file_and_refuses_without_an_offset(golden):
    plain = planned(golden("late-queue-flush-5.5.1"), "5.5")
    quick = planned(golden("late-queue-flush-5.5.1"), "5.5", enableAcceleratedRecovery=True)
    assert quick.start_file == plain.start_file
    assert quick.start_offset > plain.start_offset
    refused = planned(golden("broker-crash-5.5.1"), "5.5", enableAcceleratedRecovery=True)
    assert [blocker.finding for blocker in refused.blockers] == ["CK05"]
    assert planned(golden("broker-crash-5.5.1"), "5.4", enableAcceleratedRecovery=True).will_start


def test_an_empty_log_deletes_what_the_queues_know(tmp_path):
    healthy(80).write(tmp_path)
    for path in (tmp_path / "commitlog").iterdir():
        path.unlink()
    plan = planned(tmp_path, "5.3")
    assert plan.end_reason == "the commit log has no files"
    assert plan.queues
    assert all(queue.max_offset == 0 for queue in plan.queues)
    assert plan.files_deleted
