"""What a check says about the next start, and what the plan of recovery says: here the two are brought together;
and what an older release makes of a store (DK03): version 2 units (docs/formats/commit-log.md#blank).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.codec.checkpoint import Checkpoint
from engine.codec.encode import LONGEST_V1_TOPIC
from engine.codec.message import Unit
from engine.counted import small
from engine.errors import CannotRead, StoreError
from engine.inspection import foreign, left_behind, recovery
from engine.inspection.check.log import LogCheck
from engine.inspection.check.queues import QueueCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.releases import NEWEST, Release, of
from engine.rules import catalogue
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, SNAPSHOT_FIRST, Finding, at_least
from engine.store.recovery.blockers import FOLDER
from engine.store.recovery.plan import Blocker, RecoveryPlan
from engine.store.written_release import Written

_LINES: tuple[Release, ...] = ("5.3", "4.9")
"""Whose starts are always told, besides the start of the release that wrote the store."""
_WALKED = frozenset({"CL01", "CL02", "CL05", "CL06", "CL07", "CQ01", "CQ03", "CQ06", "DK01"})
"""Only beside one of these can a start fail while it walks the log; else what stands around it tells all."""
_FILES = frozenset({"CL07", "CQ01"})
Subject = tuple[str, str | None]


class Starts:
    """What starts of a broker would do; each plan is made when it is first asked for."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._plans: dict[Release, RecoveryPlan | None] = {}
        self._losses: dict[Release, RecoveryPlan] | None = None
        self.log: LogCheck | None = None  # as the check saw it, when it has seen all of it
        self.queues: QueueCheck | None = None  # as well
        self.left_out: dict[tuple[str, int], int] = {}
        """Units by queue: CQ10 has told as an error that no start has them."""
        self.dledger = foreign.has_dledger_log(store)
        self.checkpoint = self._checkpoint()
        written = self._written()
        self.release = written.release if written is not None else None
        """The release that seems to have written the store; None where nothing tells."""
        self.evidence = written.evidence if written is not None else None
        """What speaks for that release, in a clause."""
        own = self.release or NEWEST
        self.releases = (own, *(name for name in _LINES if name != own))
        """Whose starts are asked about: first that of the release that wrote the store."""

    def _written(self) -> Written | None:
        if self._store.release is not None:
            return Written(self._store.release, "--release names it")
        with contextlib.suppress(CannotRead):
            return foreign.guess(self._store)
        return None

    def _checkpoint(self) -> Checkpoint | None:
        """The checkpoint as a broker maps it, None for a part of a store."""
        if self._store.paths is None:
            return None
        with contextlib.suppress(CannotRead):
            return recovery.mapped_checkpoint(self._store)[0]
        return None

    def plan(self, like: Release) -> RecoveryPlan | None:
        """None where none can be made: of a part of a store, over bytes that could not be read, beside a running
        broker, of a log that is not decoded.
        """
        if like not in self._plans:
            self._plans[like] = self._made(like)
        return self._plans[like]

    @property
    def indexed_from(self) -> int | None:
        """Where in the log the next start of a store that was not closed begins to index its units again; None where
        it does not, or that is not known.
        """
        plan = self.plan(self.release or NEWEST) if self._store.abort else None
        return plan.first_pass.start if plan is not None and plan.will_start and plan.first_pass is not None else None

    def _made(self, like: Release) -> RecoveryPlan | None:
        store = self._store
        if store.paths is None or store.unread or store.lock_state == "held" or self.dledger:
            return None
        with contextlib.suppress(StoreError):
            return recovery.plan(store, like, losses=False)
        return None

    def losses(self, like: Release) -> RecoveryPlan | None:
        """:meth:`plan` with the messages that the start loses; the log is read for both releases at once, and only
        from the first unit on that the check did not find in its queue. Raises :class:`CannotRead`.
        """
        if self._losses is None:
            made = [plan for one in self.releases if (plan := self.plan(one)) is not None]
            self._losses = {plan.like: plan for plan in self._with_losses(made)}
        return self._losses.get(like)

    def _with_losses(self, plans: list[RecoveryPlan]) -> list[RecoveryPlan]:
        store = self._store
        told = [plan for plan in plans if left_behind.can_tell(store, plan)]
        if not told:
            return plans
        meant = left_behind.meant_topics(store)
        since = min(self.queues.lacking(meant, plan) for plan in told) if self.queues is not None else None
        left = dict(zip((plan.like for plan in told), left_behind.undispatched(store, told, since=since), strict=True))
        dropped = {(plan.end_offset, plan.log_max): plan for plan in told}
        behind = {key: left_behind.dropped(store, plan) for key, plan in dropped.items()}
        store.refuse_unread(recovery.NO_PLAN)
        return [
            replace(plan, undispatched=left[plan.like], dropped=behind[plan.end_offset, plan.log_max])
            if plan.like in left
            else plan
            for plan in plans
        ]

    def blockers(self, found: Iterable[Finding]) -> dict[Subject, tuple[Blocker, list[Release]]]:
        """What keeps a broker from starting, and of which release; ``found`` says whether plans are needed to know."""
        walked = any(one.id in _WALKED for one in found)
        refused: dict[Subject, tuple[Blocker, list[Release]]] = {}
        if self._store.paths is None:
            return refused
        for like in self.releases:
            plan = self.plan(like) if walked else None
            for one in plan.blockers if plan is not None else recovery.loading(self._store, like):
                if one.finding != "AB01":  # a running broker is told as what it is
                    refused.setdefault((one.finding, one.file), (one, []))[1].append(like)
        return refused


