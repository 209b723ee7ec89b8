"""A finding, the rule behind it, and the register of all rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from engine.english import capital
from engine.releases import Release, name_next_start
from engine.sentences import sentence

# Parts of a store, and the parts that a rule depends on: if one could not be read, the rule stays silent.
#
# A rule about bytes that were read needs none. A conclusion such as "this is missing" needs the complete part: an
# unreadable file may contain it.

Part = Literal["log", "queue", "index", "checkpoint", "config", "state", "timer", "other"]
Parts = frozenset[Part]

SEEN: Parts = frozenset()
LOG: Parts = frozenset({"log"})
QUEUE: Parts = frozenset({"queue"})
BOTH: Parts = LOG | QUEUE
INDEX: Parts = frozenset({"index"})
CHECKPOINT: Parts = frozenset({"checkpoint"})
CONFIG: Parts = frozenset({"config"})
STATE: Parts = frozenset({"state"})
TIMER: Parts = frozenset({"timer"})

_PARTS: dict[str, Part] = {
    "commitlog": "log",
    "consumequeue": "queue",
    "batchconsumequeue": "queue",
    "consumequeue_ext": "queue",
    "index": "index",
    "config": "config",
    "checkpoint": "checkpoint",
    "abort": "state",
    "abort.bak": "state",
    "lock": "state",
    "timerwheel": "timer",
    "timerlog": "timer",
}
ALL: Parts = frozenset({*_PARTS.values(), "other"})


def part_of(file: str, root: str, log_folders: Iterable[str]) -> Parts:
    """Return the part of the store that ``file`` belongs to; all parts for the store's folder and folders above it."""
    if any(file == folder or file.startswith(f"{folder}/") for folder in log_folders):
        return LOG
    if not file.startswith(f"{root}/"):
        return ALL
    name = file[len(root) + 1 :].split("/", 1)[0]
    return frozenset({_PARTS.get(name, "other")})


Severity = Literal["chat", "note", "warn", "error"]
Group = Literal["log", "queue", "index", "checkpoint", "config", "state", "timer", "disk"]

SEVERITIES: tuple[Severity, ...] = ("chat", "note", "warn", "error")
"""From harmless to serious."""

SNAPSHOT_FIRST = sentence("Take a snapshot first (storescope snapshot STORE DST) and work on that; ")
"""Beginning of every step for a damaged store."""
STORE = "{store}"
"""Placeholder for the store's path in a rule's command."""
_STORESCOPE_COMMAND = re.compile(rf"storescope [a-z]+ {re.escape(STORE)}(?![^ ])")


def at_least(severity: Severity, limit: Severity) -> bool:
    """Return True if ``severity`` is ``limit`` or more serious."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(limit)


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that a rule reports.

    ``offset`` is in bytes: of the log if ``file`` belongs to it, else the position in ``file``. ``evidence`` holds the
    ``expected`` and ``found`` values and further details of the place (``queueOffset``, ``entry``). ``title``
    and ``explanation`` are the rule's. ``command`` is the command to type, with the store's path quoted for a shell.
    ``caused_by`` is the rule whose finding explains this one; ``alone`` is the finding as it is reported if that
    rule is not checked. ``kind`` is the variant of the rule.
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
    title: str = ""
    explanation: str = ""
    command: str | None = None
    caused_by: str | None = None
    alone: Finding | None = field(default=None, repr=False, compare=False)
    kind: str = field(default="", compare=False)

    def of_store(self, path: str, config: str | None = None) -> Finding:
        """Return the finding with the store's path, and the configuration options of the check, in its command."""
        if self.command is None or STORE not in self.command:
            return self
        return replace(self, command=of_store(self.command, path, config))

    def of_release(self, release: Release) -> Finding:
        """Return the finding with the name of the release in each sentence about the next start."""
        happened = self.evidence.get(HAPPENED)
        named = {} if happened is None else {HAPPENED: name_next_start(str(happened), release)}
        return replace(
            self,
            message=name_next_start(self.message, release),
            next_step=name_next_start(self.next_step, release),
            explanation=name_next_start(self.explanation, release),
            evidence={**self.evidence, **named},
        )

    def follows(self, cause: str) -> Finding:
        """Return this finding as a consequence of rule ``cause``: at most a note, and its step refers to the cause."""
        lower: Severity = "note" if at_least(self.severity, "note") else self.severity
        step = sentence("Do what {rule} says.", rule=cause)
        alone = self.alone or self
        return replace(self, severity=lower, next_step=step, command=None, caused_by=cause, alone=alone)

    def record(self) -> dict[str, Any]:
        """Return the ``finding`` record of the command line."""
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
            "title": self.title,
            "explanation": self.explanation,
            "command": self.command,
            "causedBy": self.caused_by,
        }


