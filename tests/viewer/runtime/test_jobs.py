"""Work off the loop: results return to the loop's thread, jobs can be stopped, errors reach the caller."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from viewer.runtime.jobs import Cancelled, Control, Job, Jobs

Run = Callable[[Any], Any]


@pytest.fixture
def jobs(run: Run) -> Iterator[Jobs]:
    new_jobs = Jobs()
    yield new_jobs
    new_jobs.close()


def test_quick_read_runs_elsewhere_and_comes_back(run: Run, jobs: Jobs) -> None:
    assert run(jobs.quick(threading.current_thread)) is not threading.current_thread()


def test_read_calls_back_on_the_loops_thread(run: Run, jobs: Jobs) -> None:
    observed: list[object] = []

    async def ask() -> None:
        jobs.read(lambda: 7, lambda value: observed.append((value, threading.current_thread())))
        while not observed:
            await asyncio.sleep(0.01)

    run(ask())
    assert observed == [(7, threading.current_thread())]


def test_error_reaches_the_caller(run: Run, jobs: Jobs) -> None:
    def work() -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        run(jobs.quick(work))
    assert jobs.idle


def test_job_is_listed_with_its_progress_while_it_runs(run: Run, jobs: Jobs) -> None:
    observed: list[tuple[str, float | None]] = []
    reported = threading.Event()

    def look() -> None:
        observed.extend((job.title, job.part) for job in jobs.list)
        if ("Checking", 0.5) in observed:
            reported.set()

    jobs.changed.connect(look)

    def work(control: Control) -> str:
        control.report(5 << 40, 10 << 40, "half")
        reported.wait(60)
        return "done"

    assert run(jobs.run("Checking", work)) == "done"
    assert ("Checking", 0.5) in observed
    assert jobs.list == []


def test_job_can_be_stopped(run: Run, jobs: Jobs) -> None:
    def work(control: Control) -> None:
        while True:
            control.check()
            time.sleep(0.005)

    async def stop() -> None:
        task = jobs.start(jobs.run("Endless", work))
        assert task is not None
        while not jobs.list:
            await asyncio.sleep(0.005)
        jobs.list[0].cancel()
        await task

    with pytest.raises(Cancelled):
        run(stop())


def test_closing_the_pane_stops_its_job(run: Run, jobs: Jobs) -> None:
    ended = threading.Event()

    def work(control: Control) -> None:
        while not control.cancelled:
            time.sleep(0.005)
        ended.set()

    async def close() -> None:
        task = jobs.start(jobs.run("Endless", work))
        assert task is not None
        while not jobs.list:
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait([task])

    run(close())
    assert ended.wait(60)


def test_error_without_a_caller_is_reported(run: Run, jobs: Jobs) -> None:
    emitted: list[Exception] = []
    jobs.failed.connect(emitted.append)

    async def fail() -> None:
        raise ValueError("our bug")

    async def start() -> None:
        jobs.start(fail())
        while not emitted:
            await asyncio.sleep(0.005)

    run(start())
    assert str(emitted[0]) == "our bug"


@pytest.mark.parametrize(
    ("elapsed_s", "done", "total", "remaining_s", "ends"),
    [
        (0.1, 1, 1000, 0.1, True),  # too early to tell
        (10, 0, None, 1, True),  # the total is unknown
        (10, 0, 100, 60, False),
        (10, 50, 100, 11, True),
        (10, 50, 100, 9, False),
        (10, 100, 100, 0.5, True),
    ],
)
def test_a_jobs_pace_shows_whether_it_ends_in_time(
    monkeypatch: pytest.MonkeyPatch, elapsed_s: float, done: float, total: float | None, remaining_s: float, ends: bool
) -> None:
    now = 5000.0
    monkeypatch.setattr("viewer.runtime.jobs.time.monotonic", lambda: now)
    job = Job(1, "Counting", lambda: None, done, total, begun=now - elapsed_s)
    assert job.ends_by(now + remaining_s) is ends
