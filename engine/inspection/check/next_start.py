"""The next start of a broker in a check: the recovery plan's view beside the findings, the losses of that start (units
that it leaves out of their queues for good, and index files), and what an older release makes of a store (DK03):
version 2 units (docs/formats/commit-log.md#blank).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.codec import properties
from engine.codec.checkpoint import Checkpoint
from engine.codec.encode import MAX_V1_TOPIC_BYTES
from engine.codec.message import Unit
from engine.english import small
from engine.errors import CannotRead, StoreError
from engine.inspection import recovery, start_losses, undecoded
from engine.inspection.check.log import LogCheck
from engine.inspection.check.places import between
from engine.inspection.check.queues import QueueCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import guess, require_release
from engine.releases import NEWEST, Release, compared_with, rules_of
from engine.rules import catalogue
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, SNAPSHOT_FIRST, Finding, at_least
from engine.sentences import join, plural, sentence, with_and
from engine.store.recovery.blockers import FOLDER
from engine.store.recovery.plan import (
    Blocker,
    RecoveryPlan,
    dledger_cut_words,
    file_limit_words,
    undispatched_words,
)
from engine.store.written_release import WrittenRelease
from engine.system_names import TIMER_TOPIC

_LINES: tuple[Release, ...] = ("5.3", "4.9")
"""Releases whose starts are always described, besides the release that wrote the store."""
_WALKED = frozenset({"CL01", "CL02", "CL05", "CL06", "CL07", "CQ01", "CQ03", "CQ06", "DK01"})
"""A start can fail during its walk of the log only if there is one of these findings; else the state files decide."""
_FILES = frozenset({"CL07", "CQ01"})
Subject = tuple[str, str | None]


class StartEffects:
    """Effects of a broker start, per release; each plan is made at its first use."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._plans: dict[Release, RecoveryPlan | None] = {}
        self._losses: dict[Release, RecoveryPlan] | None = None
        self.log: LogCheck | None = None  # as the check saw it, when it has seen all of it
        self.queues: QueueCheck | None = None  # as well
        self.left_out: dict[tuple[str, int], int] = {}
        """Units by queue that CQ10 has reported as an error: no start dispatches them."""
        self.left_out_rule = "CQ10"
        """The rule that reported :attr:`left_out`."""
        self.dledger = undecoded.has_dledger_log(store)
        self.checkpoint = self._checkpoint()
        written = self._written()
        self.release = written.release if written is not None else None
        """The release that probably wrote the store; None without evidence."""
        self.evidence = written.evidence if written is not None else None
        """The evidence for that release, as a clause."""
        own_release = self.release or NEWEST
        self.releases = (own_release, *(name for name in _LINES if name != own_release))
        """Releases whose starts are planned: first the one that wrote the store."""

    def _written(self) -> WrittenRelease | None:
        if self._store.release is not None:
            return WrittenRelease(self._store.release, sentence("--release names it"))
        with contextlib.suppress(CannotRead):
            return guess(self._store)
        return None

    def _checkpoint(self) -> Checkpoint | None:
        """The checkpoint as a broker maps it, None for a part of a store."""
        if self._store.paths is None:
            return None
        with contextlib.suppress(CannotRead):
            return recovery.mapped_checkpoint(self._store)[0]
        return None

    def plan(self, release: Release) -> RecoveryPlan | None:
        """The plan of one release; None for a part of a store, unreadable bytes, a running broker, or an
        undecoded log.
        """
        if release not in self._plans:
            self._plans[release] = self._made(release)
        return self._plans[release]

    @property
    def indexed_from(self) -> int | None:
        """Offset in the log from which the next start of a store that was not closed indexes units again.

        None if it does not, or if that is not known.
        """
        plan = self.plan(self.release or NEWEST) if self._store.abort else None
        return plan.first_pass.start if plan is not None and plan.will_start and plan.first_pass is not None else None

    def _made(self, release: Release) -> RecoveryPlan | None:
        store = self._store
        if store.paths is None or store.unread or store.lock_state == "held" or self.dledger:
            return None
        with contextlib.suppress(StoreError):
            return recovery.plan(store, release, losses=False)
        return None

    def losses(self, release: Release) -> RecoveryPlan | None:
        """Return :meth:`plan` with the messages that the start loses. The log is read once for both releases, and only
        from the first unit on that the check did not find in its queue. Raises :class:`CannotRead`.
        """
        if self._losses is None:
            plans = [plan for planned in self.releases if (plan := self.plan(planned)) is not None]
            self._losses = {plan.release: plan for plan in self._with_losses(plans)}
        return self._losses.get(release)

    def _with_losses(self, plans: list[RecoveryPlan]) -> list[RecoveryPlan]:
        store = self._store
        readable_plans = [plan for plan in plans if start_losses.can_tell(store, plan)]
        if not readable_plans:
            return plans
        meant = start_losses.existing_topics(store)
        first_lacking = (
            min(self.queues.lacking(meant, plan) for plan in readable_plans) if self.queues is not None else None
        )
        if first_lacking is not None:
            cuts = (plan.dledger.queues_cut_at for plan in readable_plans if plan.dledger is not None)
            first_lacking = min([first_lacking, *(cut for cut in cuts if cut is not None)])
        undispatched_losses = dict(
            zip(
                (plan.release for plan in readable_plans),
                start_losses.undispatched(store, readable_plans, begin=first_lacking),
                strict=True,
            )
        )
        dropped = {(plan.end_offset, plan.log_max): plan for plan in readable_plans}
        dropped_losses = {key: start_losses.dropped(store, plan) for key, plan in dropped.items()}
        store.refuse_unread(recovery.NO_PLAN)
        return [
            replace(
                plan,
                undispatched=undispatched_losses[plan.release],
                dropped=dropped_losses[plan.end_offset, plan.log_max],
            )
            if plan.release in undispatched_losses
            else plan
            for plan in plans
        ]

    def blockers(self, findings: Iterable[Finding]) -> dict[Subject, tuple[Blocker, list[Release]]]:
        """Blockers of a broker start, with the releases that refuse; ``findings`` show whether plans are needed to know
        them.
        """
        needs_plans = any(blocker.id in _WALKED for blocker in findings)
        refused: dict[Subject, tuple[Blocker, list[Release]]] = {}
        if self._store.paths is None:
            return refused
        for release in self.releases:
            plan = self.plan(release) if needs_plans else None
            for blocker in plan.blockers if plan is not None else recovery.loading(self._store, release):
                if blocker.finding != "AB01":  # a running broker is not a fault
                    refused.setdefault((blocker.finding, blocker.file), (blocker, []))[1].append(release)
        return refused