def of_store(command: str, path: str, config: str | None = None) -> str:
    """Return ``command`` with the store's path in it; a storescope command also gets the options ``config``."""
    if config is not None:
        command = _STORESCOPE_COMMAND.sub(lambda match: f"{match[0]} {config}", command)
    return command.replace(STORE, shlex.quote(path))


CAUSES = frozenset({"CL07", "CL12", "CL14", "DK04"})
"""Rules about whole files: their findings explain findings about bytes, entries and index entries."""

HAPPENED = "happened"
"""Key of the evidence with a clause that says what happened, and where: the beginning of the incident's text."""
STORED_FROM, STORED_TO = "storedFrom", "storedTo"
"""Keys of the evidence with the store times (ms) before and after a place; equal for a unit with its own store time."""
LEFT_OUT = "leftOut"
"""Key of the evidence with the number of units that no start dispatches."""

RESTORABLE = "restorable"
"""Key of the evidence that the right bytes exist elsewhere and should be restored before anything is copied."""

EMPTY_LOG = "CL12"
"""The rule about a missing log: it explains all others."""


def rank(finding: Finding) -> tuple[int, int, str, str, int]:
    """Return the sort key of a finding: most serious first, causes before other findings."""
    cause = (finding.id != EMPTY_LOG) + (finding.id not in CAUSES)
    return -SEVERITIES.index(finding.severity), cause, finding.id, finding.file or "", finding.offset or 0


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings, most serious first.

    Consequences directly follow the first finding of the rule that causes them.
    """
    ranked = sorted(findings, key=rank)
    ids = {finding.id for finding in ranked}
    followers: dict[str, list[Finding]] = {}
    independent = []
    for finding in ranked:
        if finding.caused_by in ids and finding.caused_by != finding.id:
            followers.setdefault(finding.caused_by or "", []).append(finding)
        else:
            independent.append(finding)
    ordered: list[Finding] = []
    for finding in independent:
        ordered.extend(_with_followers(finding, followers))
    return ordered + [finding for cycle in followers.values() for finding in cycle]


def _with_followers(finding: Finding, followers: dict[str, list[Finding]]) -> Iterator[Finding]:
    """Yield ``finding`` and its direct and indirect consequences; removes those from ``followers``."""
    yield finding
    for follower in followers.pop(finding.id, []):
        yield from _with_followers(follower, followers)


@dataclass(frozen=True, slots=True)
class Summary:
    """Number of findings of each severity, and the number of units.

    ``complete`` is False if the check was stopped. ``incident`` is the interpretation of all findings
    (``inspection.check.incident``), None if nothing is wrong.
    """

    counts: dict[Severity, int]
    complete: bool
    units: int = 0
    incident: dict[str, Any] | None = None

    def record(self) -> dict[str, Any]:
        """Return the ``summary`` record of the command line."""
        counts: dict[str, Any] = {severity: self.counts[severity] for severity in SEVERITIES}
        return {"type": "summary", **counts, "complete": self.complete, "incident": self.incident}


def summarise(findings: Iterable[Finding], complete: bool, units: int = 0) -> Summary:
    """Count ``findings`` by severity."""
    counts: dict[Severity, int] = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return Summary(counts, complete, units)


class Kind(NamedTuple):
    """Variant of a rule's findings; None keeps the rule's value. A ``command`` of "" removes the rule's."""

    severity: Severity | None = None
    step: str | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the check: its subject, its severity, the explanation, the first step, and the command for it."""

    id: str
    group: Group
    severity: Severity
    title: str
    explanation: str
    next_step: str
    known_issues: tuple[str, ...] = field(default=())
    command: str | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    needs: Parts = ALL
    """Parts of a store that must all be read before the rule may report."""

    def finding(
        self,
        message: str,
        file: str | None = None,
        offset: int | None = None,
        evidence: dict[str, Any] | None = None,
        severity: Severity | None = None,
        *,
        kind: str = "",
        step: str | None = None,
        command: str | None = None,
        caused_by: str | None = None,
    ) -> Finding:
        """Make a finding of this rule.

        ``kind`` is one of :attr:`kinds`; ``severity``, ``step`` and ``command`` replace its values. With ``caused_by``
        it is a consequence of a finding of that rule.
        """
        of_kind = self.kinds[kind] if kind else Kind()
        final_severity = severity or of_kind.severity or self.severity
        first_step = sentence(step or of_kind.step or self.next_step)
        final_command = next(
            (candidate for candidate in (command, of_kind.command, self.command) if candidate is not None), None
        )
        advice = SNAPSHOT_FIRST + first_step if at_least(final_severity, "warn") else capital(first_step)
        finding = Finding(
            self.id,
            final_severity,
            self.group,
            file,
            offset,
            capital(message),
            evidence or {},
            self.known_issues,
            advice,
            sentence(self.title),
            sentence(self.explanation),
            final_command or None,
            kind=kind,
        )
        return finding.follows(caused_by) if caused_by else finding


# The register of rules. A rule is registered when it is defined, and found by its id.

BUILD = f"storescope dispatch {STORE} --to NEW"
"""Builds queues and index from the log, into another directory."""
PUT_IN_WORDS = "while the broker is stopped, put the new folders in the place of the old ones: the command prints how."
"""What follows :data:`BUILD`."""
BUILD_ROCKSDB = f"mv {STORE}/consumequeue {STORE}.consumequeue.old && touch {STORE}/abort"
"""Makes the next start build a RocksDB of queues from the log, if it is in ``consumequeue``."""
ROCKSDB_STEP = (
    "stop the broker, set commitLogRecoverMaxNum to the number of log files or more, move the folder of the RocksDB "
    "out of the store and create an empty file abort: a start of 5.4 or later takes it for a crash and writes the rows "
    "of all messages of the log. A queue whose messages have all expired begins at 0 again."
)
"""What :data:`BUILD_ROCKSDB` does."""
PLAN = f"storescope recover {STORE} --plan"
"""Shows what the next start would do."""
_GROUPS: dict[str, Group] = {
    "CL": "log",
    "CQ": "queue",
    "IX": "index",
    "CM": "queue",
    "TS": "queue",
    "LT": "queue",
    "CK": "checkpoint",
    "CF": "config",
    "AB": "state",
    "TM": "timer",
    "DK": "disk",
    "DL": "log",
    "RP": "state",
}


class Register(dict[str, Rule]):
    """Rules by their ids."""

    def add(
        self,
        id_: str,
        severity: Severity,
        title: str,
        explanation: str,
        next_step: str,
        *issues: str,
        needs: Parts,
        command: str | None = None,
        kinds: Mapping[str, Kind] | None = None,
    ) -> Rule:
        """Make a rule and register it. ``needs``: parts that must all be read before the rule may report."""
        group: Group = _GROUPS[id_[:2]]
        self[id_] = rule = Rule(
            id_, group, severity, title, explanation, next_step, issues, command, kinds or {}, needs
        )
        return rule
