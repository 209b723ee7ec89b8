"""A finding, the rule behind it, and the register of all rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["chat", "note", "warn", "error"]
Group = Literal["log", "queue", "index", "checkpoint", "config", "state", "timer", "disk"]

SEVERITIES: tuple[Severity, ...] = ("chat", "note", "warn", "error")
"""From harmless to grave."""

SNAPSHOT_FIRST = "Take a snapshot first (storescope snapshot STORE DST) and work on that; "
"""How the advice on a damaged store begins, always."""


def at_least(severity: Severity, limit: Severity) -> bool:
    """Whether ``severity`` is ``limit`` or graver."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(limit)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule saw.

    ``offset`` is in bytes: of the log where ``file`` belongs to it, else the position in the file that is named.
    ``evidence`` holds what was ``expected`` and ``found``, and the place in the words of its subject (``queueOffset``,
    ``entry``) where bytes say little.
    """

    id: str
    severity: Severity
    group: Group
    file: str | None
    offset: int | None
    message: str
    evidence: dict[str, Any]
    known_issues: tuple[str, ...]
    next_step: str

    def record(self) -> dict[str, Any]:
        """The ``finding`` record of the command line."""
        return {
            "type": "finding",
            "id": self.id,
            "severity": self.severity,
            "group": self.group,
            "file": self.file,
            "offset": self.offset,
            "message": self.message,
            "evidence": self.evidence,
            "knownIssues": list(self.known_issues),
            "nextStep": self.next_step,
        }


CAUSES = frozenset({"CL07", "CL12"})
"""Rules about files as wholes: what they find explains findings about bytes, entries and index entries."""


EMPTY_LOG = "CL12"
"""The rule about a log that is gone: it explains all others."""


def rank(one: Finding) -> tuple[int, int, str, str, int]:
    """Sorts the gravest first, and of these what explains the others."""
    cause = (one.id != EMPTY_LOG) + (one.id not in CAUSES)
    return -SEVERITIES.index(one.severity), cause, one.id, one.file or "", one.offset or 0


@dataclass(frozen=True, slots=True)
class Summary:
    """How many findings there were of each severity, in how many units; ``complete`` is false where the check was
    stopped.
    """

    counts: dict[Severity, int]
    complete: bool
    units: int = 0

    def record(self) -> dict[str, Any]:
        """The ``summary`` record of the command line."""
        counts: dict[str, Any] = {severity: self.counts[severity] for severity in SEVERITIES}
        return {"type": "summary", **counts, "complete": self.complete}


def summarise(findings: Iterable[Finding], complete: bool, units: int = 0) -> Summary:
    """Count ``findings`` by severity."""
    counts: dict[Severity, int] = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return Summary(counts, complete, units)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is looked for, how grave it is, why it happens, and what to do first."""

    id: str
    group: Group
    severity: Severity
    title: str
    explanation: str
    next_step: str
    known_issues: tuple[str, ...] = field(default=())

    def found(
        self,
        message: str,
        file: str | None = None,
        offset: int | None = None,
        evidence: dict[str, Any] | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this rule; ``severity`` where the circumstances make it lighter."""
        grave = severity or self.severity
        step = (SNAPSHOT_FIRST if at_least(grave, "warn") else "") + self.next_step
        step = step[0].upper() + step[1:]
        return Finding(self.id, grave, self.group, file, offset, message, evidence or {}, self.known_issues, step)
