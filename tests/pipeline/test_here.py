"""Tasks in this process: what a job asks of a session is there, and it stops between two tasks."""

from __future__ import annotations

import pytest

from engine.pipeline.here import Here
from engine.pipeline.progress import Cancelled

pa = pytest.importorskip("pyarrow")


def batch(*numbers):
    return pa.record_batch({"n": list(numbers)})


def test_every_share_is_worked_on_and_counted():
    here = Here()
    rows = here.over([[1, 2], [3]], lambda share: [batch(*share)])
    assert rows.toArrow().to_pylist() == [{"n": 1}, {"n": 2}, {"n": 3}]
    (job,) = here.statusTracker().getJobIdsForGroup(None)
    stage = here.getStageInfo(here.getJobInfo(job).stageIds[0])
    assert (stage.numTasks, stage.numCompletedTasks, stage.numActiveTasks) == (2, 2, 0)


def test_it_stops_before_the_next_task():
    here = Here()

    def work(share):
        here.sparkContext.cancelAllJobs()
        return [batch(*share)]

    with pytest.raises(Cancelled):
        here.over([[1], [2]], work)
    assert here.getStageInfo(0).numCompletedTasks == 1


def test_sums_and_values_for_all_tasks():
    here = Here()
    total = here.accumulator(5)
    total.add(3)
    assert total.value == 8
    assert here.broadcast("x").value == "x"
