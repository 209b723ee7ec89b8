"""The register of rules and the records that come of it."""

from __future__ import annotations

import re

import pytest

from engine.rules.catalogue import CL10, RULES
from engine.rules.findings import SEVERITIES, SNAPSHOT_FIRST, Finding, at_least, summarise


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_what_why_and_what_next(rule):
    assert re.fullmatch(r"(CL|CQ|IX|CK|CF|AB|TM|DK)\d\d", rule.id)
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
    assert list(record) == wanted


def test_a_summary_counts_by_severity():
    findings: list[Finding] = [RULES["CL03"].found("a"), RULES["CL03"].found("b"), CL10.found("c")]
    record = summarise(findings, complete=False).record()
    assert record == {"type": "summary", "chat": 0, "note": 1, "warn": 0, "error": 2, "complete": False}


def test_severities_rise():
    assert [at_least(severity, "warn") for severity in SEVERITIES] == [False, False, True, True]