def agree(starts: StartEffects, findings: list[Finding]) -> list[Finding]:
    """Return ``findings`` in which everything that keeps a broker from starting is an error that says so."""
    refused: dict[Subject, tuple[Blocker, list[Release]]] = {}
    with contextlib.suppress(CannotRead):
        refused = starts.blockers(findings)
    agreed = [_raise_to_error(finding, refused, starts.releases) for finding in findings]
    configured = any(finding.id == "CF05" and finding.severity == "error" for finding in findings)
    agreed += _other_blockers(refused, starts, configured=configured)
    return agreed


def _raise_to_error(
    finding: Finding, refused: dict[Subject, tuple[Blocker, list[Release]]], releases_asked: Sequence[Release]
) -> Finding:
    """The finding, raised to an error if it is about a blocker's file."""
    ids = (
        [finding.id, *_FILES]
        if finding.id == "DK01"
        else [finding.id, "CQ06"]
        if finding.id == "CQ01"
        else [finding.id]
    )
    subject = next((key for id_ in ids if (key := (id_, finding.file)) in refused), None)
    if subject is None or finding.caused_by is not None:
        return finding
    blocker, releases = refused.pop(subject)
    refused[subject] = (blocker, [])
    if not releases:  # reported by an earlier finding on the same file
        return finding
    step = finding.next_step
    if not at_least(finding.severity, "warn"):
        step = SNAPSHOT_FIRST + small(step)
    evidence = {**finding.evidence, "brokerLog": blocker.broker_log, "refusedBy": releases}
    message = join("; ", [finding.message, _refusal_words(releases, releases_asked)])
    return replace(finding, severity="error", next_step=step, evidence=evidence, message=message)


