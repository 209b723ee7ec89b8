"""The table of rules and the records built from it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.rules.catalogue import CL10, RULES
from engine.rules.findings import SEVERITIES, SNAPSHOT_FIRST, Kind, at_least


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_has_a_title_a_reason_and_a_step(rule):
    assert re.fullmatch(r"(CL|CM|TS|LT|CQ|IX|CK|CF|AB|TM|DK|DL|RP)\d\d", rule.id)
    assert rule.severity in SEVERITIES
    assert len(rule.title) > 10
    assert rule.explanation.endswith(".")
    assert rule.next_step.endswith(".")
    assert not rule.next_step.startswith("Take a snapshot")
    assert all(re.fullmatch(r"[\w-]+/[\w-]+#\d+", issue) for issue in rule.known_issues)


def test_the_first_advice_on_a_damaged_store_is_a_snapshot():
    for rule in RULES.values():
        finding = rule.finding("text")
        assert finding.next_step.startswith(SNAPSHOT_FIRST) == at_least(rule.severity, "warn")


def test_circumstances_make_a_finding_lighter():
    assert RULES["CQ10"].finding("text", severity="note").severity == "note"


def test_an_early_blank_is_never_more_than_a_note():
    assert CL10.severity == "note"


def test_circumstances_have_their_own_step_and_command():
    rule = replace(RULES["CL07"], command="x", kinds={"empty": Kind("warn", "remove it.", "")})
    sample = rule.finding("text", kind="empty")
    assert (sample.severity, sample.next_step, sample.command) == ("warn", SNAPSHOT_FIRST + "remove it.", None)
    assert rule.finding("text").command == "x"
    assert rule.finding("text", kind="empty", step="leave it.", command="y").command == "y"
