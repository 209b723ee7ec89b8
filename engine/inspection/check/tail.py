"""A log that has lost its tail is one fault: queues, index and checkpoint that know more are its witnesses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from engine.inspection.check.fold import QueueFold
from engine.inspection.check.log import LogCheck
from engine.inspection.check.places import between
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue, causes
from engine.rules.findings import HAPPENED, Finding

MOST_READ = 1 << 20
"""Bytes of a queue's file behind an empty entry that are looked at for pages of zeros."""


WITNESSES = ("CQ13", "IX07", "CK02", "CK04")
OFFSETS = ("CF02", "CF09")
ENTRIES = ("CQ13", "IX07")
"""Those that point at bytes: behind what a broken end left, they tell of more that was there."""


def fold(
    findings: list[Finding], store: StoreSnapshot, log: LogCheck, queues: QueueFold | None, *, explained: bool = False
) -> Iterator[Finding]:
    """``findings`` with the witnesses of a lost tail told as one; where all of the log is gone (``explained``), it has
    been told. The broken end of a log whose tail is lost follows from that.
    """
    witnesses = [f for f in findings if f.id in WITNESSES]
    if log.next_was_lost:
        findings = list(_beyond_the_tail(findings, queues, catalogue.CL07.id))
    broken = log.tail_is_broken and log.units > 0
    told = len({f.id for f in witnesses}) > 1
    written = store.lock_state == "held"  # what was read later than the log knows more
    if not witnesses or not (broken or told or explained):
        yield from findings
        return
    rest = [f for f in findings if f.id not in WITNESSES]
    beyond = any(f.id in ENTRIES for f in witnesses)
    if explained or written or (broken and not beyond):
        yield from rest
        return
    if broken:
        log.tail_cause = catalogue.CL11.id
    yield from _beyond_the_tail(rest, queues, catalogue.CL11.id)
    yield _lost(witnesses, store, log, queues)


def of_torn_units(findings: Sequence[Finding], torn: Collection[int]) -> Iterator[Finding]:
    """``findings``, of which those on one entry that leads to a unit with torn properties follow from these: tags and
    keys stood there.
    """
    for one in findings:
        expected, found = one.evidence.get("expected"), one.evidence.get("found")
        unit = None
        if one.id == "CQ09" and isinstance(expected, dict) and "furtherEntries" not in one.evidence:
            unit = expected.get("physicalOffset")
        elif one.id == "IX06" and isinstance(found, dict) and not one.caused_by:
            unit = found.get("phyOffset")
        yield one.follows(catalogue.CL04.id) if unit in torn else one


def _beyond_the_tail(findings: Sequence[Finding], queues: QueueFold | None, cause: str) -> Iterator[Finding]:
    """``findings``, of which those on offsets that stand in the lost tail follow from the ``cause``: a group or a delay
    level that is set back to the end would be set back for nothing where the tail is found.
    """
    cut = queues.cut if queues is not None else ()
    for one in findings:
        known = [one.evidence.get("queue", ""), f"{one.evidence.get('topic')}/{one.evidence.get('queueId')}"]
        stands = one.id in OFFSETS and one.caused_by is None and any(name in cut for name in known)
        yield one.follows(cause) if stands else one


def _lost(witnesses: Sequence[Finding], store: StoreSnapshot, log: LogCheck, queues: QueueFold | None) -> Finding:
    file = store.log.sequence.find(max(log.end - 1, 0))
    said = [f.message for f in witnesses]
    evidence: dict[str, Any] = {"found": log.end, "witnesses": said}
    there = store.log.read(log.end, MOST_READ)
    evidence[HAPPENED] = causes.of_lost_tail(there, log.end, torn=log.tail_is_broken)
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
        text = f"The end of the log is lost: it ends at {log.end:,}, others know more: {'; '.join(said)}"
    cause = catalogue.CL07.id if log.next_was_lost else None
    return catalogue.CL11.found(text, file.path if file else None, log.end, evidence, caused_by=cause)


def _how_many(lost: int, further: bool) -> str:
    """The messages that queue entries know of; ``further`` where the index tells of units behind them."""
    if further:
        return f"At least {lost:,} messages are lost" if lost > 1 else "At least the last message is lost"
    return f"The last {lost:,} messages are lost" if lost > 1 else "The last message is lost"