def _other_blockers(
    refused: dict[Subject, tuple[Blocker, list[Release]]], starts: StartEffects, *, configured: bool
) -> Iterator[Finding]:
    """Blockers without a finding of their own; lengths that differ from the configuration are already reported.

    A folder such as lost+found, which each disk has, only stops 4.9: on a store that 5.x wrote it is a note.
    """
    for (id_, file), (blocker, releases) in refused.items():
        if not releases or (configured and id_ in _FILES):
            continue
        evidence: dict[str, Any] = {"brokerLog": blocker.broker_log, "refusedBy": releases}
        text = join("; ", [blocker.message, _refusal_words(releases, starts.releases)])
        folder = id_ in _FILES and file is not None and blocker.message.endswith(FOLDER)
        own_release = starts.release
        light = (
            folder and own_release is not None and rules_of(own_release).skips_folders and own_release not in releases
        )
        evidence |= (
            {HAPPENED: sentence("the folder {name} is among the store's files", name=Path(file or "").name)}
            if folder
            else {}
        )
        kind = "folder" if folder else ""
        yield catalogue.RULES[id_].finding(text, file, None, evidence, "note" if light else "error", kind=kind)


def _refusal_words(releases: Sequence[Release], releases_asked: Sequence[Release]) -> str:
    if len(releases) == len(releases_asked):
        return sentence("RocketMQ does not start")
    return plural(
        "RocketMQ {releases} does not start",
        "RocketMQ {releases} do not start",
        n=len(releases),
        releases=with_and(releases),
    )


MAX_NAMED = 20
MAX_TIMERS = 20_000
"""Number of newest timer messages that are looked at."""


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """DK03: topics whose units 4.9 cannot read, and timers of which it knows nothing. Raises :class:`CannotRead`."""
    if store.paths is None:
        return
    yield from _timers_that_wait(store)
    yield from _long_topics(store)


def _timers_that_wait(store: StoreSnapshot) -> Iterator[Finding]:
    """DK03: timer messages that are not due yet, if the release has no timer wheel."""
    release = require_release(store)
    queue = store.queues.find(TIMER_TOPIC, 0)
    if rules_of(release).timers or queue is None:
        return
    last_items = store.log.items_before(store.log.max_offset, 1, crc=False)
    newest = last_items[-1].store_timestamp if last_items and isinstance(last_items[-1], Unit) else 0
    waiting = []
    for entry in queue.entries(max(queue.first_in_log, queue.max_offset - MAX_TIMERS), queue.max_offset):
        unit = store.log.seen_at(entry.physical_offset, crc=False)
        due = unit.properties.get(properties.TIMER_OUT_MS, "") if isinstance(unit, Unit) else ""
        if due.isdecimal() and int(due) > newest:
            waiting.append(entry.physical_offset)
    if waiting:
        text = sentence(
            "Timer messages wait for their time ({n:,}): {release} has no timer wheel, so none is delivered while it "
            "runs; a later 5.x broker delivers them, however late",
            n=len(waiting),
            release=rules_of(release).title,
        )
        file = store.log.sequence.find(waiting[0])
        evidence = {"messages": len(waiting), "firstUnit": waiting[0], "release": release}
        path = file.path if file is not None else None
        yield rules.DK03.finding(text, path, waiting[0], evidence, kind="timers")


def _long_topics(store: StoreSnapshot) -> Iterator[Finding]:
    firsts: dict[str, int] = {}
    units = 0
    for topic, queues in store.queues.by_topic().items():
        if len(topic.encode()) <= MAX_V1_TOPIC_BYTES:
            continue
        for queue in queues.values():
            first_number = queue.first_in_log
            entry = queue.entry(first_number) if first_number < queue.max_offset else None
            item = store.log.seen_at(entry.physical_offset, crc=False) if entry is not None else None
            if entry is not None and isinstance(item, Unit) and item.version == 2:
                firsts[topic] = min(firsts.get(topic, entry.physical_offset), entry.physical_offset)
                units += queue.max_offset - first_number
    if not firsts:
        return
    first_offset = min(firsts.values())
    file = store.log.sequence.find(first_offset)
    text = sentence(
        "Topics with names over {bytes} bytes ({topics:,}) have version 2 units ({n:,}): a 4.9 "
        "broker takes the first one for the end of the log and cuts everything after it; the first "
        "is at {at:,}",
        bytes=MAX_V1_TOPIC_BYTES,
        topics=len(firsts),
        n=units,
        at=first_offset,
    )
    evidence = {"topics": list(firsts)[:MAX_NAMED], "units": units, "firstUnit": first_offset}
    yield rules.DK03.finding(text, file.path if file is not None else None, first_offset, evidence)


