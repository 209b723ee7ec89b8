"""What is known of a job, line by line."""

from __future__ import annotations

import pipeline_lines as lines
import pytest
from pipeline_lines import job, told

from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import MOST_ROWS

FAR = (1 << 62) + 3


def test_stages_become_cards_in_their_order_with_what_was_tried_again() -> None:
    made = told(lines.verify([], ended=False), JobRequest("verify", ("/s",)), code=None)
    start, first, second, third = made.cards
    assert (start.state, start.seconds) == ("done", 1.0)
    assert (first.state, first.done, first.tasks, first.again) == ("done", 152, 152, 1)
    assert (second.state, second.done, second.running) == ("running", 58, 8)
    assert third.state == "waits"
    assert made.tasks == (210, 260)
    assert made.part == pytest.approx(58 / 108)
    assert made.seconds_left == pytest.approx(9.8 * 50 / 58)
    made.end(-9, 120.0)
    assert (made.status, second.state) == ("failed", "failed")


def test_findings_are_counted_by_rule_and_kept_up_to_a_limit() -> None:
    one = {"type": "finding", "id": "CQ02", "severity": "error", "group": "queue", "offset": FAR}
    made = job(JobRequest("verify", ("/s",)))
    made.take_all([{**one, "offset": FAR + n} for n in range(MOST_ROWS + 7)], 101.0)
    rule = made.rules["CQ02"]
    assert (rule.count, rule.first["offset"]) == (MOST_ROWS + 7, FAR)
    assert len(made.rows["finding"]) == MOST_ROWS
    assert made.severities == {"error": MOST_ROWS + 7}


@pytest.mark.parametrize(
    ("code", "stopping", "standing"),
    [(0, False, "done"), (1, False, "done"), (3, False, "failed"), (130, False, "cancelled"), (-9, True, "cancelled")],
)
def test_how_a_job_ended(code: int, stopping: bool, standing: str) -> None:
    made = job()
    made.take(lines.summary("stats"), 101.0)
    made.stopping = stopping
    made.end(code, 102.0)
    assert made.status == standing


def test_a_failure_says_its_clear_line() -> None:
    made = job()
    for line in ("a warning", "storescope: file: expected 3 bytes, found 2", "something behind it"):
        made.say(line)
    made.end(3, 102.0)
    assert made.why == "file: expected 3 bytes, found 2"
    assert made.cards[0].state == "failed"