def agree(starts: Starts, found: list[Finding]) -> list[Finding]:
    """``found``, in which whatever keeps a broker from starting is an error that says so."""
    refused: dict[Subject, tuple[Blocker, list[Release]]] = {}
    with contextlib.suppress(CannotRead):
        refused = starts.blockers(found)
    told = [_stopping(one, refused, starts.releases) for one in found]
    configured = any(one.id == "CF05" and one.severity == "error" for one in found)
    told += _further(refused, starts, configured=configured)
    return told


def _stopping(one: Finding, refused: dict[Subject, tuple[Blocker, list[Release]]], asked: Sequence[Release]) -> Finding:
    """The finding with what it keeps from starting, where it is about a blocker's file."""
    ids = [one.id, *_FILES] if one.id == "DK01" else [one.id, "CQ06"] if one.id == "CQ01" else [one.id]
    subject = next((key for id_ in ids if (key := (id_, one.file)) in refused), None)
    if subject is None or one.caused_by is not None:
        return one
    blocker, releases = refused.pop(subject)
    refused[subject] = (blocker, [])
    if not releases:  # said by an earlier finding on the same file
        return one
    step = one.next_step
    if not at_least(one.severity, "warn"):
        step = SNAPSHOT_FIRST + small(step)
    evidence = {**one.evidence, "brokerLog": blocker.broker_log, "refusedBy": releases}
    message = f"{one.message}; {_who(releases, asked)}"
    return replace(one, severity="error", next_step=step, evidence=evidence, message=message)


def _further(
    refused: dict[Subject, tuple[Blocker, list[Release]]], starts: Starts, *, configured: bool
) -> Iterator[Finding]:
    """Blockers that no finding was about; where the configuration has other lengths, that has been told. A folder, as
    each disk has one of its own (lost+found), matters to 4.9 alone: a note on a store that 5.x wrote.
    """
    for (id_, file), (blocker, releases) in refused.items():
        if not releases or (configured and id_ in _FILES):
            continue
        evidence: dict[str, Any] = {"brokerLog": blocker.broker_log, "refusedBy": releases}
        text = f"{blocker.message}; {_who(releases, starts.releases)}"
        folder = id_ in _FILES and file is not None and blocker.message.endswith(FOLDER)
        own = starts.release
        light = folder and own is not None and of(own).skips_folders and own not in releases
        evidence |= {HAPPENED: f"the folder {Path(file or '').name} stands among the store's files"} if folder else {}
        kind = "folder" if folder else ""
        yield catalogue.RULES[id_].found(text, file, None, evidence, "note" if light else "error", kind=kind)


def _who(releases: Sequence[Release], asked: Sequence[Release]) -> str:
    who = "RocketMQ" if len(releases) == len(asked) else f"RocketMQ {' and '.join(releases)}"
    return f"{who} does not start"


MOST_NAMED = 20


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """DK03: topics whose units 4.9 cannot read. Raises :class:`CannotRead`."""
    if store.paths is None:
        return
    firsts: dict[str, int] = {}
    units = 0
    for topic, queues in store.topics().items():
        if len(topic.encode()) <= LONGEST_V1_TOPIC:
            continue
        for queue in queues.values():
            first = queue.first_in_log
            entry = queue.entry(first) if first < queue.max_offset else None
            seen = store.log.seen_at(entry.physical_offset, crc=False) if entry is not None else None
            if entry is not None and isinstance(seen, Unit) and seen.version == 2:
                firsts[topic] = min(firsts.get(topic, entry.physical_offset), entry.physical_offset)
                units += queue.max_offset - first
    if not firsts:
        return
    at = min(firsts.values())
    file = store.log.sequence.find(at)
    text = (
        f"Topics with names over {LONGEST_V1_TOPIC} bytes ({len(firsts):,}) have version 2 units ({units:,}): a "
        f"4.9 broker takes the first that it meets for the end of the log and cuts everything behind it; the first is "
        f"at {at:,}"
    )
    evidence = {"topics": list(firsts)[:MOST_NAMED], "units": units, "firstUnit": at}
    yield rules.DK03.found(text, file.path if file is not None else None, at, evidence)
