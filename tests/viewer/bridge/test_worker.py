"""The worker process: streams what it finds, can be stopped, and its death is an error, not a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import worker_tasks

from viewer.bridge.jobs import Cancelled, Jobs
from viewer.bridge.worker import WorkerDied

Run = Callable[[Any], Any]


@pytest.fixture
def jobs(run: Run) -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.close()


def test_streams_items_and_gives_a_result(run: Run, jobs: Jobs) -> None:
    found: list[int] = []
    total = run(jobs.in_worker("Counting", f"{worker_tasks.__name__}:count", 5, on_items=found.extend))
    assert (found, total) == ([0, 1, 2, 3, 4], 10)


def test_runs_in_another_process_without_qt(run: Run, jobs: Jobs) -> None:
    assert run(jobs.in_worker("Looking", f"{worker_tasks.__name__}:has_qt")) is False


def test_error_of_the_work_reaches_who_waits(run: Run, jobs: Jobs) -> None:
    with pytest.raises(ValueError, match="what was wrong"):
        run(jobs.in_worker("Failing", f"{worker_tasks.__name__}:fail", "what was wrong"))


def test_can_be_stopped(run: Run, jobs: Jobs) -> None:
    async def stop() -> None:
        task = jobs.start(jobs.in_worker("Endless", f"{worker_tasks.__name__}:endless"))
        assert task is not None
        while not jobs.list or not jobs.list[0].done:
            await asyncio.sleep(0.01)
        jobs.list[0].cancel()
        await task

    with pytest.raises(Cancelled):
        run(stop())


def test_death_fails_the_work_and_the_next_request_starts_anew(run: Run, jobs: Jobs) -> None:
    with pytest.raises(WorkerDied):
        run(jobs.in_worker("Dying", f"{worker_tasks.__name__}:die"))
    assert run(jobs.in_worker("Counting", f"{worker_tasks.__name__}:count", 3)) == 3


def test_requests_wait_while_the_worker_is_held(run: Run, jobs: Jobs) -> None:
    """The process must not start between a click and the first rows."""
    jobs.worker.hold()

    async def ask() -> int:
        task = asyncio.ensure_future(jobs.in_worker("Counting", f"{worker_tasks.__name__}:count", 4))
        await asyncio.sleep(0.2)
        assert not jobs.worker.alive
        jobs.worker.release()
        return int(await task)

    assert run(ask()) == 6
