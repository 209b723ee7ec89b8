"""Progress of a job: stages as Spark reports them, only when something changed, and a stop that takes effect."""

from __future__ import annotations

import pytest

from engine.pipeline.progress import Cancelled, Progress, Stage, Watch
from engine.pipeline.tasks import LocalRunner


def test_a_record_has_the_fields_of_a_progress_bar():
    stages = (Stage(1, "toArrow", 3, 8, 1, 2), Stage(2, "count", 0, 4))
    now = Progress("stats", "counting", stages, 5_000, 1 << 20, 4 << 20, 2.0)
    assert (now.done, now.tasks, now.failed, now.units_per_second) == (3, 12, 2, 2500.0)
    record = now.record()
    assert (record["type"], record["totalBytes"], record["stages"][0]["triedAgain"]) == ("progress", 4 << 20, 2)
    assert Progress("j", "", (), 5, 0, 0, 0.0).units_per_second == 0.0


def test_stages_and_counts_of_a_job_are_seen():
    runner = LocalRunner()
    with Watch(runner, "stats") as watch:
        watch.step("counting", 100)
        runner.over([[1], [2]], lambda _share: ())
        watch.counter.add(7, 640)
        watch.counter.step_over(9)
        assert watch.tasks == 2
        now = watch.now()
    assert (now.step, now.units, now.bytes, now.total_bytes) == ("counting", 7, 640, 100)
    assert [(stage.done, stage.tasks) for stage in now.stages] == [(2, 2)]
    assert watch.tried_again == 0


def test_tasks_of_earlier_jobs_do_not_count():
    runner = LocalRunner()
    runner.over([[1]], lambda _share: ())
    with Watch(runner, "stats") as watch:
        runner.over([[1], [2]], lambda _share: ())
        assert watch.tasks == 2


def test_a_job_that_is_stopped_begins_no_step():
    with Watch(LocalRunner(), "stats") as watch:
        watch.cancel()
        assert watch.cancelled
        with pytest.raises(Cancelled):
            watch.step("next")
