"""The list of jobs of a window: their progress, their ends, cancelling them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pipeline_lines as lines
from panes import wait_until
from pipeline_runs import STATS_REQUEST, end_of, run_stats

from viewer.pipeline.jobs import PipelineRuns
from viewer.pipeline.state import JobState

Run = Callable[[Any], Any]


def test_the_end_of_a_window_waits_for_its_jobs(run: Run, tmp_path: Path) -> None:
    pipeline_runs = PipelineRuns()
    pipeline_runs.command = lines.player(tmp_path, lines.stats()[:1], hangs=True)

    async def walk() -> None:
        jobs = [pipeline_runs.start(STATS_REQUEST), pipeline_runs.start(STATS_REQUEST)]
        await wait_until(lambda: all(job.progress for job in jobs))
        await pipeline_runs.end()
        await wait_until(lambda: not pipeline_runs.running)
        assert [job.status for job in jobs] == ["cancelled", "cancelled"]
        pipeline_runs.forget_ended()
        assert pipeline_runs.jobs == []

    run(walk())


def test_every_line_of_a_process_arrives_and_its_end_is_signalled_once(
    run: Run, runs: PipelineRuns, tmp_path: Path
) -> None:
    stats = lines.stats()
    runs.command = lines.player(tmp_path, stats, words="one store was skipped\n")
    ends: list[JobState] = []
    runs.ended.connect(ends.append)

    job = run(run_stats(runs))
    assert job.status == "done"
    assert ends == [job]
    assert job.rows["statsHour"] == [line for line in stats if line["type"] == "statsHour"]
    assert job.summary == stats[-1]
    assert job.spark_lines == ["one store was skipped"]
    assert job.log_file == "", "an empty log file is removed"


def test_a_job_that_is_cancelled_gets_an_interrupt_and_may_clean_up(
    run: Run, runs: PipelineRuns, tmp_path: Path
) -> None:
    runs.command = lines.player(tmp_path, lines.stats()[:1], hangs=True)

    async def walk() -> None:
        job = runs.start(STATS_REQUEST)
        await wait_until(lambda: job.progress)
        runs.cancel(job)
        assert job.stopping
        await end_of(runs, job)
        assert (job.status, job.code) == ("cancelled", 130)
        assert not runs.running

    run(walk())
