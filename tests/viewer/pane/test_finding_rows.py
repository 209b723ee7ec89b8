"""Findings are grouped, the gravest first, and consequences are folded below their cause."""

from __future__ import annotations

from engine.rules.catalogue import RULES
from engine.rules.findings import SEVERITIES, Finding
from viewer.pane.finding_rows import ToggleConsequences, consequences_text, finding_rows


def finding(id_: str, file: str | None, offset: int | None = None, **evidence: object) -> Finding:
    return RULES[id_].finding("message", file, offset, evidence)


def test_a_cause_comes_first() -> None:
    findings = [
        finding("CL01", "/s/commitlog/0", 5),
        finding("CL10", "/s/commitlog/0", 4),
        finding("CL07", "/s/commitlog/9", 9),
    ]
    assert [row.finding.id for row in finding_rows(findings, frozenset(SEVERITIES))] == ["CL07", "CL01", "CL10"]


def test_findings_are_grouped_with_the_gravest_first() -> None:
    log = "/s/commitlog/00000000000000000000"
    findings = [finding("CQ08", log, 5), finding("CL03", log, 9), finding("AB01", "/s/abort")]
    rows = finding_rows(findings, frozenset(SEVERITIES))
    assert [row.finding.id for row in rows] == ["CL03", "AB01", "CQ08"]
    assert all(row.is_first and row.group_size == 1 for row in rows)
    assert [row.finding.id for row in finding_rows(findings, frozenset({"error"}))] == ["CL03"]


def test_consequences_are_folded_below_their_cause() -> None:
    log, queue = "/s/commitlog/00000000000000000000", "/s/consumequeue/T/0"
    lost, foreign_entry = finding("CQ03", queue, 5), finding("IX03", "/s/index/20261121081849110", 9)
    findings = [
        finding("CL07", log, 9),
        finding("AB01", "/s/abort"),
        lost.follows("CL07"),
        foreign_entry.follows("CQ03"),
    ]
    rows = finding_rows(findings, frozenset(SEVERITIES))
    assert [(row.finding.id, len(row.consequences)) for row in rows] == [("CL07", 0), ("CL07", 2), ("AB01", 0)]
    assert consequences_text(rows[1]) == "▸ 2 consequences: CQ03 1×, IX03 1×"
    assert rows[1].place == ToggleConsequences("CL07")
    opened = finding_rows(findings, frozenset(SEVERITIES), frozenset({"CL07"}))
    assert [row.finding.id for row in opened] == ["CL07", "CL07", "CQ03", "IX03", "AB01"]
    assert consequences_text(opened[1]).startswith("▾")
    alone = finding_rows(findings, frozenset({"note"}))
    assert [row.finding.id for row in alone] == ["CQ03", "CQ03"], "without its cause a follower leads its own"
