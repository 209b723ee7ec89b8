"""The register of rules and the records that come of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.rules.catalogue import CL10, RULES
from engine.rules.findings import SEVERITIES, SNAPSHOT_FIRST, Finding, Kind, at_least, in_order, summarise


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_what_why_and_what_next(rule):
    assert re.fullmatch(r"(CL|CQ|IX|CK|CF|AB|TM|DK|RP)\d\d", rule.id)
    assert rule.severity in SEVERITIES
    assert len(rule.title) > 10
    assert rule.explanation.endswith(".")
    assert rule.next_step.endswith(".")
    assert not rule.next_step.startswith("Take a snapshot")
    assert all(re.fullmatch(r"[\w-]+/[\w-]+#\d+", issue) for issue in rule.known_issues)


def test_the_first_advice_on_a_damaged_store_is_a_snapshot():
    for rule in RULES.values():
        finding = rule.found("text")
        assert finding.next_step.startswith(SNAPSHOT_FIRST) == at_least(rule.severity, "warn")


def test_circumstances_make_a_finding_lighter():
    assert RULES["CQ10"].found("text", severity="note").severity == "note"


def test_a_blank_that_left_room_is_never_more_than_a_note():
    assert CL10.severity == "note"


def test_a_finding_becomes_the_record_of_the_contract():
    record = RULES["CL03"].found("text", "/a/file", 7, {"expected": 1}).record()
    wanted = ["type", "id", "severity", "group", "file", "offset", "message", "evidence", "knownIssues", "nextStep"]
    assert list(record) == [*wanted, "title", "explanation", "command", "causedBy"]
    assert (record["title"], record["causedBy"]) == (RULES["CL03"].title, None)


def test_a_command_names_the_store_as_a_shell_reads_it():
    assert RULES["CQ03"].found("text").of_store("/a b/s").command == "storescope dispatch '/a b/s' --to NEW"
    assert RULES["CL03"].found("text").of_store("/s").command is None


def test_what_follows_is_a_note_that_points_to_its_cause():
    follower = RULES["CF02"].found("text", caused_by="CQ10")
    assert (follower.severity, follower.caused_by, follower.command) == ("note", "CQ10", None)
    assert follower.next_step == "Do what CQ10 says."
    assert RULES["CQ08"].found("text", caused_by="CQ10").severity == "chat"


def test_a_cause_stands_right_before_what_follows_from_it():
    cause, other, lone = RULES["CQ10"].found("a"), RULES["CL03"].found("b"), CL10.found("c")
    first, second = RULES["CF02"].found("d", caused_by="CQ10"), RULES["CQ13"].found("e", caused_by="CF02")
    assert in_order([second, lone, cause, first, other]) == [other, cause, first, second, lone]
    assert in_order([first, lone]) == [first, lone]
    assert len(in_order([RULES["CQ10"].found("a", caused_by="CF02"), first])) == 2


def test_circumstances_have_their_own_step_and_command():
    rule = replace(RULES["CL07"], command="x", kinds={"empty": Kind("warn", "remove it.", "")})
    made = rule.found("text", kind="empty")
    assert (made.severity, made.next_step, made.command) == ("warn", SNAPSHOT_FIRST + "remove it.", None)
    assert rule.found("text").command == "x"
    assert rule.found("text", kind="empty", step="leave it.", command="y").command == "y"


def test_a_summary_counts_by_severity():
    findings: list[Finding] = [RULES["CL03"].found("a"), RULES["CL03"].found("b"), CL10.found("c")]
    record = summarise(findings, complete=False).record()
    assert record == {
        "type": "summary",
        "chat": 0,
        "note": 1,
        "warn": 0,
        "error": 2,
        "complete": False,
        "incident": None,
    }


def test_severities_rise():
    assert [at_least(severity, "warn") for severity in SEVERITIES] == [False, False, True, True]
