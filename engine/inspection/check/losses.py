"""What the next start of a broker loses: units that it leaves out of their queues for good, and index files."""

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


def findings(store: StoreSnapshot, starts: Starts, found: Sequence[Finding]) -> Iterator[Finding]:
    """RP01 and IX04 as the release that wrote the store would start; ``found`` says whether anything is wrong at all:
    nothing is lost by the start of a store that was closed and is whole.
    """
    plan = of_own_release(store, starts) if is_troubled(store, found) else None
    if plan is not None and plan.will_start:
        yield from _index(plan)
        yield from _undispatched(store, plan, starts.left_out)
        yield from _misnumbered(store, plan, starts)


def is_troubled(store: StoreSnapshot, found: Sequence[Finding]) -> bool:
    """Whether a start may do more than go on where the store was closed."""
    return store.abort or any(at_least(one.severity, "warn") or one.id.startswith(_QUEUES) for one in found)


def of_own_release(store: StoreSnapshot, starts: Starts) -> RecoveryPlan | None:
    """The plan of the release that seems to have written the store; where that does not start, of the other."""
    own = foreign.release_of(store)
    plan = starts.losses(own)
    return plan if plan is None or plan.will_start else starts.losses(compared_with(own))


def _index(plan: RecoveryPlan) -> Iterator[Finding]:
    """IX04: index files that the start deletes, and the keys that it does not index again."""
    gone = plan.index_deleted
    if not gone:
        return
    start = plan.first_pass.start if plan.first_pass is not None else plan.end_offset
    filled = [index for index in gone if index.entries]
    first = max(min((index.begin_phy_offset for index in filled), default=start), plan.log_min)
    entries = sum(index.entries for index in gone)
    files = len(gone) + len(plan.index_kept)
    evidence: dict[str, Any] = {"files": [index.name for index in gone[:MOST]], "entries": entries, "from": first}
    text = f"The next start deletes {len(gone):,} of {files:,} index files with {entries:,} entries"
    if first < start and filled:
        limit = file_limit_words(plan)
        text += f"; keys of units {first:,} to {start:,} will not be found" + (f" · {limit}" if limit else "")
        yield rules.IX04.found(text, gone[0].path, None, {**evidence, "to": start}, kind="lost")
    else:
        yield rules.IX04.found(f"{text} and indexes their units again", gone[0].path, None, evidence)


FOLLOW_WRONG_NUMBERS = frozenset({"CQ10", "CF02"})


def follow(found: Sequence[Finding]) -> Iterator[Finding]:
    """``found``, in which what stands at queues that end too early follows from RP03 where that is there."""
    jumps = any(one.id == "RP03" for one in found)
    for one in found:
        explained = jumps and one.id in FOLLOW_WRONG_NUMBERS and one.caused_by is None
        yield one.follows("RP03") if explained else one


def _misnumbered(store: StoreSnapshot, plan: RecoveryPlan, starts: Starts) -> Iterator[Finding]:
    """RP03: units whose entries a start puts elsewhere than at their own numbers."""
    queues = [queue for queue in plan.queues if queue.shifted]
    left_out = plan.undispatched is not None and plan.undispatched.messages > 0
    if not queues or left_out:  # what stood in between is in the log and was left out: RP01 says so
        return
    first = max(queues, key=lambda queue: queue.shifted)
    end = first.found.end_bytes // QUEUE_UNIT if first.found is not None else 0
    walk = starts.queues.walks.get((first.topic, first.queue_id)) if starts.queues is not None else None
    unit = store.log.seen_at(walk.first_behind, crc=False) if walk is not None and walk.first_behind >= 0 else None
    name = f"{first.topic}/{first.queue_id}"
    jump = f"the queue {name} ends at {end:,}"
    if isinstance(unit, Unit):
        jump = f"in {name} numbers jump from {end:,} to {unit.queue_offset:,}"
    text = (
        f"A start of {plan.like} gives {plan.misnumbered:,} units of {len(queues):,} queues wrong numbers: {jump}, "
        f"and the "
        "start goes on where the queue ends"
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
    evidence[HAPPENED] = f"{jump}: what stood in between is gone, and the queues end in front of it"
    yield rules.RP03.found(text, file.path if file else None, place, evidence)


def _undispatched(store: StoreSnapshot, plan: RecoveryPlan, told: Mapping[tuple[str, int], int]) -> Iterator[Finding]:
    """RP01: what no start brings into its queue; it follows from CQ10 where that has ``told`` it of every queue."""
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
        f"{len(loss.queues):,} queues lost {loss.messages:,} entries before what the next start dispatches, "
        f"of units from {loss.first_unit:,} on"
    )
    evidence |= between(
        min((row.first_time for row in loss.queues), default=-1),
        max((row.last_time for row in loss.queues), default=-1),
    )
    cause = "CQ10" if all(row.units <= told.get((row.topic, row.queue_id), 0) for row in loss.queues) else None
    yield rules.RP01.found(text, file.path if file else None, loss.first_unit, evidence, caused_by=cause)
