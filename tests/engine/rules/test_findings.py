"""A finding: its record, its command, its severity."""

from __future__ import annotations

from engine.rules.catalogue import CL10, RULES
from engine.rules.findings import SEVERITIES, Finding, at_least, summarise


def test_a_finding_becomes_the_record_of_the_contract():
    record = RULES["CL03"].found("text", "/a/file", 7, {"expected": 1}).record()
    wanted = ["type", "id", "severity", "group", "file", "offset", "message", "evidence", "knownIssues", "nextStep"]
    assert list(record) == [*wanted, "title", "explanation", "command", "causedBy"]
    assert (record["title"], record["causedBy"]) == (RULES["CL03"].title, None)


def test_a_command_names_the_store_as_a_shell_reads_it():
    assert RULES["CQ03"].found("text").of_store("/a b/s").command == "storescope dispatch '/a b/s' --to NEW"
    assert RULES["CL03"].found("text").of_store("/s").command is None


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
