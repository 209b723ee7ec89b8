"""Jobs of a window."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pipeline_lines as lines

from viewer.pipeline.jobs import PipelineRuns
from viewer.pipeline.request import Wish

Run = Callable[[Any], Any]


WISH = Wish("stats", ("/data/store",))


async def until(true: Callable[[], object], seconds: float = 50) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def test_the_end_of_a_window_waits_for_its_jobs(run: Run, tmp_path: Path) -> None:
    made = PipelineRuns()
    made.command = lines.player(tmp_path, lines.stats()[:1], hangs=True)

    async def walk() -> None:
        jobs = [made.start(WISH), made.start(WISH)]
        await until(lambda: all(job.progress for job in jobs))
        await made.end()
        await until(lambda: not made.running)
        assert [job.standing for job in jobs] == ["cancelled", "cancelled"]
        made.forget_ended()
        assert made.jobs == []

    run(walk())
