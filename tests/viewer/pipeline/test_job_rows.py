"""Jobs as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline_lines import job

from viewer.pipeline.job_rows import JobList, JobRole


def test_the_list_keeps_qts_promises_while_jobs_come_and_go(qtbot: Any, qtmodeltester: Any) -> None:
    model = JobList(lambda item: (item.request.job, Path(item.request.places[0]).name, item.status))
    qtmodeltester.data_display_may_return_none = True
    qtmodeltester.check(model)
    jobs = [job(number=number) for number in range(4)]
    for shown in (jobs[:1], jobs[1::-1], [jobs[3], *jobs[1::-1]], [jobs[3], jobs[0]], jobs[2:3], []):
        model.set_jobs(shown)
        assert [model.index(row).data(JobRole) for row in range(model.rowCount())] == shown
    model.set_jobs(jobs)
    jobs[1].end(0, 101.0)
    with qtbot.waitSignal(model.dataChanged):
        model.changed(jobs[1])
    data = model.index(1).data(11)
    assert data.startswith("done. stats ")
