"""Consequences of a finding are notes below it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.catalogue import CL10, RULES
from engine.rules.causes import what_happened, worst_first
from engine.rules.findings import Finding, at_least, in_order


def test_a_consequence_is_a_note_that_points_to_its_cause():
    follower = RULES["CF02"].finding("text", caused_by="CQ10")
    assert (follower.severity, follower.caused_by, follower.command) == ("note", "CQ10", None)
    assert follower.next_step == "Do what CQ10 says."
    assert RULES["CQ08"].finding("text", caused_by="CQ10").severity == "chat"


def test_a_cause_comes_right_before_its_consequences():
    cause, grave_finding, lone = RULES["CQ10"].finding("a"), RULES["CL03"].finding("b"), CL10.finding("c")
    consequence, second_consequence = (
        RULES["CF02"].finding("d", caused_by="CQ10"),
        RULES["CQ13"].finding("e", caused_by="CF02"),
    )
    assert in_order([second_consequence, lone, cause, consequence, grave_finding]) == [
        grave_finding,
        cause,
        consequence,
        second_consequence,
        lone,
    ]
    assert in_order([consequence, lone]) == [consequence, lone]
    assert len(in_order([RULES["CQ10"].finding("a", caused_by="CF02"), consequence])) == 2


def test_an_error_is_named_before_a_warning_that_could_explain_more():
    """The first line about a store with a lost compacted queue named a topic that topics.json lacked, a warning."""
    warning, error = RULES["CQ14"].finding("no topic"), RULES["CM03"].finding("files are lost")
    assert (warning.severity, error.severity) == ("warn", "error")
    assert worst_first([warning, error]) == [error, warning]
    assert what_happened([warning, error], crashed=False).endswith("(CM03).")


pytestmark = pytest.mark.golden


@pytest.fixture
def store(golden, tmp_path) -> Callable[..., Path]:
    """Copy a broker's store to spoil it. The timer wheel is left out because these tests do not need it."""

    def copy(name: str = "broker-orders") -> Path:
        path = tmp_path / "the store"
        return Path(shutil.copytree(golden(name), path, ignore=shutil.ignore_patterns("timerwheel")))

    return copy


def grave(root: Path, least: str = "warn") -> list[Finding]:
    with open_store(root) as opened:
        return [
            finding for finding in check(opened) if isinstance(finding, Finding) and at_least(finding.severity, least)
        ]


def test_the_topics_table_is_repaired_first(store):
    root = store()
    for name in ("consumerOffset.json", "topics.json", "subscriptionGroup.json"):
        (root / "config" / name).write_bytes(b"{")
        (root / "config" / f"{name}.bak").unlink(missing_ok=True)
    commands = [item.command or "" for item in worst_first(grave(root)) if item.id == "CF01"]
    named = [command.split()[-1].rsplit("/", 1)[1] for command in commands]
    assert named == ["topics.json", "subscriptionGroup.json", "consumerOffset.json"]
