"""A log that has lost its tail is one fault: queues, index and checkpoint that know more are its witnesses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from engine.inspection.check.fold import QueueFold
from engine.inspection.check.log import LogCheck
from engine.inspection.check.places import between
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue, damage_causes
from engine.rules.findings import HAPPENED, Finding

MOST_READ = 1 << 20
"""Bytes of a queue's file behind an empty entry that are searched for pages of zeros."""


WITNESSES = ("CQ13", "IX07", "CK02", "CK04")
OFFSETS = ("CF02", "CF09")
ENTRIES = ("CQ13", "IX07")
"""Witnesses that point to bytes: behind a broken end they prove that there was more."""


def fold(
    findings: list[Finding], store: StoreSnapshot, log: LogCheck, queues: QueueFold | None, *, explained: bool = False
) -> Iterator[Finding]:
    """Yield ``findings`` with the witnesses of a lost tail merged into one.

    If all of the log is gone (``explained``), that has been reported already. If the tail is lost, the broken end of
    the log follows from that.
    """
    witnesses = [f for f in findings if f.id in WITNESSES]
    if log.next_was_lost:
        findings = list(_beyond_the_tail(findings, queues, catalogue.CL07.id))
    broken = log.tail_is_broken and log.units > 0
    has_several = len({f.id for f in witnesses}) > 1
    written = store.lock_state == "held"  # files read after the log may know more
    if not witnesses or not (broken or has_several or explained):
        yield from findings
        return
    others_kept = [f for f in findings if f.id not in WITNESSES]
    beyond = any(f.id in ENTRIES for f in witnesses)
    if explained or written or (broken and not beyond):
        yield from others_kept
        return
    if broken:
        log.tail_cause = catalogue.CL11.id
    yield from _beyond_the_tail(others_kept, queues, catalogue.CL11.id)
    yield _lost_tail_finding(witnesses, store, log, queues)


def of_torn_units(findings: Sequence[Finding], torn: Collection[int]) -> Iterator[Finding]:
    """Yield ``findings``; those on a single entry that points to a unit with torn properties follow from these, because
    tags and keys were stored there.
    """
    for finding in findings:
        expected, actual = finding.evidence.get("expected"), finding.evidence.get("found")
        unit = None
        if finding.id == "CQ09" and isinstance(expected, dict) and "furtherEntries" not in finding.evidence:
            unit = expected.get("physicalOffset")
        elif finding.id == "IX06" and isinstance(actual, dict) and not finding.caused_by:
            unit = actual.get("phyOffset")
        yield finding.follows(catalogue.CL04.id) if unit in torn else finding


def _beyond_the_tail(findings: Sequence[Finding], queues: QueueFold | None, cause: str) -> Iterator[Finding]:
    """Yield ``findings``; those on offsets in the lost tail follow from ``cause``.

    Resetting a group or a delay level to the end would be wrong if the tail turns up again.
    """
    cut = queues.cut if queues is not None else ()
    for finding in findings:
        queue_names = [
            finding.evidence.get("queue", ""),
            f"{finding.evidence.get('topic')}/{finding.evidence.get('queueId')}",
        ]
        is_beyond = finding.id in OFFSETS and finding.caused_by is None and any(name in cut for name in queue_names)
        yield finding.follows(cause) if is_beyond else finding


def _lost_tail_finding(
    witnesses: Sequence[Finding], store: StoreSnapshot, log: LogCheck, queues: QueueFold | None
) -> Finding:
    file = store.log.sequence.find(max(log.end - 1, 0))
    messages = [f.message for f in witnesses]
    evidence: dict[str, Any] = {"found": log.end, "witnesses": messages}
    tail_bytes = store.log.read(log.end, MOST_READ)
    evidence[HAPPENED] = damage_causes.of_lost_tail(tail_bytes, log.end, torn=log.tail_is_broken)
    evidence |= between(log.newest_time or -1, -1)
    for witness in witnesses:
        evidence[witness.id] = witness.evidence
    lost = queues.lost if queues is not None else 0
    if lost and queues is not None:
        evidence |= {"expected": queues.known_to, "messages": lost}
        indexed = max((int(f.evidence.get("last", 0)) for f in witnesses if f.id == "IX07"), default=0)
        further = indexed >= queues.known_to
        text = f"{_how_many(lost, further)}: the log ends at {log.end:,}, the queues know it up to {queues.known_to:,}"
        if further:
            evidence["atLeast"] = True
            text += f", the index holds keys of units up to {indexed:,}"
    else:
        text = f"The end of the log is lost: it ends at {log.end:,}, other files know more: {'; '.join(messages)}"
    cause = catalogue.CL07.id if log.next_was_lost else None
    return catalogue.CL11.found(text, file.path if file else None, log.end, evidence, caused_by=cause)


def _how_many(lost: int, further: bool) -> str:
    """Words for the messages that queue entries know; ``further`` if the index knows units behind them."""
    if further:
        return f"At least {lost:,} messages are lost" if lost > 1 else "At least the last message is lost"
    return f"The last {lost:,} messages are lost" if lost > 1 else "The last message is lost"
