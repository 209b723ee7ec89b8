"""Processes of pipeline jobs: their lines reach the loop, they stop on request, and no process remains."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from panes import wait_until
from pipeline_runs import STATS_REQUEST, end_of, run_stats

from engine.sentences import Sentence
from viewer.pipeline.jobs import PipelineRuns
from viewer.pipeline.process import program
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState

Run = Callable[[Any], Any]


def test_jobs_run_the_program_that_this_is() -> None:
    assert program()[0] == sys.executable


def test_sentences_of_a_process_keep_their_templates(run: Run, runs: PipelineRuns) -> None:
    """The findings of a job were English in the Chinese window, because its records had only finished text."""
    text = "Output(as_json=True).record({'type': 'finding', 'id': 'CL12', 'message': sentence('{n} gone', n=2)})"
    code = f"from engine.cli.output import Output; from engine.sentences import sentence; {text}"
    runs.command = [sys.executable, "-c", code]
    message = run(run_stats(runs)).rules["CL12"].first_finding["message"]
    assert isinstance(message, Sentence)
    assert (message, message.id, message.params) == ("2 gone", "{n} gone", {"n": 2})


def test_a_job_that_does_not_stop_is_killed_with_its_children(run: Run, runs: PipelineRuns, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = tmp_path / "ignores_interrupts.py"
    script.write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"path = {str(child)!r}\n"
        "open(path + '.part', 'w').write(str(child.pid))\n"
        "os.replace(path + '.part', path)\n"
        "time.sleep(600)\n"
    )
    runs.command = [sys.executable, str(script)]

    async def walk() -> None:
        job = runs.start(STATS_REQUEST)
        await wait_until(child.exists)
        runs.cancel(job)
        await asyncio.sleep(0.05)
        assert job.running
        runs.cancel(job)
        await end_of(runs, job)
        assert job.status == "cancelled"
        number = int(child.read_text())
        await wait_until(lambda: not _alive(number))

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
    job = run(run_stats(runs))
    assert (job.status, job.code) == ("failed", 127)
    assert "No such file" in job.why


def test_our_own_command_line_runs_from_any_folder_and_reports_errors(
    run: Run, runs: PipelineRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine.py").write_text("raise SystemExit('the wrong engine')")
    monkeypatch.chdir(tmp_path)

    async def walk() -> JobState:
        return await end_of(runs, runs.start(JobRequest("rebuild", ("/data/store",), out=str(tmp_path))))

    job = run(walk())
    assert (job.status, job.code) == ("failed", 2)
    assert "expected a new or empty folder" in job.why


def test_a_flood_of_lines_waits_for_the_loop(run: Run, runs: PipelineRuns, tmp_path: Path) -> None:
    count = 30_000
    script = tmp_path / "flood.py"
    script.write_text(f'for n in range({count}): print(\'{{"type":"whereResult","n":%d}}\' % n)\n')
    runs.command = [sys.executable, str(script)]
    job = run(run_stats(runs))
    assert job.counts["whereResult"] == count
    assert [row["n"] for row in job.rows["whereResult"][:3]] == [0, 1, 2]
