"""A finding, the rule behind it, and the register of all rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from engine.counted import capital, one_of
from engine.releases import Release, name_next_start

# Parts of a store, and from which of them a rule concludes: where one could not be read, the rule does not speak.
#
# A rule about bytes that were seen needs none. What is missing, ends too early or points to nothing is a conclusion
# from all of a part: a file of it that could not be read may hold just that.

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
    """The part that ``file`` belongs to by its place; every part for the store's own folder and what is above it."""
    if any(file == folder or file.startswith(f"{folder}/") for folder in log_folders):
        return LOG
    if not file.startswith(f"{root}/"):
        return ALL
    name = file[len(root) + 1 :].split("/", 1)[0]
    return frozenset({_PARTS.get(name, "other")})


Severity = Literal["chat", "note", "warn", "error"]
Group = Literal["log", "queue", "index", "checkpoint", "config", "state", "timer", "disk"]

SEVERITIES: tuple[Severity, ...] = ("chat", "note", "warn", "error")
"""From harmless to grave."""

SNAPSHOT_FIRST = "Take a snapshot first (storescope snapshot STORE DST) and work on that; "
"""How the advice on a damaged store begins, always."""
STORE = "{store}"
"""What stands for the store's path in a rule's command."""
_OURS = re.compile(rf"storescope [a-z]+ {re.escape(STORE)}(?![^ ])")


def at_least(severity: Severity, limit: Severity) -> bool:
    """Whether ``severity`` is ``limit`` or graver."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(limit)


def sentence(said: str) -> str:
    """``said`` with a capital, unless it begins with a name, and counted as one where it is."""
    return one_of(capital(said))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule saw.

    ``offset`` is in bytes: of the log where ``file`` belongs to it, else the position in the file that is named.
    ``evidence`` holds what was ``expected`` and ``found``, and the place in the words of its subject (``queueOffset``,
    ``entry``) where bytes say little. ``title`` and ``explanation`` are the rule's. ``command`` is what to type, the
    store's path in it quoted for a shell. ``caused_by`` is the rule whose finding explains this one, ``alone`` what it
    is where nobody asked for that rule.
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

    def of_store(self, path: str, config: str | None = None) -> Finding:
        """With the store's path in its command, and the configuration that it was looked at with."""
        if self.command is None or STORE not in self.command:
            return self
        return replace(self, command=of_store(self.command, path, config))

    def of_release(self, release: Release) -> Finding:
        """With the name of the release in each sentence about the next start."""
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
        """As what follows from a finding of the rule ``cause``: a note at most, and its step is the cause's."""
        light: Severity = "note" if at_least(self.severity, "note") else self.severity
        said = f"Do what {cause} says."
        alone = self.alone or self
        return replace(self, severity=light, next_step=said, command=None, caused_by=cause, alone=alone)

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
            "title": self.title,
            "explanation": self.explanation,
            "command": self.command,
            "causedBy": self.caused_by,
        }


def of_store(command: str, path: str, config: str | None = None) -> str:
    """``command`` with the store's path in it; a command of ours gets the options ``config``."""
    if config is not None:
        command = _OURS.sub(lambda found: f"{found[0]} {config}", command)
    return command.replace(STORE, shlex.quote(path))


CAUSES = frozenset({"CL07", "CL12"})
"""Rules about files as wholes: what they find explains findings about bytes, entries and index entries."""

HAPPENED = "happened"
"""The evidence that says in a clause what happened here, of which kind and where: what the incident begins with."""
STORED_FROM, STORED_TO = "storedFrom", "storedTo"
"""The evidence of store times (ms) in front of a place and behind it; both are the same for a unit that says its own.
"""
LEFT_OUT = "leftOut"
"""The evidence of how many units no start brings into their queues."""

EMPTY_LOG = "CL12"
"""The rule about a log that is gone: it explains all others."""


