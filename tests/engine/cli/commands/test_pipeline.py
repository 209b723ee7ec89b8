"""``pipeline``: the list of jobs and the help of each job, without Spark."""

from __future__ import annotations

import agree
import pytest

JOBS = ("stats", "verify", "rebuild", "export", "import", "trace")


def test_every_job_is_in_the_help():
    status, out, _err = agree.command("pipeline", "--help")
    assert status == 0
    assert [job for job in JOBS if job not in out] == []


@pytest.mark.parametrize("job", JOBS)
def test_each_job_explains_itself(job):
    status, out, _err = agree.command("pipeline", job, "--help")
    assert status == 0
    assert f"pipeline {job}" in out