MAX_LISTED = 20
QUEUE_UNIT = 20
_QUEUES = ("CQ", "CF02")


def loss_findings(store: StoreSnapshot, starts: StartEffects, findings_so_far: Sequence[Finding]) -> Iterator[Finding]:
    """RP01, RP03 and IX04 for a start of the release that wrote the store. Yields nothing if ``findings_so_far`` show
    that nothing is wrong: the start of a cleanly closed store loses nothing.
    """
    plan = of_own_release(store, starts) if is_troubled(store, findings_so_far) else None
    if plan is not None and plan.will_start:
        yield from _index(plan)
        yield from _undispatched(store, plan, starts)
        yield from _misnumbered(store, plan, starts)


def is_troubled(store: StoreSnapshot, findings: Sequence[Finding]) -> bool:
    """Return True if a start may do more than continue where the store was closed."""
    return store.abort or any(
        at_least(finding.severity, "warn") or finding.id.startswith(_QUEUES) for finding in findings
    )


def of_own_release(store: StoreSnapshot, starts: StartEffects) -> RecoveryPlan | None:
    """The plan of the release that probably wrote the store; if that does not start, the plan of the other release."""
    own_release = require_release(store)
    plan = starts.losses(own_release)
    return plan if plan is None or plan.will_start else starts.losses(compared_with(own_release))


def _index(plan: RecoveryPlan) -> Iterator[Finding]:
    """IX04: index files that the start deletes, and the keys that it does not index again."""
    deleted = plan.index_deleted
    if not deleted:
        return
    start = plan.first_pass.start if plan.first_pass is not None else plan.end_offset
    filled = [index for index in deleted if index.entries]
    first_offset = max(min((index.begin_phy_offset for index in filled), default=start), plan.log_min)
    entries = sum(index.entries for index in deleted)
    files = len(deleted) + len(plan.index_kept)
    evidence: dict[str, Any] = {
        "files": [index.name for index in deleted[:MAX_LISTED]],
        "entries": entries,
        "from": first_offset,
    }
    counts = {"count": len(deleted), "all": files, "entries": entries}
    if first_offset < start and filled:
        limit = file_limit_words(plan)
        text = sentence(
            "The next start deletes {count:,} of {all:,} index files with {entries:,} entries; keys of units "
            "{first:,} to {last:,} will not be found",
            **counts,
            first=first_offset,
            last=start,
        )
        text += " · " + limit if limit else ""
        yield rules.IX04.finding(text, deleted[0].path, None, {**evidence, "to": start}, kind="lost")
    else:
        text = sentence(
            "The next start deletes {count:,} of {all:,} index files with {entries:,} entries and indexes their units "
            "again",
            **counts,
        )
        yield rules.IX04.finding(text, deleted[0].path, None, evidence)


FOLLOW_WRONG_NUMBERS = frozenset({"CQ10", "CF02"})


