"""Jobs of a window.

Processes of pipeline jobs: their lines reach the loop, they stop on request, and no process remains.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pipeline_lines as lines
import pytest

from engine.sentences import Sentence
from viewer.pipeline.jobs import PipelineRuns
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState

Run = Callable[[Any], Any]


WISH = JobRequest("stats", ("/data/store",))


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def test_the_end_of_a_window_waits_for_its_jobs(run: Run, tmp_path: Path) -> None:
    pipeline_runs = PipelineRuns()
    pipeline_runs.command = lines.player(tmp_path, lines.stats()[:1], hangs=True)

    async def walk() -> None:
        jobs = [pipeline_runs.start(WISH), pipeline_runs.start(WISH)]
        await until(lambda: all(job.progress for job in jobs))
        await pipeline_runs.end()
        await until(lambda: not pipeline_runs.running)
        assert [job.status for job in jobs] == ["cancelled", "cancelled"]
        pipeline_runs.forget_ended()
        assert pipeline_runs.jobs == []

    run(walk())


@pytest.fixture
def runs(run: Run) -> Iterator[PipelineRuns]:
    pipeline_runs = PipelineRuns()
    yield pipeline_runs
    run(pipeline_runs.end())


async def ended(runs: PipelineRuns, job: JobState, seconds: float = 60) -> JobState:
    end = time.monotonic() + seconds
    while job.running or runs.running:
        assert time.monotonic() < end, "the job goes on"
        await asyncio.sleep(0.01)
    return job


def test_every_line_of_a_process_arrives_and_its_end_is_signalled_once(
    run: Run, runs: PipelineRuns, tmp_path: Path
) -> None:
    stats = lines.stats()
    runs.command = lines.player(tmp_path, stats, words="one store was skipped\n")
    ends: list[JobState] = []
    runs.ended.connect(ends.append)

    job = run(_started(runs))
    assert job.status == "done"
    assert ends == [job]
    assert job.rows["statsHour"] == [line for line in stats if line["type"] == "statsHour"]
    assert job.summary == stats[-1]
    assert job.spark_lines == ["one store was skipped"]
    assert job.log_file == ""
    """Nobody wrote to the log: it was taken away."""


def test_sentences_of_a_process_keep_their_templates(run: Run, runs: PipelineRuns) -> None:
    """The findings of a job were English in the Chinese window, because its records had only finished text."""
    text = "Output(as_json=True).record({'type': 'finding', 'id': 'CL12', 'message': sentence('{n} gone', n=2)})"
    code = f"from engine.cli.output import Output; from engine.sentences import sentence; {text}"
    runs.command = [sys.executable, "-c", code]
    message = run(_started(runs)).rules["CL12"].first_finding["message"]
    assert isinstance(message, Sentence)
    assert (message, message.id, message.params) == ("2 gone", "{n} gone", {"n": 2})


async def _started(runs: PipelineRuns) -> JobState:
    return await ended(runs, runs.start(WISH))


def test_a_job_that_is_cancelled_gets_an_interrupt_and_may_clean_up(
    run: Run, runs: PipelineRuns, tmp_path: Path
) -> None:
    runs.command = lines.player(tmp_path, lines.stats()[:1], hangs=True)

    async def walk() -> None:
        job = runs.start(WISH)
        await until(lambda: job.progress)
        runs.cancel(job)
        assert job.stopping
        await ended(runs, job)
        assert (job.status, job.code) == ("cancelled", 130)
        assert not runs.running

    run(walk())


def test_a_job_that_does_not_stop_is_killed_with_its_children(run: Run, runs: PipelineRuns, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = tmp_path / "deaf.py"
    script.write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "two = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"there = {str(child)!r}\n"
        "open(there + '.part', 'w').write(str(two.pid))\n"
        "os.replace(there + '.part', there)\n"
        "time.sleep(600)\n"
    )
    runs.command = [sys.executable, str(script)]

    async def walk() -> None:
        job = runs.start(WISH)
        await until(child.exists)
        runs.cancel(job)
        await asyncio.sleep(0.05)
        assert job.running
        runs.cancel(job)
        await ended(runs, job)
        assert job.status == "cancelled"
        number = int(child.read_text())
        await until(lambda: not _alive(number))

    run(walk())


def _alive(number: int) -> bool:
    """Return True if a process runs; a zombie does not."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{number}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_missing_program_is_a_one_line_failure(run: Run, runs: PipelineRuns, tmp_path: Path) -> None:
    runs.command = [str(tmp_path / "no-such-program")]
    job = run(_started(runs))
    assert (job.status, job.code) == ("failed", 127)
    assert "No such file" in job.why


def test_our_own_command_line_runs_from_any_folder_and_reports_errors(
    run: Run, runs: PipelineRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine.py").write_text("raise SystemExit('the wrong engine')")
    monkeypatch.chdir(tmp_path)

    async def walk() -> JobState:
        return await ended(runs, runs.start(JobRequest("rebuild", ("/data/store",), out=str(tmp_path))))

    job = run(walk())
    assert (job.status, job.code) == ("failed", 2)
    assert "expected a new or empty folder" in job.why


def test_a_flood_of_lines_waits_for_the_loop(run: Run, runs: PipelineRuns, tmp_path: Path) -> None:
    count = 30_000
    script = tmp_path / "flood.py"
    script.write_text(f'for n in range({count}): print(\'{{"type":"whereResult","n":%d}}\' % n)\n')
    runs.command = [sys.executable, str(script)]
    job = run(_started(runs))
    assert job.counts["whereResult"] == count
    assert [row["n"] for row in job.rows["whereResult"][:3]] == [0, 1, 2]
