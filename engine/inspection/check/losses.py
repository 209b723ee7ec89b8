"""Losses of the next broker start: units that it leaves out of their queues for good, and index files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.codec.message import Unit
from engine.inspection import foreign
from engine.inspection.check.places import between
from engine.inspection.check.start import Starts
from engine.inspection.snapshot import StoreSnapshot
from engine.releases import compared_with
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, Finding, at_least
from engine.store.recovery.plan import RecoveryPlan, file_limit_words, undispatched_words

MOST = 20
QUEUE_UNIT = 20


_QUEUES = ("CQ", "CF02")


def findings(store: StoreSnapshot, starts: Starts, findings_so_far: Sequence[Finding]) -> Iterator[Finding]:
    """RP01, RP03 and IX04 for a start of the release that wrote the store. Yields nothing if ``findings_so_far`` show
    that nothing is wrong: the start of a cleanly closed store loses nothing.
    """
    plan = of_own_release(store, starts) if is_troubled(store, findings_so_far) else None
    if plan is not None and plan.will_start:
        yield from _index(plan)
        yield from _undispatched(store, plan, starts.left_out)
        yield from _misnumbered(store, plan, starts)


def is_troubled(store: StoreSnapshot, findings: Sequence[Finding]) -> bool:
    """Return True if a start may do more than continue where the store was closed."""
    return store.abort or any(
        at_least(finding.severity, "warn") or finding.id.startswith(_QUEUES) for finding in findings
    )


def of_own_release(store: StoreSnapshot, starts: Starts) -> RecoveryPlan | None:
    """The plan of the release that probably wrote the store; if that does not start, the plan of the other release."""
    own_release = foreign.release_of(store)
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
        "files": [index.name for index in deleted[:MOST]],
        "entries": entries,
        "from": first_offset,
    }
    text = f"The next start deletes {len(deleted):,} of {files:,} index files with {entries:,} entries"
    if first_offset < start and filled:
        limit = file_limit_words(plan)
        text += f"; keys of units {first_offset:,} to {start:,} will not be found" + (f" · {limit}" if limit else "")
        yield rules.IX04.found(text, deleted[0].path, None, {**evidence, "to": start}, kind="lost")
    else:
        yield rules.IX04.found(f"{text} and indexes their units again", deleted[0].path, None, evidence)


FOLLOW_WRONG_NUMBERS = frozenset({"CQ10", "CF02"})


def follow(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield ``findings``; if RP03 is among them, findings on queues that end too early follow from it."""
    jumps = any(finding.id == "RP03" for finding in findings)
    for finding in findings:
        explained = jumps and finding.id in FOLLOW_WRONG_NUMBERS and finding.caused_by is None
        yield finding.follows("RP03") if explained else finding


def _misnumbered(store: StoreSnapshot, plan: RecoveryPlan, starts: Starts) -> Iterator[Finding]:
    """RP03: units whose entries a start puts at other numbers than their own."""
    queues = [queue for queue in plan.queues if queue.shifted]
    left_out = plan.undispatched is not None and plan.undispatched.messages > 0
    if not queues or left_out:  # the units in between are in the log and were left out: RP01 reports them
        return
    most_shifted = max(queues, key=lambda queue: queue.shifted)
    end = most_shifted.found.end_bytes // QUEUE_UNIT if most_shifted.found is not None else 0
    walk = starts.queues.walks.get((most_shifted.topic, most_shifted.queue_id)) if starts.queues is not None else None
    unit = store.log.seen_at(walk.first_behind, crc=False) if walk is not None and walk.first_behind >= 0 else None
    name = f"{most_shifted.topic}/{most_shifted.queue_id}"
    jump = f"the queue {name} ends at {end:,}"
    if isinstance(unit, Unit):
        jump = f"in {name} numbers jump from {end:,} to {unit.queue_offset:,}"
    text = (
        f"A start of {plan.like} gives {plan.misnumbered:,} units of {len(queues):,} queues wrong queue offsets: "
        f"{jump}, "
        f"and the start continues where the queue ends"
    )
    place = unit.offset if isinstance(unit, Unit) else plan.dispatch_from
    file = store.log.sequence.find(place)
    evidence: dict[str, Any] = {
        "units": plan.misnumbered,
        "expected": unit.queue_offset if isinstance(unit, Unit) else None,
        "found": end,
        "queues": [{"queue": f"{q.topic}/{q.queue_id}", "units": q.shifted} for q in queues[:MOST]],
        "like": plan.like,
    }
    evidence[HAPPENED] = f"{jump}: the messages in between are gone, and the queues end before them"
    yield rules.RP03.found(text, file.path if file else None, place, evidence)


def _undispatched(
    store: StoreSnapshot, plan: RecoveryPlan, reported: Mapping[tuple[str, int], int]
) -> Iterator[Finding]:
    """RP01: units that no start brings into their queues. Follows from CQ10 if that has ``reported`` them for every
    queue.
    """
    loss = plan.undispatched
    if loss is None or not loss.messages:
        return
    file = store.log.sequence.find(loss.first_unit)
    evidence = {**loss.record(), "queues": [row.record() for row in loss.queues[:MOST]], "like": plan.like}
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in plan.queues}
    for row in evidence["queues"]:
        row["maxOffset"] = ends.get((row["topic"], row["queueId"]), 0)
    limit = file_limit_words(plan)
    text = undispatched_words(loss) + (f" · {limit}" if limit else "")
    evidence[HAPPENED] = (
        f"{len(loss.queues):,} queues lost {loss.messages:,} entries that the next start does not dispatch, "
        f"for units from {loss.first_unit:,} on"
    )
    evidence |= between(
        min((row.first_time for row in loss.queues), default=-1),
        max((row.last_time for row in loss.queues), default=-1),
    )
    cause = "CQ10" if all(row.units <= reported.get((row.topic, row.queue_id), 0) for row in loss.queues) else None
    yield rules.RP01.found(text, file.path if file else None, loss.first_unit, evidence, caused_by=cause)
