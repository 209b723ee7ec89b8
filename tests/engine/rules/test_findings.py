"""A finding: its record, its command, its severity."""

from __future__ import annotations

import pytest

from engine.rules.catalogue import CL10, RULES, may_speak
from engine.rules.findings import ALL, INDEX, SEVERITIES, Finding, Register, at_least, part_of, summarise


def test_a_finding_becomes_the_record_of_the_contract():
    record = RULES["CL03"].finding("text", "/a/file", 7, {"expected": 1}).record()
    expected = ["type", "id", "severity", "group", "file", "offset", "message", "evidence", "knownIssues", "nextStep"]
    assert list(record) == [*expected, "title", "explanation", "command", "causedBy"]
    assert (record["title"], record["causedBy"]) == (RULES["CL03"].title, None)


def test_a_command_quotes_the_store_for_a_shell():
    assert RULES["CQ03"].finding("text").of_store("/a b/s").command == "storescope dispatch '/a b/s' --to NEW"
    assert RULES["CL03"].finding("text").of_store("/s").command is None


def test_a_summary_counts_by_severity():
    findings: list[Finding] = [RULES["CL03"].finding("a"), RULES["CL03"].finding("b"), CL10.finding("c")]
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


# A rule is reported only if all its evidence was read.


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("/s/commitlog/000", "log"),
        ("/s/consumequeue/Orders/0/000", "queue"),
        ("/s/consumequeue_ext/a", "queue"),
        ("/s/index/2024", "index"),
        ("/s/config/topics.json", "config"),
        ("/s/checkpoint", "checkpoint"),
        ("/s/lock", "state"),
        ("/s/timerwheel", "timer"),
        ("/s/stray", "other"),
    ],
)
def test_a_file_belongs_to_the_part_of_its_folder(file, part):
    assert part_of(file, "/s", ["/s/commitlog", "/logs"]) == {part}


def test_a_log_elsewhere_is_the_log_and_the_store_s_own_folder_is_everything():
    assert part_of("/logs/000", "/s", ["/logs"]) == {"log"}
    assert part_of("/logs", "/s", ["/logs"]) == {"log"}
    assert part_of("/s", "/s", ["/logs"]) == ALL
    assert part_of("/", "/s", ["/logs"]) == ALL
    assert part_of("/store2/lock", "/s", ["/logs"]) == ALL


def test_unread_parts_suppress_rules_unlisted_rules_first():
    assert may_speak("CL01", ALL)
    assert not may_speak("CL07", frozenset({"log"}))
    assert may_speak("CL07", frozenset({"index"}))
    assert not may_speak("ZZ99", frozenset({"other"}))
    assert may_speak("ZZ99", frozenset())


# Rules are registered under their ids, in the group of their first two letters.


def test_a_rule_is_registered_by_id_and_group():
    rules = Register()
    sample = rules.add("IX99", "warn", "Title", "Why.", "What next.", "#1", needs=INDEX)
    assert rules["IX99"] is sample
    assert (sample.id, sample.group, sample.severity) == ("IX99", "index", "warn")


def test_letters_that_are_no_group_are_refused():
    with pytest.raises(KeyError):
        Register().add("ZZ01", "warn", "Title", "Why.", "What next.", needs=INDEX)