def rank(one: Finding) -> tuple[int, int, str, str, int]:
    """Sorts the gravest first, and of these what explains the others."""
    cause = (one.id != EMPTY_LOG) + (one.id not in CAUSES)
    return -SEVERITIES.index(one.severity), cause, one.id, one.file or "", one.offset or 0


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """The gravest first; what follows from a finding stands right behind the first one of the rule that causes it."""
    ranked = sorted(found, key=rank)
    ids = {one.id for one in ranked}
    followers: dict[str, list[Finding]] = {}
    heads = []
    for one in ranked:
        if one.caused_by in ids and one.caused_by != one.id:
            followers.setdefault(one.caused_by or "", []).append(one)
        else:
            heads.append(one)
    told: list[Finding] = []
    for one in heads:
        told.extend(_with_followers(one, followers))
    return told + [one for rest in followers.values() for one in rest]


def _with_followers(one: Finding, followers: dict[str, list[Finding]]) -> Iterator[Finding]:
    """``one`` and what follows from it, at first hand or later; takes those out of ``followers``."""
    yield one
    for follower in followers.pop(one.id, []):
        yield from _with_followers(follower, followers)


@dataclass(frozen=True, slots=True)
class Summary:
    """How many findings there were of each severity, in how many units; ``complete`` is false where the check was
    stopped. ``incident`` is what to make of them all (``inspection.check.incident``), None where nothing is wrong.
    """

    counts: dict[Severity, int]
    complete: bool
    units: int = 0
    incident: dict[str, Any] | None = None

    def record(self) -> dict[str, Any]:
        """The ``summary`` record of the command line."""
        counts: dict[str, Any] = {severity: self.counts[severity] for severity in SEVERITIES}
        return {"type": "summary", **counts, "complete": self.complete, "incident": self.incident}


def summarise(findings: Iterable[Finding], complete: bool, units: int = 0) -> Summary:
    """Count ``findings`` by severity."""
    counts: dict[Severity, int] = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        counts[finding.severity] += 1
    return Summary(counts, complete, units)


class Kind(NamedTuple):
    """How one kind of a rule's findings differs: None where it does not. A ``command`` of "" takes the rule's away."""

    severity: Severity | None = None
    step: str | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """What is looked for, how grave it is, why it happens, what to do first, and by which command."""

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
    """Parts of a store that all have to be read before it may speak."""

    def found(
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
        """A finding of this rule. ``kind`` is one of :attr:`kinds`; ``severity``, ``step`` and ``command`` say what is
        otherwise under these circumstances. With ``caused_by`` it follows from a finding of that rule.
        """
        of_kind = self.kinds[kind] if kind else Kind()
        grave = severity or of_kind.severity or self.severity
        said = step or of_kind.step or self.next_step
        typed = next((one for one in (command, of_kind.command, self.command) if one is not None), None)
        advice = capital((SNAPSHOT_FIRST if at_least(grave, "warn") else "") + said)
        made = Finding(
            self.id,
            grave,
            self.group,
            file,
            offset,
            sentence(message),
            evidence or {},
            self.known_issues,
            advice,
            self.title,
            self.explanation,
            typed or None,
        )
        return made.follows(caused_by) if caused_by else made


# A register of rules: each is put in where it is made, and is known by its id from then on.

BUILD = f"storescope dispatch {STORE} --to NEW"
"""Builds queues and index from the log, into another directory."""
PUT_IN = "for part in $(ls NEW); do test -e STORE/$part && mv STORE/$part OLD; mv NEW/$part STORE; done"
"""Puts what :data:`BUILD` made in the place of the store's folders, and keeps these."""
PUT_IN_WORDS = (
    f"while the broker is stopped, put it in the place of the store's folders and keep these (mkdir OLD; {PUT_IN})."
)
PLAN = f"storescope recover {STORE} --plan"
"""What the next start would do."""
_GROUPS: dict[str, Group] = {
    "CL": "log",
    "CQ": "queue",
    "IX": "index",
    "CK": "checkpoint",
    "CF": "config",
    "AB": "state",
    "TM": "timer",
    "DK": "disk",
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
        """Make a rule and put it in. ``needs``: parts that all have to be read before it may speak."""
        group: Group = _GROUPS[id_[:2]]
        self[id_] = made = Rule(
            id_, group, severity, title, explanation, next_step, issues, command, kinds or {}, needs
        )
        return made
