"""The state of a job, line by line."""

from __future__ import annotations

import pipeline_lines as lines
import pytest
from pipeline_lines import ended_job, job

from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import MAX_ROWS

FAR = (1 << 62) + 3


def test_stages_become_cards_in_order_with_retried_tasks() -> None:
    state = ended_job(lines.verify([], ended=False), JobRequest("verify", ("/s",)), code=None)
    start, stage_1, stage_2, stage_3 = state.cards
    assert (start.state, start.seconds) == ("done", 1.0)
    assert (stage_1.state, stage_1.done, stage_1.tasks, stage_1.retried) == ("done", 152, 152, 1)
    assert (stage_2.state, stage_2.done, stage_2.running) == ("running", 58, 8)
    assert stage_3.state == "waits"
    assert state.tasks == (210, 260)
    assert state.part == pytest.approx(58 / 108)
    assert state.seconds_left == pytest.approx(9.8 * 50 / 58)
    state.end(-9, 120.0)
    assert (state.status, stage_2.state) == ("failed", "failed")


def test_findings_are_counted_by_rule_and_kept_up_to_a_limit() -> None:
    item = {"type": "finding", "id": "CQ02", "severity": "error", "group": "queue", "offset": FAR}
    new_job = job(JobRequest("verify", ("/s",)))
    new_job.take_all([{**item, "offset": FAR + n} for n in range(MAX_ROWS + 7)], 101.0)
    rule = new_job.rules["CQ02"]
    assert (rule.count, rule.first_finding["offset"]) == (MAX_ROWS + 7, FAR)
    assert len(new_job.rows["finding"]) == MAX_ROWS
    assert new_job.severities == {"error": MAX_ROWS + 7}


@pytest.mark.parametrize(
    ("code", "stopping", "standing"),
    [(0, False, "done"), (1, False, "done"), (3, False, "failed"), (130, False, "cancelled"), (-9, True, "cancelled")],
)
def test_the_status_of_an_ended_job(code: int, stopping: bool, standing: str) -> None:
    new_job = job()
    new_job.take(lines.summary("stats"), 101.0)
    new_job.stopping = stopping
    new_job.end(code, 102.0)
    assert new_job.status == standing


def test_a_failure_has_a_one_line_message() -> None:
    new_job = job()
    for line in ("a warning", "storescope: file: expected 3 bytes, found 2", "something behind it"):
        new_job.say(line)
    new_job.end(3, 102.0)
    assert new_job.why == "file: expected 3 bytes, found 2"
    assert new_job.cards[0].state == "failed"
