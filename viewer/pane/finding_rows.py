"""Findings as rows of a table: grouped, with the consequences of a finding folded below it. No Qt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.rules.findings import SEVERITIES, Finding, rank
from viewer.look.assets import plural_words, tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.rule_pages import GROUPS, WORDS
from viewer.pane.finding_facts import place_of, place_text, title
from viewer.runtime.places import Place
from viewer.runtime.unread import UnreadFiles
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column

COUNTS = {
    "error": plural_words("{n:,} error", "{n:,} errors"),
    "warn": plural_words("{n:,} warning", "{n:,} warnings"),
    "note": plural_words("{n:,} note", "{n:,} notes"),
    "chat": plural_words("{n:,} remark", "{n:,} remarks"),
}


@dataclass(frozen=True, slots=True)
class ToggleConsequences:
    """Request of a click on a line of folded findings: show them or hide them again."""

    rule: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding in the list, or a line that stands for the consequences of one.

    A row with ``consequences`` is such a line, below the row of their cause ``finding``.
    """

    finding: Finding
    is_first: bool  # of its group
    group_size: int
    is_consequence: bool = False  # it follows from the cause above it
    consequences: tuple[Finding, ...] = ()
    is_open: bool = False  # the consequences are listed below this line

    @property
    def place(self) -> Place | ToggleConsequences | None:
        """The place that shows the finding best."""
        return ToggleConsequences(self.finding.id) if self.consequences else place_of(self.finding)


def finding_rows(
    findings: Sequence[Finding], severities: frozenset[str], opened: frozenset[str] = frozenset()
) -> list[FindingRow]:
    """Return the findings of these severities by group, the most severe groups and findings first.

    The findings that follow from a cause are folded into one line below it. If the rule of the cause is in
    ``opened``, they are listed after that line.
    """
    shown = [finding for finding in findings if finding.severity in severities]
    followers = _followers(shown)
    follower_ids = {id(finding) for members in followers.values() for finding in members}
    groups: dict[str, list[Finding]] = {}
    for finding in shown:
        if id(finding) not in follower_ids:
            groups.setdefault(finding.group, []).append(finding)
    for members in groups.values():
        members.sort(key=rank)
    order = sorted(groups, key=lambda group: (-_severity_rank(groups[group][0]), list(GROUPS).index(group)))
    rows = []
    for group in order:
        for index, finding in enumerate(groups[group]):
            rows.append(FindingRow(finding, index == 0, len(groups[group])))
            rows += _consequence_rows(finding, tuple(followers.pop(finding.id, ())), finding.id in opened)
    return rows


def _consequence_rows(cause: Finding, followers: tuple[Finding, ...], opened: bool) -> Iterator[FindingRow]:
    if followers:
        yield FindingRow(cause, False, 0, is_consequence=True, consequences=followers, is_open=opened)
    for finding in followers if opened else ():
        yield FindingRow(finding, False, 0, is_consequence=True)


def _followers(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Map each root cause to the findings that follow from it, directly or indirectly."""
    causes = {finding.id: finding.caused_by for finding in findings}
    followers: dict[str, list[Finding]] = {}
    for finding in findings:
        root, visited = finding.caused_by, {finding.id}
        while root in causes and causes[root] in causes and root not in visited:
            visited.add(root)
            root = causes[root]
        if root in causes and root != finding.id:
            followers.setdefault(root, []).append(finding)
    return followers


def consequences_text(row: FindingRow) -> str:
    """Return ``▸ 16 consequences: CF02 16×``."""
    counts: dict[str, int] = {}
    for finding in row.consequences:
        counts[finding.id] = counts.get(finding.id, 0) + 1
    rules = ", ".join(f"{rule} {count:,}×" for rule, count in counts.items())
    summary = tr_plural("{n:,} consequence", "{n:,} consequences", n=len(row.consequences))
    return f"{'▾' if row.is_open else '▸'} {summary}: {rules}"


def unread_findings(unread: UnreadFiles) -> list[Finding]:
    """Return what could not be read as findings without a rule, as the check lists it.

    Unreadable files come first, as errors; then undecoded files, as notes.
    """
    step = tr(
        "Give this user permission to read it, or check the disk. If it is damaged or missing, restore it from a "
        "backup. Then refresh."
    )
    ask = tr("Ask a broker, or the tools of that library.")
    unreadable = [
        Finding("", "error", "disk", item.file, None, engine_words(item.reason), {}, (), step)
        for item in unread.unreadable
    ]
    return unreadable + [
        Finding("", "note", "disk", item.file, None, engine_words(item.reason), {}, (), ask)
        for item in unread.undecoded
    ]


def _severity_rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def finding_kind() -> RecordKind:
    """Return the table of findings."""
    columns = (
        Column("group", words("Part"), 100, _group, lambda row: row.finding.group, elide="never"),
        chip_column("severity", "", 28, lambda row: Chip(_worst(row) if row.finding.id else "unread")),
        Column(
            "id", words("Rule"), 50, _rule, lambda row: row.finding.id, mono=True, elide="never", tone=lambda _: "text3"
        ),
        Column(
            "offset",
            words("Place"),
            130,
            _place,
            lambda row: row.finding.offset,
            mono=True,
            jump=lambda row: None if row.consequences else row.place,
            elide="middle",
        ),
        Column(
            "message",
            words("Finding"),
            110,
            _message,
            lambda row: row.finding.message,
            jump=lambda row: row.place if row.consequences else None,
            tip=_tip,
            wrap=True,
        ),
    )

    return RecordKind(
        "finding",
        columns,
        verdict=lambda row: tr(WORDS[row.finding.severity]) if row.finding.id else tr("cannot be read"),
        record=_record,
        command=command,
    )


def _record(row: FindingRow) -> dict[str, Any]:
    if row.consequences:
        return {"type": "followers", "causedBy": row.finding.id, "findings": len(row.consequences)}
    return row.finding.record()


def command(row: FindingRow) -> list[str]:
    """Return the command that reports the same finding."""
    return ["storescope", "check", "STORE", *(["--only", row.finding.id] if row.finding.id else []), "--json"]


def _worst(row: FindingRow) -> str:
    return max((finding.severity for finding in row.consequences), key=SEVERITIES.index, default=row.finding.severity)


def _rule(row: FindingRow) -> str:
    return "" if row.consequences else row.finding.id


def _place(row: FindingRow) -> str:
    return "" if row.consequences else place_text(row.finding)


def _message(row: FindingRow) -> str:
    if row.consequences:
        return consequences_text(row)
    return f"    {title(row.finding)}" if row.is_consequence else title(row.finding)


def _tip(row: FindingRow) -> str:
    return consequences_text(row) if row.consequences else engine_words(row.finding.message)


def _group(row: FindingRow) -> str:
    if not row.is_first:
        return ""
    return f"{tr(GROUPS[row.finding.group])}  {row.group_size}"