def follow(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield ``findings``; if RP03 is among them, findings on queues that end too early follow from it."""
    jumps = any(finding.id == "RP03" for finding in findings)
    for finding in findings:
        explained = jumps and finding.id in FOLLOW_WRONG_NUMBERS and finding.caused_by is None
        yield finding.follows("RP03") if explained else finding


def _misnumbered(store: StoreSnapshot, plan: RecoveryPlan, starts: StartEffects) -> Iterator[Finding]:
    """RP03: units whose entries a start puts at other numbers than their own."""
    queues = [queue for queue in plan.queues if queue.shifted]
    left_out = plan.undispatched is not None and plan.undispatched.messages > 0
    if not queues or left_out:  # the units in between are in the log and were left out: RP01 reports them
        return
    most_shifted = max(queues, key=lambda queue: queue.shifted)
    end = most_shifted.current_state.end_bytes // QUEUE_UNIT if most_shifted.current_state is not None else 0
    walk = starts.queues.walks.get((most_shifted.topic, most_shifted.queue_id)) if starts.queues is not None else None
    unit = (
        store.log.seen_at(walk.first_offset_behind, crc=False)
        if walk is not None and walk.first_offset_behind >= 0
        else None
    )
    name = f"{most_shifted.topic}/{most_shifted.queue_id}"
    jump = sentence("the queue {queue} ends at {end:,}", queue=name, end=end)
    if isinstance(unit, Unit):
        jump = sentence(
            "in {queue} numbers jump from {end:,} to {first:,}", queue=name, end=end, first=unit.queue_offset
        )
    text = plural(
        "A start of {release} gives {n:,} unit of {queues:,} queues wrong queue offsets: {jump}, and "
        "the start continues where the queue ends",
        "A start of {release} gives {n:,} units of {queues:,} queues wrong queue offsets: {jump}, "
        "and the start continues where the queue ends",
        release=plan.release,
        n=plan.misnumbered,
        queues=len(queues),
        jump=jump,
    )
    place = unit.offset if isinstance(unit, Unit) else plan.dispatch_from
    file = store.log.sequence.find(place)
    evidence: dict[str, Any] = {
        "units": plan.misnumbered,
        "expected": unit.queue_offset if isinstance(unit, Unit) else None,
        "found": end,
        "queues": [{"queue": f"{q.topic}/{q.queue_id}", "units": q.shifted} for q in queues[:MAX_LISTED]],
        "like": plan.release,
    }
    evidence[HAPPENED] = sentence("{jump}: the messages in between are gone, and the queues end before them", jump=jump)
    yield rules.RP03.finding(text, file.path if file else None, place, evidence)


def _undispatched(store: StoreSnapshot, plan: RecoveryPlan, starts: StartEffects) -> Iterator[Finding]:
    """RP01: units that no start brings into their queues. Follows from the rule that has reported them for every
    queue.
    """
    loss = plan.undispatched
    if loss is None or not loss.messages:
        return
    file = store.log.sequence.find(loss.first_unit)
    evidence = {**loss.record(), "queues": [row.record() for row in loss.queues[:MAX_LISTED]], "like": plan.release}
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in plan.queues}
    for row in evidence["queues"]:
        row["maxOffset"] = ends.get((row["topic"], row["queueId"]), 0)
    limit = file_limit_words(plan)
    cut = plan.dledger.queues_cut_at if plan.dledger is not None and plan.exit == "abnormal" else None
    is_cut = cut is not None and loss.first_unit >= cut
    cut_words = [dledger_cut_words(plan)] if is_cut else []
    text = join(" · ", [undispatched_words(loss), *cut_words, *([limit] if limit else [])])
    evidence[HAPPENED] = plural(
        "the next start cuts {entries:,} entries off {n:,} queue, for units from {first:,} on"
        if is_cut
        else "{n:,} queue lost {entries:,} entries that the next start does not dispatch, for units from {first:,} on",
        "the next start cuts {entries:,} entries off {n:,} queues, for units from {first:,} on"
        if is_cut
        else "{n:,} queues lost {entries:,} entries that the next start does not dispatch, for units from {first:,} on",
        n=len(loss.queues),
        entries=loss.messages,
        first=loss.first_unit,
    )
    evidence |= between(
        min((row.first_time for row in loss.queues), default=-1),
        max((row.last_time for row in loss.queues), default=-1),
    )
    reported = starts.left_out
    is_reported = all(row.units <= reported.get((row.topic, row.queue_id), 0) for row in loss.queues)
    cause = starts.left_out_rule if is_reported else None
    path, kind = file.path if file else None, "dledger" if is_cut else ""
    yield rules.RP01.finding(text, path, loss.first_unit, evidence, kind=kind, caused_by=cause)
