"""Pipeline jobs of a window in tests."""

from __future__ import annotations

from panes import wait_until

from viewer.pipeline.jobs import PipelineRuns
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState

STATS_REQUEST = JobRequest("stats", ("/data/store",))


async def end_of(runs: PipelineRuns, job: JobState) -> JobState:
    """Wait until no job runs, and return ``job``."""
    await wait_until(lambda: not (job.running or runs.running), "the job has ended")
    return job


async def run_stats(runs: PipelineRuns) -> JobState:
    """Run a job to its end."""
    return await end_of(runs, runs.start(STATS_REQUEST))
